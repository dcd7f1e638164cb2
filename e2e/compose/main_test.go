//go:build e2e

package compose

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"
)

// shop is the stack that the tests share; they run one after the other, in the order of the file.
var shop *stack

// Bounds of starting and of removing the stack.
const (
	upWithin     = 3 * time.Minute
	removeWithin = 2 * time.Minute
)

func TestMain(m *testing.M) { os.Exit(runAll(m)) }

func runAll(m *testing.M) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	limit, cancel := context.WithTimeout(ctx, upWithin)
	defer cancel()
	var err error
	if shop, err = newStack(limit); err != nil {
		fmt.Fprintln(os.Stderr, "compose:", err)
		return 1
	}
	defer shop.removeAtEnd()
	// A test binary that is interrupted or out of time ends without running what was deferred.
	context.AfterFunc(ctx, func() { shop.removeAtEnd(); os.Exit(1) })
	if err := shop.start(limit); err != nil {
		fmt.Fprintln(os.Stderr, "compose:", err)
		shop.tell(os.Stderr)
		return 1
	}
	code := m.Run()
	if code != 0 {
		shop.tell(os.Stderr)
	}
	return code
}

// start brings the stack up on new volumes, as the README says, and prints how long it took.
func (s *stack) start(ctx context.Context) error {
	began := time.Now()
	if _, err := s.compose(ctx, "up", "--wait"); err != nil {
		return err
	}
	fmt.Printf("compose: healthy after %s\n", time.Since(began).Round(100*time.Millisecond))
	dir, err := os.MkdirTemp("", "feira-compose-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	return s.keys(ctx, dir)
}

func (s *stack) removeAtEnd() {
	ctx, cancel := context.WithTimeout(context.Background(), removeWithin)
	defer cancel()
	if err := s.remove(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "compose: not everything was removed:", err)
	}
}

// tell prints what the containers said last.
func (s *stack) tell(to *os.File) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, args := range [][]string{{"ps", "--all"}, {"logs", "--tail", "20", "--no-color"}} {
		out, err := s.compose(ctx, args...)
		fmt.Fprintln(to, out, err)
	}
}
