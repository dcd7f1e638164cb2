package pg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// locks make a directory the property of one process at a time. Both are locks on open files, which the kernel
// frees when the last copy of the file is closed, so neither can be left behind.
//
// The owner lock is held by the process that starts the server, and by nothing else: busy means that a living
// process uses the directory. The server lock is inherited by the postmaster and by every backend: busy without
// an owner means that a killed owner's server is still ending, which is worth waiting for.
type locks struct {
	owner, server *os.File
}

// serverEndTimeout is how long to wait for the server of a killed owner: a shutdown with its checkpoint.
const serverEndTimeout = 30 * time.Second

// acquire takes both locks and waits for the server of a killed owner to end.
func acquire(ctx context.Context, dir string) (*locks, error) {
	l, err := own(dir)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, serverEndTimeout)
	defer cancel()
	if err := awaitLock(ctx, l.server, dir); err != nil {
		l.release()
		return nil, err
	}
	return l, nil
}

// awaitLock locks, and gives up with the last refusal when ctx ends.
func awaitLock(ctx context.Context, f *os.File, dir string) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := lockFile(f, dir)
		var busy *InUseError
		if !errors.As(err, &busy) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

// own takes the owner lock and opens the other one.
func own(dir string) (*locks, error) {
	owner, err := openLock(dir, "owner.lock")
	if err != nil {
		return nil, err
	}
	if err := lockFile(owner, dir); err != nil {
		_ = owner.Close()
		return nil, err
	}
	_ = owner.Truncate(0)
	_, _ = owner.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0) // only for the message of the next one
	server, err := openLock(dir, "server.lock")
	if err != nil {
		_ = owner.Close()
		return nil, err
	}
	return &locks{owner: owner, server: server}, nil
}

func (l *locks) release() {
	_ = l.server.Close()
	_ = l.owner.Close()
}

func openLock(dir, name string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the caller chose dir
	if err != nil {
		return nil, &DirError{Dir: dir, Reason: err.Error(), Do: "run as the user who made it, or choose another"}
	}
	return f, nil
}

// lockFile locks without waiting.
func lockFile(f *os.File, dir string) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return &InUseError{Dir: dir, PID: readPID(f)}
		default:
			return &DirError{Dir: dir, Reason: fmt.Sprintf("locking: %v", err), Do: "choose one on a local disk"}
		}
	}
}

func readPID(f *os.File) int {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}

// RemoveUnused removes a server's directory unless a server or its owner lives.
func RemoveUnused(dir string) error {
	l, err := own(dir)
	if err != nil {
		return err
	}
	defer l.release()
	if err := lockFile(l.server, dir); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}
