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

// handOver finds the account for a process that is root: the owner of the data that dir has, else postgres, else
// nobody. It must have an entry in the system's list of users, since initdb asks for its name.
func handOver(dir string) (account, error) {
	for _, major := range dataMajors(dir) {
		info, err := os.Stat(filepath.Join(dir, strconv.Itoa(major)))
		if err != nil {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 {
			return delegate(st.Uid, st.Gid), nil
		}
	}
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
		return delegate(uint32(uid), uint32(gid)), nil
	}
	return account{}, errors.New("root must not run Postgres, and there is neither a user postgres nor nobody")
}

func delegate(uid, gid uint32) account {
	return account{credential: &syscall.Credential{Uid: uid, Gid: gid}, uid: int(uid), gid: int(gid)}
}

// prepareDir makes the directory and says who Postgres will run as. The directory itself belongs to the current
// user and is open to that account; the data in it will belong to the account and be closed to all others.
func prepareDir(dir string) (account, error) {
	if err := makeDir(dir); err != nil {
		return account{}, &DirError{Dir: dir, Reason: err.Error(), Do: "choose one that can be written"}
	}
	if os.Geteuid() != 0 {
		return current(), nil
	}
	acc, err := handOver(dir)
	if err != nil {
		return account{}, &DirError{Dir: dir, Reason: err.Error(), Do: "run as an ordinary user"}
	}
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return account{}, &DirError{Dir: dir, Reason: err.Error(), Do: "choose another"}
		}
		if !acc.mayEnter(info) {
			return account{}, &DirError{Dir: dir,
				Reason: fmt.Sprintf("since root must not run it, Postgres runs as user %d, which may not enter %s (mode %#o)",
					acc.uid, at, info.Mode().Perm()),
				Do: "choose a directory below /var/lib or /tmp, or run as an ordinary user"}
		}
		if at == filepath.Dir(at) {
			return acc, nil
		}
	}
}

// makeDir makes the directory, open to be entered whatever the umask is. One that exists is left as it is.
func makeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // Postgres' account must be able to enter it
		return err
	}
	return os.Chmod(dir, 0o755) //nolint:gosec // as above
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
