package operator

import (
	"strconv"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/faulttest"
)

// A real process freezes wherever it is in a batch's life, for longer than its session. What it does when it wakes is
// refused and counted, and it goes on as a member like another.
func TestFaultZombieOwner(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{
		Number: 5, Name: "Zombie owner",
		Does: "SIGSTOP of an owner, in the middle of a batch, until another member has taken over and applied all; then it wakes: " +
			"each late commit is refused and counted, and every event took effect once",
	})
	for i := range run.Times(2, 20) {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, facts)
			log := w.publishFacts(facts, 90)
			zombie := w.process(t, "m1", points[(i+1)%len(points)])
			zombie.frozen()
			run.Count("freezes", 1)
			begun := time.Now()
			w.start(w.operator(w.definition(&ledger{}, facts), "m2"))
			w.agrees(log, nil)
			run.Found("takeover, the last one measured", time.Since(begun).Round(100*time.Millisecond).String())
			zombie.thaw()
			w.await("a refused commit", func() bool { return zombie.refused.Load() > 0 })
			log = append(log, w.publishFacts(facts, 30)...)
			w.agrees(log, nil)
			zombie.end()
			run.Count("late commits refused", int(zombie.refused.Load()))
			log = append(log, w.publishFacts(facts, 30)...)
			w.agrees(log, nil)
			if n := w.count("select count(*) from parked"); n != 0 {
				t.Errorf("%d events parked by an owner that woke", n)
			}
		})
	}
}

// Processes are stopped in the middle of whatever they do: nothing is parked for it, and nothing lost or done twice.
func TestFaultStops(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{
		Name: "SIGTERM under load",
		Does: "a process gets a SIGTERM while it works on batches, again and again: exit code 0 each time, nothing parked, every event once",
	})
	const worlds = 4 // side by side
	stops := max(1, run.Times(8, 100)/worlds)
	for i := range worlds {
		dice := run.Dice()
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, facts)
			load := w.load(run.Dice(), 60*time.Millisecond)
			for range stops {
				p := w.process(t, "m1", "")
				more := w.effects() + 1 + dice.IntN(60)
				w.await("effects of the process", func() bool { return w.effects() >= more })
				p.end()
				run.Count("stops", 1)
			}
			log := load.stop()
			w.start(w.operator(w.definition(&ledger{}, facts), "m1"))
			w.agrees(log, nil)
			run.Count("events", len(log))
		})
	}
}
