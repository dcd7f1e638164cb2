package operator

import (
	"context"
	"errors"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/faulttest"
)

// Members come and go, the handler fails now and then, and some events can never be applied.
func TestFaultRebalances(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{
		Number: 6, Name: "Rebalance churn",
		Does: "a member joins or leaves every 2 s, 1 % of the batches fail for a while, 0.5 % of the events can never be applied: " +
			"these and those behind them of their keys are parked, no other one, every other event took effect once and in order, " +
			"state in memory is that of the database, and all is settled 15 s after the last event",
	})
	w := newWorld(t, facts)
	poison := poisonous(run.Dice())
	before, members := shaky(run.Dice()), &crowd{}
	def := w.definition(nil, facts)
	def.MaxBatch = 25
	def.Handler = func(*eventstore.Store) Handler {
		return members.add(&remembering{ledger: ledger{poison: poison, before: before}})
	}
	load := w.load(run.Dice(), 60*time.Millisecond)
	w.churn(run, def)
	log := load.stop()
	quiet := time.Now()
	w.agrees(log, poison)
	w.awaitMemory(members)
	took := time.Since(quiet)
	if took > 15*time.Second {
		t.Errorf("settled %s after the last event, want at most 15 s", took)
	}
	run.Found("settled after the last event", took.Round(10*time.Millisecond).String())
	run.Count("events", len(log))
	run.Count("parked for themselves", w.count("select count(*) from parked where reason = $1", reasonRejected))
	run.Count("parked behind them", w.count("select count(*) from parked where reason = $1", reasonWaiting))
}

// crowd are the handlers of all members that ever were. One that stopped remembers nothing any more.
type crowd struct {
	mu  sync.Mutex
	all []*remembering
}

func (c *crowd) add(r *remembering) *remembering {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, r)
	return r
}

// remembered is what each handler remembers, by partition.
func (c *crowd) remembered() []map[int32]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []map[int32]int
	for _, r := range c.all {
		r.mu.Lock()
		all = append(all, maps.Clone(r.counts))
		r.mu.Unlock()
	}
	return all
}

// awaitMemory demands that each partition is remembered by one member, as the database has it.
func (w *world) awaitMemory(c *crowd) {
	w.t.Helper()
	rows, err := w.db.Pool.Query(w.t.Context(), "select partition, count(*)::int from effects group by partition")
	if err != nil {
		w.t.Fatal(err)
	}
	want := map[int32]int{}
	var partition int32
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&partition, &n}, func() error {
		want[partition] = n
		return nil
	}); err != nil {
		w.t.Fatal(err)
	}
	defer func() {
		if w.t.Failed() {
			w.t.Logf("the members remember %v, the database has %v", c.remembered(), want)
		}
	}()
	w.await("the memory of all members", func() bool {
		have := map[int32]int{}
		for _, counts := range c.remembered() {
			for partition, n := range counts {
				have[partition] += n
			}
		}
		maps.DeleteFunc(have, func(_ int32, n int) bool { return n == 0 })
		return maps.Equal(have, want)
	})
}

// churn has a member join or leave every 2 s; m0 stays.
func (w *world) churn(run *faulttest.Run, def Definition) {
	w.start(w.operator(def, "m0"))
	dice, members := run.Dice(), map[string]func(){}
	change := time.NewTicker(2 * time.Second)
	defer change.Stop()
	for end := time.Now().Add(run.For(8*time.Second, 3*time.Minute)); time.Now().Before(end); <-change.C {
		name := "m" + strconv.Itoa(1+dice.IntN(3))
		if stop := members[name]; stop != nil {
			stop()
			delete(members, name)
			run.Count("members that left", 1)
			continue
		}
		members[name] = w.start(w.operator(def, name))
		run.Count("members that joined", 1)
	}
}

// poisonous draws the events that can never be applied, one in 200.
func poisonous(dice *rand.Rand) func(id string) bool {
	salt := strconv.FormatUint(dice.Uint64(), 36)
	return func(id string) bool {
		h := fnv.New64a()
		_, _ = h.Write([]byte(salt + id)) // it cannot fail
		return h.Sum64()%200 == 0
	}
}

var errShaky = errors.New("not now")

// shakyFor is longer than it takes to halve a batch down to one event, which must not be parked for an error that passes.
const shakyFor = 200 * time.Millisecond

// shaky begins to fail at one call in a hundred, and at the tenth, and fails for a while.
func shaky(dice *rand.Rand) func(context.Context, *eventstore.Tx, []Record) error {
	var mu sync.Mutex
	var calls int
	var until time.Time
	return func(context.Context, *eventstore.Tx, []Record) error {
		mu.Lock()
		defer mu.Unlock()
		if calls++; calls == 10 || dice.IntN(100) == 0 {
			until = time.Now().Add(shakyFor)
		}
		if time.Now().Before(until) {
			return errShaky
		}
		return nil
	}
}
