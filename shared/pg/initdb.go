package pg

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// initialise makes the data directory when there is none. It is made beside its place and renamed, so that a
// half-made one is never taken for one.
func (s *Server) initialise(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(s.data, "PG_VERSION")); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return &DirError{Dir: s.opts.Dir, Reason: err.Error(), Do: "run as the user who made it"}
	}
	fresh, pwfile := s.data+".new", filepath.Join(s.opts.Dir, "initdb.password")
	defer func() { _ = os.Remove(pwfile) }()
	if err := s.prepareInit(fresh, pwfile); err != nil {
		return &DirError{Dir: s.opts.Dir, Reason: err.Error(), Do: "choose one that can be written"}
	}
	if err := s.initdb(ctx, fresh, pwfile); err != nil {
		return err
	}
	if err := os.Rename(fresh, s.data); err != nil {
		return &DirError{Dir: s.opts.Dir, Reason: err.Error(), Do: "choose one that can be written"}
	}
	return nil
}

func (s *Server) prepareInit(fresh, pwfile string) error {
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if err := os.Mkdir(fresh, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(pwfile, []byte(password(s.secret, adminRole)+"\n"), 0o600); err != nil {
		return err
	}
	return errors.Join(s.account.give(fresh), s.account.give(pwfile))
}

func (s *Server) initdb(ctx context.Context, fresh, pwfile string) error {
	args := []string{"-D", fresh, "-U", adminRole, "--pwfile", pwfile, "--auth", "scram-sha-256",
		// The C locale compares bytes: the same order on every machine, and fast.
		"--encoding", "UTF8", "--locale", "C", "--no-instructions"}
	if s.opts.NoSync {
		args = append(args, "--no-sync")
	}
	cmd := exec.CommandContext(ctx, filepath.Join(s.install.bin, "initdb"), args...) //nolint:gosec // found by choose
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.account.credential}
	cmd.ExtraFiles = []*os.File{s.locks.server} // nobody may follow while a killed owner's initdb still runs
	cmd.Dir = s.opts.Dir
	cmd.Env = environment()
	cmd.WaitDelay = 2 * time.Second // its children may outlive it and hold its output open
	out, err := cmd.CombinedOutput()
	if err != nil {
		return &StartError{Step: "initdb", Log: string(out), Err: errors.Join(ctx.Err(), err)}
	}
	return nil
}

// environment is what Postgres' programs see. PG variables of the caller's would reach into them.
func environment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC", "LD_LIBRARY_PATH=" + os.Getenv("LD_LIBRARY_PATH")}
}

// dataMajors lists the versions that dir has data of.
func dataMajors(dir string) []int {
	files, _ := filepath.Glob(filepath.Join(dir, "*", "PG_VERSION"))
	var majors []int
	for _, file := range files {
		if major, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			majors = append(majors, major)
		}
	}
	return majors
}
