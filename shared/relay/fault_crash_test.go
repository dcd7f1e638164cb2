package relay

import (
	"syscall"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/faulttest"
)

// standing is how far a store is published, as somebody sees who reads the cursor and the log.
type standing struct {
	cursor int64
	beyond int64 // records in the log that the cursor does not know of
}

func (e *env) standing() (s standing) {
	e.t.Helper()
	var known int64
	e.scan(&known, "select coalesce(sum(next_offset), 0)::bigint from relay_partitions")
	return standing{e.cursor(), e.ends() - known}
}

// One process after the other is killed, each at its first to third passage of a point.
func TestFaultRelayCrash(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{Number: 2, Name: "Relay crash",
		Does: "kills the relay's process before it sends, after the acknowledgement, before and after the cursor moves, while writers append: none lost, effects once, at most one batch again per kill"})
	e := newEnv(t, threePartitions())
	l := &load{e: e, stores: []*eventstore.Store{e.store(4)}, writers: 8, perTx: 1, pace: 40 * time.Millisecond, dice: run.Dice}
	l.start()

	var plan []point
	for range run.Times(3, 50) {
		plan = append(plan, beforeSend, afterAck, beforeCursor, afterCursor)
	}
	dice := run.Dice()
	dice.Shuffle(len(plan), func(i, j int) { plan[i], plan[j] = plan[j], plan[i] })
	again, before := int64(0), e.standing()
	for i, p := range plan {
		e.process(signalAt(p, 1+dice.IntN(3), syscall.SIGKILL)).killed()
		after := e.standing()
		own := after.beyond // what this process sent and did not note
		if after.cursor == before.cursor {
			own -= before.beyond
		}
		run.Count("kills", 1)
		if sent := p == afterAck || p == beforeCursor; sent != (own > 0) || own > maxEvents {
			t.Errorf("kill %d, at %s: %d records beyond the cursor; at most one batch was expected, and none unless it was acknowledged", i, p, own)
		}
		again, before = again+own, after
	}
	l.end()
	_, stop := e.start()
	e.drained()
	stop()
	run.Count("events", int(l.committed.Load()))
	run.Count("records sent again", int(again))
	if n := e.oracle(l.committed.Load()); int64(n) != again {
		t.Errorf("%d records came again, %d were sent and not noted", n, again)
	}
}
