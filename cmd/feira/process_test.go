package main_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a running feira.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	out   *output
	ended chan struct{}
}

// start starts the program. It is ended with the test, by its pid, and by the kernel where the test dies before it.
func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	p, err := launch(t, binary, env, args...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// launch is start of any program, from any goroutine.
func launch(t *testing.T, program string, env []string, args ...string) (*process, error) {
	t.Helper()
	noteCall(args)
	p := &process{t: t, cmd: exec.Command(program, args...), out: &output{more: make(chan struct{})}, ended: make(chan struct{})}
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = environment(env), p.out, p.out
	p.cmd.WaitDelay = 5 * time.Second
	started := make(chan error)
	go func() {
		defer close(p.ended)
		release, err := startBound(p.cmd)
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // the exit code tells
		}
		release()
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s %s said:\n%s", filepath.Base(program), strings.Join(args, " "), p.out)
		}
	})
	return p, nil
}

// kill ends the process as a power cut would.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

// interrupt sends a signal and gives the exit code and how long it took.
func (p *process) stop(with syscall.Signal) (code int, took time.Duration) {
	p.t.Helper()
	began := time.Now()
	if err := p.cmd.Process.Signal(with); err != nil {
		p.t.Fatal(err)
	}
	return p.wait(), time.Since(began)
}

// wait waits for the end and gives the exit code.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		p.t.Fatalf("feira %s has not ended after %s", strings.Join(p.cmd.Args[1:], " "), patience)
		return -1
	}
}

// until waits until the process has said the text.
func (p *process) until(text string) {
	p.t.Helper()
	deadline := time.After(patience)
	for {
		more := p.out.next()
		if strings.Contains(p.out.String(), text) {
			return
		}
		select {
		case <-more:
		case <-p.ended:
			if strings.Contains(p.out.String(), text) {
				return
			}
			p.t.Fatalf("feira %s ended without saying %q", strings.Join(p.cmd.Args[1:], " "), text)
		case <-deadline:
			p.t.Fatalf("feira %s has not said %q after %s", strings.Join(p.cmd.Args[1:], " "), text, patience)
		}
	}
}

// output is what a process has said so far; waiting for more needs no polling.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.more)
	o.more = make(chan struct{})
	return o.text.Write(p)
}

func (o *output) next() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.more
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
