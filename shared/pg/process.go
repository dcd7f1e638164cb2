package pg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// process is a running postmaster.
type process struct {
	cmd     *exec.Cmd
	started chan error    // what starting it gave
	done    chan struct{} // closed when it has ended
	err     error         // how it ended; read after done

	stopping atomic.Bool // its end is wanted
	log      *slog.Logger
}

// How long the steps of a stop may take. The first is a shutdown with its checkpoint.
const (
	fastStop      = 20 * time.Second
	immediateStop = 5 * time.Second
)

const logFile = "postgres.log"

// logKeep is the size beyond which the log of earlier starts is put aside (and the one put aside before is lost).
const logKeep = 16 << 20

// run starts the postmaster and waits until it accepts connections.
func (s *Server) run(ctx context.Context) (*process, error) {
	log, offset, err := openLog(filepath.Join(s.opts.Dir, logFile))
	if err != nil {
		return nil, &DirError{Dir: s.opts.Dir, Reason: err.Error(), Do: "choose one that can be written"}
	}
	defer func() { _ = log.Close() }()
	cmd := exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(s.install.bin, "postgres"), s.arguments()...) //nolint:gosec // found by choose
	cmd.Stdout, cmd.Stderr = log, log                                                                                  // a file: a pipe would end with this process, and with it what writes to it
	cmd.ExtraFiles = []*os.File{s.locks.server}
	cmd.Dir = s.opts.Dir
	cmd.Env = environment()
	cmd.SysProcAttr = processAttributes(s.account)
	p := &process{cmd: cmd, started: make(chan error, 1), done: make(chan struct{}), log: s.opts.Log}
	go p.hold()
	if err := <-p.started; err != nil {
		return nil, &StartError{Step: "postgres", Err: err}
	}
	if s.janitor, err = engage(cmd.Process.Pid, s.opts); err != nil {
		_ = p.stop()
		return nil, &StartError{Step: "postgres", Err: err}
	}
	if err := p.awaitReady(ctx, s.data); err != nil {
		_ = p.stop()
		s.janitor.dismiss()
		tail := logTail(log.Name(), offset)
		if strings.Contains(tail, "could not create any TCP/IP sockets") {
			return nil, &PortBusyError{Port: s.port, Err: syscall.EADDRINUSE}
		}
		return nil, &StartError{Step: "postgres", Log: tail, Err: err}
	}
	return p, nil
}

// hold starts the postmaster and waits for its end on one thread. The kernel sends the death signal when the
// thread that started the child ends, not the process; Go ends threads at will unless they are locked.
func (p *process) hold() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	p.started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	if !p.stopping.Load() {
		p.log.Error("postgres ended by itself", "error", p.err)
	}
	close(p.done)
}

func (s *Server) arguments() []string {
	settings := []string{
		"listen_addresses=127.0.0.1",
		"port=" + strconv.Itoa(s.port),
		"unix_socket_directories=", // no socket: no path that could be too long, no way past the passwords
		"max_connections=" + strconv.Itoa(s.opts.MaxConns),
		"password_encryption=scram-sha-256",
		"logging_collector=off",
		"log_destination=stderr",
		"log_line_prefix=%m [%p] %q%a %d ",
		"dynamic_shared_memory_type=mmap", // in the data directory: nothing stays outside, and /dev/shm may be small
	}
	if s.opts.NoSync {
		// Nothing else is given up: a killed server keeps every commit, only a power cut loses some.
		settings = append(settings, "fsync=off")
	} else {
		settings = append(settings, "fsync=on")
	}
	args := []string{"-D", s.data}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	return args
}

// awaitReady reads the postmaster's pid file: its first line must be our child's and its eighth say "ready". A
// connection would not prove that it is this server which answers.
func (p *process) awaitReady(ctx context.Context, data string) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		lines := pidFile(data)
		if len(lines) >= 8 && lines[0] == strconv.Itoa(p.cmd.Process.Pid) && strings.TrimSpace(lines[7]) == "ready" {
			return nil
		}
		select {
		case <-tick.C:
		case <-p.done:
			return fmt.Errorf("it ended: %w", p.err)
		case <-ctx.Done():
			return fmt.Errorf("it did not become ready: %w", ctx.Err())
		}
	}
}

func pidFile(data string) []string {
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid")) //nolint:gosec // the caller chose the directory
	if err != nil {
		return nil
	}
	return strings.Split(string(text), "\n")
}

// stop asks for a fast shutdown, then for an immediate one, then kills.
func (p *process) stop() error {
	p.stopping.Store(true)
	for _, step := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{syscall.SIGINT, fastStop}, {syscall.SIGQUIT, immediateStop}, {syscall.SIGKILL, immediateStop}} {
		_ = p.cmd.Process.Signal(step.signal) // an error means that it has ended
		select {
		case <-p.done:
			var exit *exec.ExitError
			if errors.As(p.err, &exit) && step.signal == syscall.SIGINT {
				return fmt.Errorf("postgres ended: %w", p.err)
			}
			return nil
		case <-time.After(step.wait):
		}
	}
	return errors.New("postgres cannot be ended")
}

func openLog(path string) (*os.File, int64, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > logKeep {
		if err := os.Rename(path, path+".old"); err != nil {
			return nil, 0, err
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600) //nolint:gosec // the caller chose the directory
	if err != nil {
		return nil, 0, err
	}
	offset, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		_ = f.Close()
		return nil, 0, err
	}
	return f, offset, nil
}

// logTail is the end of what was logged after offset.
func logTail(path string, offset int64) string {
	const most = 4 << 10
	f, err := os.Open(path) //nolint:gosec // the caller chose the directory
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.NewSectionReader(f, offset, 1<<20))
	if err != nil {
		return ""
	}
	if len(text) > most {
		text = text[len(text)-most:]
	}
	return string(bytes.TrimSpace(text))
}
