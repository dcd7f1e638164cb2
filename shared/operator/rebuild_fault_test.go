package operator

import (
	"errors"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/faulttest"
)

// A projection is damaged and rebuilt under load, and the rebuild is ended at each of its steps.
func TestFaultRebuildBesideTheRunningOperator(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{
		Name: "Rebuild beside", Does: "damages a projection and rebuilds it beside the running operator, ended at each step → equal to the oracle's, nothing lost or doubled by the switch",
	})
	w := newWorld(t, facts)
	_, def := w.tallying()
	l := w.load(run.Dice(), 150*time.Millisecond) // each of two hundred rebuilds begins at the log's start: faster, none would catch up
	w.start(w.operator(def, "m1"))
	l.await(300)
	w.await("the operator to have applied some", func() bool { return w.count("select coalesce(sum(n), 0) from tallies") >= 300 })
	steps := []string{"prepared", "applied", "caught up", "locked", "replaced", "switched"}
	for range run.Times(1, 30) {
		for _, step := range steps {
			w.damage("true")
			_, err := w.rebuild(def, nil, false, func(at string) error {
				if at == step {
					return errKilled
				}
				return nil
			})
			if !errors.Is(err, errKilled) {
				t.Fatalf("killed at %q: %v", step, err)
			}
			run.Count("rebuilds ended half way", 1)
			l.await(20) // the running operator goes on
		}
		w.damage("true")
		done, err := w.rebuild(def, nil, false, nil)
		if err != nil || !done.Switched || len(done.Tables) != 1 || done.Same() {
			t.Fatalf("rebuilt %+v, %v", done, err)
		}
		run.Count("rebuilds", 1)
		run.Found("running operator held up", done.WaitedFor.Round(time.Millisecond).String())
		l.await(20)
	}
	log := l.stop()
	w.awaitCheckpoints(len(log))
	w.tallied(log, nil)
	if n := w.count("select count(*) from pg_namespace where nspname like 'rebuild%'"); n != 0 {
		t.Errorf("%d schemas left over", n)
	}
	if n := w.count("select count(*) from operator_audit where action = 'rebuild' and who = 'ana'"); n == 0 {
		t.Error("no audit row")
	}
}

// A batch that the running operator has computed from the old content when the new takes its place is refused, and done
// again on the new.
func TestFaultRebuildFencesWhatWasReadBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	h, def := w.tallying()
	w.start(w.operator(def, "m1"))
	log := w.publishFacts(facts, 36)
	w.awaitCheckpoints(36)
	w.damage("true")
	var release func()
	done, err := w.rebuild(def, nil, false, func(at string) error {
		switch at {
		case "caught up":
			var held <-chan struct{}
			held, release = h.hold()
			log = append(log, w.publishFacts(facts, 18)...)
			<-held // it has read what is wrong,
		case "replaced":
			release() // and writes what follows from it when the switch is done
		}
		return nil
	})
	if err != nil || !done.Switched || done.Same() {
		t.Fatalf("rebuilt %+v, %v", done, err)
	}
	w.awaitCheckpoints(54)
	w.tallied(log, nil)
}
