package operator

import (
	"errors"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
)

var errUnsettled = errors.New("the last Apply was not settled")

func TestStateInMemoryFollowsTheDatabase(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	log := w.publishFacts(facts, 40)
	s := &remembering{}
	s.refuse(idOf(log[7]), idOf(log[20])) // one of each key waits behind
	o := w.operator(w.definition(s, facts), "m1")
	stop := w.start(o)
	w.await("parked", func() bool { return len(w.parkedReasons()) == 4 })
	w.awaitCheckpoints(40)
	if s.total() != 36 || w.effects() != 36 {
		t.Errorf("%d in memory, %d in the database, want 36", s.total(), w.effects())
	}
	s.refuse()
	ids, err := Replay(t.Context(), w.db.Pool, Selection{Operator: o.Name()}, "ana")
	if err != nil {
		t.Fatal(err)
	}
	w.awaitRequests(ids)
	if s.total() != 40 {
		t.Errorf("%d in memory after the replay, want 40", s.total())
	}
	// Another owner: state is released, and restored after the epoch was raised.
	if _, err := w.db.Pool.Exec(t.Context(), "update checkpoints set epoch = epoch + 1"); err != nil {
		t.Fatal(err)
	}
	w.publishFacts(facts, 10)
	w.awaitEffects2(50)
	w.await("the memory", func() bool { return s.total() == 50 })
	stop()
	if s.total() != 0 || s.restores != s.releases {
		t.Errorf("%d left in memory; %d restores, %d releases", s.total(), s.restores, s.releases)
	}
}

// awaitEffects2 is awaitEffects after replays, which come out of order on purpose.
func (w *world) awaitEffects2(n int) {
	w.t.Helper()
	w.await("effects", func() bool { return w.effects() >= n })
	if got := w.count("select count(distinct id) from effects"); got != n || w.effects() != n {
		w.t.Fatalf("%d effects of %d events, want %d", w.effects(), got, n)
	}
}

// A member whose partitions all go to others lets go of their state, although it hears of no record any more.
func TestAMemberWithoutPartitionsRemembersNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	members := &crowd{}
	def := w.definition(nil, facts)
	def.Handler = func(*eventstore.Store) Handler { return members.add(&remembering{}) }
	for p := range int32(3) {
		w.publishOn(p, 5)
	}
	w.start(w.operator(def, "m9")) // others come before it in the order of names, by which partitions are given
	w.awaitEffects(15)
	for _, name := range []string{"m1", "m2", "m3"} {
		w.start(w.operator(def, name))
	}
	w.await("the first member to remember nothing", func() bool { return members.all[0].total() == 0 })
	w.awaitMemory(members)
}

func TestTicksReachHandlersWithStateOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	w.publishOn(0, 5)
	w.publish(record(facts, 0, events.Tick(facts, 0, time.Now())))
	w.publishOn(0, 5)
	s := &remembering{}
	w.start(w.operator(w.definition(s, facts), "m1"))
	plain := w.definition(&ledger{}, facts)
	plain.Name = "tests.plain"
	w.start(w.operator(plain, "m1"))
	w.await("effects", func() bool { return w.effects() == 20 })
	w.awaitCheckpoints(22)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ticks != 1 {
		t.Errorf("%d ticks, want 1", s.ticks)
	}
}
