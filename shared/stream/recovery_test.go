package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/faulttest"
	"github.com/feira-shop/feira/shared/operator"
)

// moment is a place in a batch's life.
type moment int

const (
	beforeApply moment = iota
	afterApply
	afterCommit // and before the handler hears of it
)

// faults happen to an operator's handler; the counting goes on over its restarts.
type faults struct {
	every   int // batches
	at      moment
	happens func(ctx context.Context, tx *eventstore.Tx) error

	mu      sync.Mutex
	batches int
	left    int // faults that are still to come
	done    int
}

// due counts batches and says whether a fault is to happen now.
func (f *faults) due(at moment) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at == beforeApply {
		f.batches++
	}
	if at != f.at || f.left == 0 || f.batches < f.every {
		return false
	}
	f.batches = 0
	f.left--
	f.done++
	return true
}

// in wraps the definition's handlers.
func (f *faults) in(def operator.Definition) operator.Definition {
	inner := def.Handler
	def.Handler = func(s *eventstore.Store) operator.Handler {
		return &faulty{Stateful: inner(s).(operator.Stateful), faults: f}
	}
	return def
}

type faulty struct {
	operator.Stateful
	faults *faults
	gone   bool // the process that it belonged to
}

var errFault = errors.New("a fault of the test")

func (f *faulty) Apply(ctx context.Context, tx *eventstore.Tx, batch []operator.Record) error {
	if f.gone {
		return errFault
	}
	if f.faults.due(beforeApply) {
		return errors.Join(errFault, f.faults.happens(ctx, tx))
	}
	if err := f.Stateful.Apply(ctx, tx, batch); err != nil {
		return err
	}
	if f.faults.due(afterApply) {
		return f.faults.happens(ctx, tx)
	}
	return nil
}

func (f *faulty) Settle(committed bool) {
	if committed && f.faults.due(afterCommit) {
		_ = f.faults.happens(context.Background(), nil)
		f.gone = true
	}
	if f.gone {
		return
	}
	f.Stateful.Settle(committed)
}

// The verdicts are those of an uninterrupted run, whatever happens to the operator, and wherever in a batch's life.
func TestFaultStateInMemory(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{
		Number: 4, Name: "State in memory",
		Does: "the process ends before, within or after a batch, a batch is rolled back, its connection is cut at the commit, or another owner " +
			"takes over: the verdicts are those of an uninterrupted run that remembers everything",
	})
	times := run.Times(2, 10)
	clicksEach := 125 * times
	for name, at := range map[string]moment{"before apply": beforeApply, "after apply": afterApply, "after commit": afterCommit} {
		t.Run("the process ends "+name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			gone := make(chan struct{}, 1)
			f := &faults{every: 4, left: times, at: at, happens: func(context.Context, *eventstore.Tx) error {
				gone <- struct{}{} // nothing of this handler is used any more
				return errFault
			}}
			b.history(clicksEach)
			for range times {
				stop := b.run(f.in(definition("tests.judge")), "m1")
				select {
				case <-gone:
				case <-time.After(patience):
					t.Fatal("the fault did not happen")
				}
				stop()
			}
			b.run(f.in(definition("tests.judge")), "m1")
			b.check()
			run.Count("faults", times)
		})
	}
	for name, happens := range map[string]func(b *bed) func(context.Context, *eventstore.Tx) error{
		"a batch is rolled back": func(*bed) func(context.Context, *eventstore.Tx) error {
			return func(context.Context, *eventstore.Tx) error { return errFault }
		},
		"the connection is cut at the commit": func(*bed) func(context.Context, *eventstore.Tx) error {
			return func(_ context.Context, tx *eventstore.Tx) error {
				tx.Later("select pg_terminate_backend(pg_backend_pid())")
				return nil
			}
		},
		"another owner takes over": func(b *bed) func(context.Context, *eventstore.Tx) error {
			return func(ctx context.Context, _ *eventstore.Tx) error {
				_, err := b.db.Pool.Exec(ctx, "update checkpoints set epoch = epoch + 1")
				return err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			f := &faults{every: 4, left: times, at: afterApply, happens: happens(b)}
			b.history(clicksEach)
			b.run(f.in(definition("tests.judge")), "m1")
			b.check()
			if f.left != 0 {
				t.Errorf("%d faults did not happen", f.left)
			}
			run.Count("faults", times)
		})
	}
}

// Two replicas, and one of them goes: partitions move with their state, and each click has one verdict.
func TestPartitionsMoveWithTheirState(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	more := func() {
		b.history(150)
		n := len(b.want())
		b.await(fmt.Sprintf("%d verdicts", n), func() bool { return b.verdicts() == n })
	}
	stop := b.run(definition("tests.judge"), "m1")
	more()
	b.run(definition("tests.judge"), "m2")
	more()
	stop()
	more()
	b.check()
}

// An operator whose state changed its shape gets a new name, and judges all history again. What was said stands.
func TestANewNameStartsAnewAndContradictsNobody(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.history(200)
	stop := b.run(definition("tests.judge"), "m1")
	b.check()
	stop()
	b.history(100)
	b.run(definition("tests.judge2"), "m1")
	b.check()
	b.await("the checkpoints", func() bool {
		return b.count("select coalesce(sum(next_offset), 0) from checkpoints where operator = 'tests.judge2'") == 300
	})
}
