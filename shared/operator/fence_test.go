package operator

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/feira-shop/feira/shared/eventstore"
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

func (g *gate) release() { g.opened.Do(func() { close(g.open) }) }

// named is a ledger that signs its effects.
type named struct {
	ledger
	name string
}

func (n *named) Apply(ctx context.Context, tx *eventstore.Tx, b []Record) error {
	if err := n.ledger.Apply(ctx, tx, b); err != nil {
		return err
	}
	tx.Later("update effects set operator = $1 where operator = ''", n.name)
	return nil
}

// frozenOwner has an owner freeze just before its commit, a second member take its partitions over, and the
// first one wake before the second has committed anything. It returns how many effects each had in the end.
func frozenOwner(t *testing.T, mutate func(*world)) (old, young int, w *world, fenced float64) {
	t.Helper()
	w = newWorld(t, facts)
	if mutate != nil {
		mutate(w)
	}
	w.publishOn(0, 20)
	freeze, hold := newGate(), newGate()
	first := w.operator(w.definition(&named{name: "old"}, facts), "m1")
	first.hooks.reached = func(p point) error {
		if p == beforeCommit {
			freeze.pass()
		}
		return nil
	}
	stopFirst := w.start(first)
	t.Cleanup(freeze.release)
	<-freeze.came
	first.mu.Lock()
	frozen := first.current
	first.mu.Unlock()

	second := w.operator(w.definition(&named{name: "young"}, facts), "a-first-by-name")
	second.hooks.reached = func(p point) error {
		if p == beforeCommit {
			hold.pass()
		}
		return nil
	}
	w.start(second)
	t.Cleanup(hold.release)
	// The members are three partitions apart: the second by name has the last. It takes all when the first has left.
	w.await("the second member", func() bool {
		second.mu.Lock()
		defer second.mu.Unlock()
		return second.current != nil && second.current.claims.get(place{facts.Name, 0}) != nil
	})
	<-hold.came
	_ = frozen
	freeze.release()
	w.await("the frozen commit's end", func() bool {
		return value(t, first.metrics.fenced) > 0 || w.count("select count(*) from effects where operator = 'old'") > 0
	})
	hold.release()
	w.await("all effects", func() bool { return w.effects() >= 20 })
	stopFirst()
	return w.count("select count(*) from effects where operator = 'old'"), w.count("select count(*) from effects where operator = 'young'"),
		w, value(t, first.metrics.fenced)
}

func TestAFrozenOwnersCommitIsRefused(t *testing.T) {
	t.Parallel()
	old, young, w, fenced := frozenOwner(t, nil)
	w.exactlyOnce(20)
	if old != 0 || young != 20 || fenced == 0 {
		t.Errorf("effects of the frozen owner %d, of the new one %d, fenced %v; want 0, 20 and some", old, young, fenced)
	}
}

// The test above would fail without the epoch.
func TestTheFenceTestNoticesAMissingEpoch(t *testing.T) {
	t.Parallel()
	old, young, _, _ := frozenOwner(t, func(w *world) { w.mutate("op_commit", "k.epoch = w.epoch and ", "") })
	if old == 0 && young == 20 {
		t.Error("without the epoch condition the frozen owner's commit was still refused: the test proves nothing")
	}
}

// mutate replaces a part of a function in this test's database.
func (w *world) mutate(function, part, by string) {
	w.t.Helper()
	var source string
	err := w.db.Pool.QueryRow(context.Background(), "select pg_get_functiondef(oid) from pg_proc where proname = $1", function).Scan(&source)
	if err != nil {
		w.t.Fatal(err)
	}
	changed := strings.Replace(source, part, by, 1)
	if changed == source {
		w.t.Fatalf("%s does not contain %q", function, part)
	}
	if _, err := w.db.Pool.Exec(context.Background(), changed); err != nil {
		w.t.Fatal(err)
	}
}

// A fenced claim ends its session: its records were delivered, and nobody would read them again.
func TestAFencedClaimIsReadAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	freeze := newGate()
	o := w.operator(w.definition(&ledger{}, facts), "m1")
	o.hooks.reached = func(p point) error {
		if p == beforeCommit {
			freeze.pass()
		}
		return nil
	}
	w.publishOn(0, 20)
	w.start(o)
	t.Cleanup(freeze.release)
	<-freeze.came
	if _, err := w.db.Pool.Exec(t.Context(), "update checkpoints set epoch = epoch + 1 where partition = 0"); err != nil {
		t.Fatal(err)
	}
	freeze.release()
	w.await("a refused commit", func() bool { return value(t, o.metrics.fenced) > 0 })
	w.awaitEffects(20)
}
