package demo

import (
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// temporaryPattern names the folders of demos without --data.
const temporaryPattern = "feira-demo-"

// lockFile is held for as long as a demo lives, by a lock that goes with the process.
const lockFile = "demo.lock"

// lock marks a temporary folder as in use.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the demo's own folder
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// removeLeftovers removes temporary folders of demos that were killed. What cannot be removed is left to whoever owns it.
func removeLeftovers(in string) {
	dirs, err := filepath.Glob(filepath.Join(in, temporaryPattern+"*"))
	if err != nil {
		return // the pattern is fixed
	}
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || time.Since(info.ModTime()) < time.Minute {
			continue // a demo that is just starting may not hold its lock yet
		}
		held, err := lock(dir)
		if err != nil {
			continue
		}
		_ = os.RemoveAll(dir)
		_ = held.Close()
	}
}
