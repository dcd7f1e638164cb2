package operator

import "testing"

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
