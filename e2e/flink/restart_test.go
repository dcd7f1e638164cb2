//go:build e2e

package flink

import (
	"math/rand/v2"
	"strings"
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
	first, said := f.command(t, checkpoints, "windows.sql")
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- first.Wait() }()
	before := 0
	for before == 0 { // what can be read was committed with a checkpoint
		err := read(t.Context(), address, spendTopic.Name, func(*kgo.Record) error { before++; return nil })
		if err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			t.Fatalf("it ended: %v\n%s", err, said)
		case <-time.After(100 * time.Millisecond):
		}
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("it had ended before it was killed")
	}
	p.send(t, h.facts[len(h.facts)/2:])
	p.finish(t)

	second, said := f.command(t, checkpoints, "windows.sql", untilNow)
	if err := second.Run(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	t.Logf("killed when it had said %d windows at least; then\n%s", before, said)
	if !strings.Contains(said.String(), "begins where checkpoint") {
		t.Error("it began anew")
	}
	got, err := f.said(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "window", got.spend, naive(h).spend)
}
