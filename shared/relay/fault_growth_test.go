package relay

import (
	"fmt"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/faulttest"
)

// Appending leaves no dead rows among the events, and a poll costs the same however many events have been through.
func TestFaultManyEvents(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{Name: "Many events",
		Does: "puts 200,000 events through store and relay: no dead rows among the events, and after the last tenth a poll takes at most 1.5 times what it takes after the first"})
	e := newEnv(t, threePartitions())
	s, stop := e.runStore(2)
	l := e.elect()
	all := run.Times(10, 200) * maxEvents
	var first pollCost
	for n := 0; n < all; n += maxEvents {
		var appends []eventstore.Append
		for i := range maxEvents / 10 {
			appends = append(appends, ordered(fmt.Sprintf("order-%d-%d", n, i), 0, 10))
		}
		if err := inTx(t.Context(), s, appends, "es_commit"); err != nil {
			t.Fatal(err)
		}
		for more := true; more; {
			var err error
			if more, err = l.round(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if first.full == 0 && n+maxEvents >= all/10 {
			first = e.pollCost(l)
		}
	}
	// Other programs only make a poll slower, so what it really takes is the least of many.
	last := e.pollCost(l)
	for range 20 {
		if last.within(first) {
			break
		}
		last = last.least(e.pollCost(l))
	}
	if !last.within(first) {
		t.Errorf("a poll took %+v after the first tenth and %+v after the last", first, last)
	}
	run.Count("events", all)
	run.Found("poll with nothing and with 1000 events, after the first tenth", first.String())
	run.Found("after the last", last.String())

	if err := l.close(t.Context()); err != nil {
		t.Error(err)
	}
	stop() // sessions tell the statistics of their rows when they end
	var dead int
	e.until("the statistics know of all events", func() bool {
		var inserted int
		e.scan(&inserted, "select sum(n_tup_ins)::int from pg_stat_user_tables where "+ofEvents)
		return inserted >= all
	})
	if e.scan(&dead, "select sum(n_dead_tup)::int from pg_stat_user_tables where "+ofEvents); dead != 0 {
		t.Errorf("%d dead rows among the events", dead)
	}
	if n := e.oracle(int64(all)); n != 0 {
		t.Errorf("%d events were repeated", n)
	}
}

// ofEvents holds for the table of events, and for its parts where it has any.
const ofEvents = "relid = 'events'::regclass or relid in (select relid from pg_partition_tree('events'))"

// pollCost is how long the relay's read takes.
type pollCost struct{ idle, full time.Duration }

func (c pollCost) String() string {
	return c.idle.Round(time.Microsecond).String() + ", " + c.full.Round(time.Microsecond).String()
}

func (c pollCost) within(first pollCost) bool {
	return c.idle <= first.idle*3/2 && c.full <= first.full*3/2
}

func (c pollCost) least(d pollCost) pollCost {
	return pollCost{min(c.idle, d.idle), min(c.full, d.full)}
}

// pollCost reads at the end of the store, and a full batch before it.
func (e *env) pollCost(l *leader) pollCost {
	e.t.Helper()
	end := l.position
	defer func() { l.position = end }()
	read := func(from int64, want int) time.Duration {
		l.position = from
		began := time.Now()
		b, err := l.read(e.t.Context())
		if took := time.Since(began); err == nil && b.rows == want {
			return took
		}
		e.t.Fatalf("read from %d: %v, expected %d events", from, err, want)
		return 0
	}
	least := pollCost{time.Hour, time.Hour}
	for range 20 {
		least = least.least(pollCost{read(end, 0), read(end-maxEvents, maxEvents)})
	}
	return least
}
