package operator

import (
	"testing"
)

func TestEveryEventTakesEffectOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	w.publishFacts(facts, 100)
	o := w.operator(w.definition(&ledger{}, facts), "m1")
	stop := w.start(o)
	w.awaitEffects(100)
	w.publishFacts(facts, 50)
	w.awaitEffects(150)
	if err := o.Health(); err != nil {
		t.Error(err)
	}
	stop()
	w.publishFacts(facts, 10)
	w.start(w.operator(w.definition(&ledger{}, facts), "m1"))
	w.awaitEffects(160)
	w.awaitCheckpoints(160)
}

// What Kafka thinks was consumed means nothing: the checkpoint decides, also when it is far behind.
func TestTheDatabaseKnowsWhereToGoOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	log := w.publishOn(0, 30)
	stop := w.start(w.operator(w.definition(&ledger{}, facts), "m1"))
	w.awaitEffects(30)
	stop() // marks are committed to Kafka
	for _, sql := range []string{
		`delete from effects where "offset" >= 10`,
		"update checkpoints set next_offset = 10, source_position = 10 where partition = 0",
	} {
		if _, err := w.db.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	w.start(w.operator(w.definition(&ledger{}, facts), "m1"))
	w.awaitEffects(len(log))
	w.stateFollowsCheckpoints()
}
