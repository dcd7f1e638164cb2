package operator

import (
	"strconv"
	"sync"
	"testing"

	"github.com/feira-shop/feira/shared/faulttest"
)

// gate stops whoever passes until it is opened, and says when somebody came.
type gate struct {
	came   chan struct{}
	open   chan struct{}
	once   sync.Once
	opened sync.Once
}

func newGate() *gate { return &gate{came: make(chan struct{}), open: make(chan struct{})} }

func (g *gate) pass() {
	g.once.Do(func() { close(g.came) })
	<-g.open
}

// before stops an operator at a point.
func (g *gate) before(at point) func(point) error {
	return func(p point) error {
		if p == at {
			g.pass()
		}
		return nil
	}
}

func (g *gate) release() { g.opened.Do(func() { close(g.open) }) }

// An owner freezes just before its commit, another takes its partitions over, and the first one wakes before the other
// has committed anything: only the epoch tells them apart.
func TestFaultFrozenOwner(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{
		Number: 5, Name: "Zombie owner, before its successor's first commit",
		Does: "an owner freezes before its commit, another one takes over and has not committed yet: the late commit is refused and counted",
	})
	for i := range run.Times(2, 20) {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			run.Count("late commits refused", frozenOwner(t))
		})
	}
}

// frozenOwner returns how many commits were refused.
func frozenOwner(t *testing.T) (fenced int) {
	t.Helper()
	w := newWorld(t, facts)
	log := w.publishOn(0, 20)
	freeze, hold := newGate(), newGate()
	frozen := w.operator(w.definition(&ledger{name: "frozen"}, facts), "m1")
	frozen.hooks.reached = freeze.before(beforeCommit)
	stopFrozen := w.start(frozen)
	t.Cleanup(freeze.release)
	w.awaitSignal("a batch before its commit", freeze.came)

	successor := w.operator(w.definition(&ledger{name: "successor"}, facts), "a-first-by-name") // has partition 0
	successor.hooks.reached = hold.before(beforeCommit)
	w.start(successor)
	t.Cleanup(hold.release)
	w.awaitSignal("the successor's first batch", hold.came)
	freeze.release()
	late := func() int { return w.count("select count(*) from effects where operator = 'frozen'") }
	w.await("the frozen commit's end", func() bool { return value(t, frozen.metrics.fenced) > 0 || late() > 0 })
	hold.release()
	w.await("all effects", func() bool { return w.effects() >= len(log) })
	stopFrozen()
	if n := late(); n != 0 {
		t.Errorf("%d effects of the frozen owner", n)
	}
	w.agrees(log, nil)
	return int(value(t, frozen.metrics.fenced))
}

// A fenced claim ends its session: its records were delivered, and nobody would read them again.
func TestFaultFencedClaim(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{
		Number: 5, Name: "Fenced while the session goes on",
		Does: "somebody raises the epoch of a partition under its owner: the commit is refused, and the records are read again",
	})
	w := newWorld(t, facts)
	freeze := newGate()
	o := w.operator(w.definition(&ledger{}, facts), "m1")
	o.hooks.reached = freeze.before(beforeCommit)
	log := w.publishOn(0, 20)
	w.start(o)
	t.Cleanup(freeze.release)
	w.awaitSignal("a batch before its commit", freeze.came)
	if _, err := w.db.Pool.Exec(t.Context(), "update checkpoints set epoch = epoch + 1 where partition = 0"); err != nil {
		t.Fatal(err)
	}
	freeze.release()
	w.await("a refused commit", func() bool { return value(t, o.metrics.fenced) > 0 })
	w.agrees(log, nil)
	run.Count("refused commits", int(value(t, o.metrics.fenced)))
}
