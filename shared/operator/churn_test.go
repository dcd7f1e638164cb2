package operator

import (
	"context"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

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
			"and all is settled 15 s after the last event",
	})
	w := newWorld(t, facts)
	poison := poisonous(run.Dice())
	def := w.definition(&ledger{poison: poison, before: shaky(run.Dice())}, facts)
	def.MaxBatch = 25
	dice, load := run.Dice(), w.load(run.Dice(), 60*time.Millisecond)
	members := map[string]func(){"m0": w.start(w.operator(def, "m0"))}
	change := time.NewTicker(2 * time.Second)
	defer change.Stop()
	for end := time.After(run.For(8*time.Second, 3*time.Minute)); ; {
		name := "m" + strconv.Itoa(1+dice.IntN(3)) // m0 stays
		if stop := members[name]; stop != nil {
			stop()
			delete(members, name)
			run.Count("members that left", 1)
		} else {
			members[name] = w.start(w.operator(def, name))
			run.Count("members that joined", 1)
		}
		select {
		case <-change.C:
			continue
		case <-end:
		}
		break
	}
	log := load.stop()
	quiet := time.Now()
	w.agrees(log, poison)
	took := time.Since(quiet)
	if took > 15*time.Second {
		t.Errorf("settled %s after the last event, want at most 15 s", took)
	}
	run.Found("settled after the last event", took.Round(10*time.Millisecond).String())
	run.Count("events", len(log))
	run.Count("parked for themselves", w.count("select count(*) from parked where reason = $1", reasonRejected))
	run.Count("parked behind them", w.count("select count(*) from parked where reason = $1", reasonWaiting))
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

// shaky fails one call in a hundred.
func shaky(dice *rand.Rand) func(context.Context, *eventstore.Tx, []Record) error {
	var mu sync.Mutex
	return func(context.Context, *eventstore.Tx, []Record) error {
		mu.Lock()
		defer mu.Unlock()
		if dice.IntN(100) == 0 {
			return errShaky
		}
		return nil
	}
}
