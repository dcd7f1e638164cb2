package pg

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
)

// The kernel ends the server with the thread that started it; that thread must not be the caller's.
func TestTheServerOutlivesTheThreadThatAskedForIt(t *testing.T) {
	t.Parallel()
	dir, started, asker := openDir(t), make(chan *Server), make(chan int, 1)
	onDyingThread(func() {
		asker <- syscall.Gettid()
		s, err := Start(t.Context(), Options{Dir: dir, NoSync: true})
		if err != nil {
			t.Error(err)
		}
		started <- s
	})
	s := <-started
	if s == nil {
		return
	}
	defer func() { _ = s.Stop() }()
	tid := <-asker
	await(t, "the thread's end", func() bool {
		return syscall.Tgkill(syscall.Getpid(), tid, 0) == syscall.ESRCH
	})
	for range 3 {
		if n := count(t, s.AdminDSN(), "select 1"); n != 1 {
			t.Fatal("no answer")
		}
	}
	select {
	case <-s.Done():
		t.Error("the server ended with a thread")
	default:
	}
}

// onDyingThread runs fn on a thread that ends with it. The process' first thread never ends, so it is kept busy.
func onDyingThread(fn func()) {
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if syscall.Gettid() != syscall.Getpid() {
			fn()
			return
		}
		another := make(chan struct{})
		onDyingThread(func() {
			defer close(another)
			fn()
		})
		<-another
		runtime.UnlockOSThread()
	}()
}

// After a crash the number in the pid file may belong to any other process of the same user.
func TestAStalePidFileIsRemoved(t *testing.T) {
	t.Parallel()
	s := startShop(t)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	stranger := exec.Command("sleep", "600")
	stranger.Dir = "/"
	stranger.SysProcAttr = &syscall.SysProcAttr{Credential: s.account.credential}
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Process.Kill(); _ = stranger.Wait() }()
	stale := filepath.Join(s.data, "postmaster.pid")
	text := strconv.Itoa(stranger.Process.Pid) + "\n" + s.data + "\n1\n5432\n\n127.0.0.1\n\nready   \n"
	if err := os.WriteFile(stale, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.account.give(stale); err != nil {
		t.Fatal(err)
	}
	start(t, Options{Dir: s.opts.Dir})
}

func TestAServerStartedByHandIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := startShop(t)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	byHand := exec.Command(filepath.Join(s.install.bin, "postgres"), s.arguments()...)
	byHand.Dir = "/"
	byHand.SysProcAttr = &syscall.SysProcAttr{Credential: s.account.credential}
	if err := byHand.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = byHand.Process.Signal(syscall.SIGINT); _ = byHand.Wait() }()
	await(t, "the start by hand", func() bool { return len(pidFile(s.data)) >= 8 })
	_, err := Start(t.Context(), Options{Dir: s.opts.Dir, NoSync: true})
	var busy *InUseError
	if !errors.As(err, &busy) || busy.PID != byHand.Process.Pid {
		t.Errorf("expected an InUseError of %d, got %v", byHand.Process.Pid, err)
	}
}
