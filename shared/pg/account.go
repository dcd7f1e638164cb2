package pg

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the operating system's user that Postgres runs as. Postgres refuses root, so root hands it over.
type account struct {
	credential *syscall.Credential // nil: the current user
	uid, gid   int
}

// current is the account of a process that is not root.
func current() account { return account{uid: os.Getuid(), gid: os.Getgid()} }

// handOver finds the account for a process that is root: postgres, else nobody.
func handOver() (account, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return account{}, fmt.Errorf("user %s: %w", name, err)
		}
		return account{
			credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)},
			uid:        int(uid), gid: int(gid),
		}, nil
	}
	return account{}, errors.New("postgres must not run as root, and neither user postgres nor nobody exists")
}

// prepareDir makes the directory and says who Postgres will run as. The directory itself belongs to the current
// user and is open to that account; the data in it will belong to the account and be closed to all others.
func prepareDir(dir string) (account, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // the account must be able to enter it
		return account{}, &DirError{Dir: dir, Reason: err.Error(), Do: "choose one that can be written"}
	}
	if os.Geteuid() != 0 {
		return current(), nil
	}
	acc, err := handOver()
	if err != nil {
		return account{}, &DirError{Dir: dir, Reason: err.Error(), Do: "run as an ordinary user"}
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // as above
		return account{}, &DirError{Dir: dir, Reason: err.Error(), Do: "choose one that can be written"}
	}
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return account{}, &DirError{Dir: dir, Reason: err.Error(), Do: "choose another"}
		}
		if !acc.mayEnter(info) {
			return account{}, &DirError{Dir: dir,
				Reason: fmt.Sprintf("Postgres runs as uid %d there, which may not enter %s (%v)", acc.uid, at, info.Mode().Perm()),
				Do:     "choose a directory below /var/lib or /tmp, or run as an ordinary user"}
		}
		if at == filepath.Dir(at) {
			return acc, nil
		}
	}
}

func (a account) mayEnter(info fs.FileInfo) bool {
	mode := info.Mode().Perm()
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		if int(st.Uid) == a.uid {
			return mode&0o100 != 0
		}
		if int(st.Gid) == a.gid {
			return mode&0o010 != 0
		}
	}
	return mode&0o001 != 0
}

// give makes path belong to the account.
func (a account) give(path string) error {
	if a.credential == nil {
		return nil
	}
	return os.Chown(path, a.uid, a.gid)
}
