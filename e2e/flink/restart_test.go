//go:build e2e

package flink

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestAKilledJobGoesOn: Flink is killed in the middle of windows and starts again. Each window is said once, and is that of
// a run that was never killed.
func TestAKilledJobGoesOn(t *testing.T) {
	seed := number(t, "SEED", rand.Uint64())
	t.Logf("SEED=%d", seed)
	h := generate(seed, 20_000)
	address, checkpoints := startBroker(t), t.TempDir()
	p := newPublisher(t, h, address)
	p.send(t, h.facts[:len(h.facts)/2])

	f := newFlink(t, address)
	first := f.start(t, checkpoints)
	first.awaitWritten(t, filepath.Join(checkpoints, "windows", "*", "chk-*", "_metadata"))
	// By now the next checkpoint is perhaps not complete, perhaps complete without its transaction being committed.
	<-time.After(time.Duration(rand.IntN(500)) * time.Millisecond)
	first.kill(t)
	p.send(t, h.facts[len(h.facts)/2:])
	p.finish(t)

	want := naive(h).spend
	second := f.start(t, checkpoints)
	second.await(t, len(want))
	if err := second.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-second.ended; err == nil {
		t.Error("it had ended before it was stopped")
	}
	t.Logf("after it was killed:\n%s", second.said)
	if !strings.Contains(second.said.String(), "begins where checkpoint") {
		t.Error("it began anew")
	}
	got, err := f.said(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "window", got.spend, want)
}

// job is windows.sql, running without an end.
type job struct {
	cmd   *exec.Cmd
	said  *bytes.Buffer // to be read when it has ended
	kafka string
	ended chan error
}

func (f *flink) start(t *testing.T, checkpoints string) *job {
	t.Helper()
	cmd, said := f.command(t, checkpoints, "windows.sql")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	j := &job{cmd, said, f.kafka, make(chan error, 1)}
	go func() { j.ended <- cmd.Wait() }()
	return j
}

// kill ends the process as the kernel does when memory is short.
func (j *job) kill(t *testing.T) {
	t.Helper()
	if err := j.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-j.ended; err == nil {
		t.Error("it had ended before it was killed")
	}
}

// awaitWritten waits until windows are on the topic, committed or not, and a checkpoint is complete.
func (j *job) awaitWritten(t *testing.T, checkpoint string) {
	t.Helper()
	for limit := time.After(restartWithin); ; {
		at, err := ends(t.Context(), j.kafka, spendTopic.Name, false)
		if err != nil {
			t.Fatal(err)
		}
		complete, err := filepath.Glob(checkpoint)
		if err != nil {
			t.Fatal(err)
		}
		if len(complete) > 0 && slices.ContainsFunc(slices.Collect(maps.Values(at)), func(end int64) bool { return end > 0 }) {
			return
		}
		select {
		case err := <-j.ended:
			t.Fatalf("it ended before it wrote anything: %v\n%s", err, j.said)
		case <-limit:
			j.kill(t)
			t.Fatalf("nothing was written within %s\n%s", restartWithin, j.said)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// await waits until so many windows at least can be read.
func (j *job) await(t *testing.T, least int) {
	t.Helper()
	limit := time.After(restartWithin)
	for {
		n := 0
		if err := read(t.Context(), j.kafka, spendTopic.Name, func(*kgo.Record) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
		if n >= least {
			return
		}
		select {
		case err := <-j.ended:
			t.Fatalf("it ended after %d windows: %v\n%s", n, err, j.said)
		case <-limit:
			j.kill(t)
			t.Errorf("%d windows after %s, must be %d\n%s", n, restartWithin, least, j.said)
			return
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// restartWithin bounds a start of Flink and its work; it is no measure of speed.
const restartWithin = 3 * time.Minute
