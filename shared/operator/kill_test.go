package operator

import (
	"sync/atomic"
	"testing"
)

// Killed between any two points, the database always shows exactly the effects up to its checkpoints.
func TestKilledAnywhereNothingIsLostOrDoubled(t *testing.T) {
	t.Parallel()
	for _, at := range []point{beforeBegin, afterApply, beforeCommit, afterCommit, afterMark} {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, facts)
			published := 0
			for round := range 3 {
				published += len(w.publishFacts(facts, 60))
				def := w.definition(&ledger{}, facts)
				def.MaxBatch = 20
				o := w.operator(def, "m1")
				var hits, dead atomic.Int64
				killed := make(chan struct{})
				o.hooks.dead = func() bool { return dead.Load() > 0 }
				o.hooks.reached = func(p point) error {
					if dead.Load() > 0 {
						return errKilled
					}
					if p == at && hits.Add(1) == int64(round%2+1) {
						dead.Store(1)
						close(killed)
						return errKilled
					}
					return nil
				}
				stop := w.start(o)
				<-killed
				stop()
				w.stateFollowsCheckpoints()
			}
			w.start(w.operator(w.definition(&ledger{}, facts), "m1"))
			w.awaitEffects(published)
			w.stateFollowsCheckpoints()
		})
	}
}

// stateFollowsCheckpoints demands the effects of exactly the records below each checkpoint.
func (w *world) stateFollowsCheckpoints() {
	w.t.Helper()
	wrong := w.count(`select count(*) from (
		select k.next_offset, count(e.n) as effects, count(e.n) filter (where e."offset" < k.next_offset) as below
		from checkpoints k left join effects e on e.topic = k.topic and e.partition = k.partition
		group by k.topic, k.partition, k.next_offset) x
		where next_offset <> effects or effects <> below`)
	if wrong != 0 {
		w.t.Fatalf("%d partitions have effects that do not follow from their checkpoint", wrong)
	}
}
