package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
)

var dawn = time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)

// However records are split into batches and halves, and whichever batches are passed over in memory first: before each
// record the handler has heard the newest time that was told before it, and in the end of all.
func TestTheTimeOfOtherEventsDoesNotDependOnBatches(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		items, want := drawClocks(t)
		c := &claim{
			place: place{"facts", 0}, session: bystander{ctx: context.Background()}, queue: newQueue(100, 1000),
			ended: make(chan struct{}), restored: true,
		}
		c.queue.offer(items)
		var got []string
		heard := time.Time{}
		hear := func(b batch) {
			for _, r := range b.records() {
				if r.Type == events.TickType {
					heard = later(heard, r.Time)
					continue
				}
				got = append(got, fmt.Sprint(r.Offset, heard.Sub(dawn)))
			}
		}
		for {
			b, _ := take([]*claim{c}, rapid.IntRange(1, 30).Draw(t, "batch"))
			if len(b) == 0 {
				break
			}
			c.at = b[0].to
			if b.idle() {
				c.clock = b[0].told()
				continue
			}
			if b.handed() > 1 && rapid.Bool().Draw(t, "halve") {
				first, second := b.halve()
				hear(first)
				hear(second)
			} else {
				hear(b)
			}
			c.clock = time.Time{}
		}
		hear(batch{c.part()}) // as flush does
		if got = append(got, fmt.Sprint("end ", heard.Sub(dawn))); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("the handler heard %v, want %v", got, want)
		}
	})
}

// drawClocks draws records of a partition, and says what the handler must have heard before each that it gets.
func drawClocks(t *rapid.T) (items []*item, want []string) {
	newest := time.Time{}
	for i := range rapid.IntRange(1, 30).Draw(t, "records") {
		it := &item{rec: Record{Topic: "facts", Offset: int64(i)}, after: int64(i)}
		it.fate = rapid.SampledFrom([]fate{applied, filtered, filtered, unknown, duplicate, parking}).Draw(t, "fate")
		if it.fate == filtered || it.fate == unknown || it.fate == duplicate { // one that was applied before
			it.clock = dawn.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "clock")) * time.Second)
		}
		items = append(items, it)
		switch it.fate {
		case applied:
			want = append(want, fmt.Sprint(i, newest.Sub(dawn)))
		case filtered, unknown:
			newest = later(newest, it.clock)
		case duplicate, parking:
		}
	}
	return items, append(want, fmt.Sprint("end ", newest.Sub(dawn)))
}

func TestWhatTellsTheTime(t *testing.T) {
	t.Parallel()
	w := &world{t: t, last: map[place]int64{}}
	registry := events.NewRegistry(happened{})
	strangers := events.Topic{Name: "clicks", Partitions: 1}
	wanted, others := []string{happened{}.EventType()}, []string{"shop.feira.order.placed.v1"}
	good := w.fact(facts, 0, "k")
	invented := with(good, events.HeaderType, "x.y.v1")
	recorded := dawn.Add(time.Hour).Format(time.RFC3339Nano)
	for _, tt := range []struct {
		name  string
		topic events.Topic
		types []string
		time  time.Duration // after dawn
		own   bool          // the operator goes by another time
		known bool
		want  time.Duration // after dawn; negative: it does not tell
	}{
		{"not wanted", facts, others, time.Minute, false, true, time.Minute},
		{"unknown", facts, wanted, time.Minute, false, false, time.Minute},
		{"from the future", facts, others, 2 * time.Hour, false, true, time.Hour},
		{"wanted: the handler sees for itself", facts, wanted, time.Minute, false, true, -1},
		{"another time", facts, others, time.Minute, true, true, -1},
		{"strangers", strangers, others, time.Minute, false, true, -1},
	} {
		r := good
		if !tt.known {
			r = invented
		}
		r = with(with(r, events.HeaderTime, dawn.Add(tt.time).Format(time.RFC3339Nano)), events.HeaderRecorded, recorded)
		in := Definition{Topics: []events.Topic{tt.topic}, Types: tt.types, Clock: map[string]bool{tt.topic.Name: !tt.own}}.inspector(tt.topic.Name, registry, true)
		it := in.inspect(rawRecord(r), 0, 5)
		got := time.Duration(-1)
		if !it.clock.IsZero() {
			got = it.clock.Sub(dawn)
		}
		if got != tt.want {
			t.Errorf("%s: it tells %s, want %s (fate %v)", tt.name, got, tt.want, it.fate)
		}
	}
	if in := (Definition{Topics: []events.Topic{facts}, Types: others, Clock: map[string]bool{facts.Name: true}}).inspector(facts.Name, registry, false); in.clock {
		t.Error("a handler without state is told the time")
	}
}

// timeless refuses what the time brings about.
type timeless struct{ remembering }

func (s *timeless) Apply(ctx context.Context, tx *eventstore.Tx, batch []Record) error {
	if slices.ContainsFunc(batch, func(r Record) bool { return r.Type == events.TickType }) {
		return Reject(errors.New("the time has come for something impossible"))
	}
	return s.remembering.Apply(ctx, tx, batch)
}

// What an operator makes of the time alone may fail for good: it does not stop at the events that told it, which are none
// of its own and cannot be parked.
func TestTimeThatCannotGoOnStopsNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	for range 5 { // in one batch with what is wanted, on the same partition and on another
		w.publish(with(w.fact(facts, 0, "k"), events.HeaderType, "x.y.v1"), w.fact(facts, 0, "k"), w.fact(facts, 1, "l"))
	}
	w.publish(with(w.fact(facts, 0, "k"), events.HeaderType, "x.y.v1"))
	def := w.definition(&timeless{}, facts)
	def.Clock = map[string]bool{facts.Name: true}
	w.start(w.operator(def, "m1"))
	w.awaitCheckpoints(16)
	w.publishOn(0, 5)
	w.await("effects", func() bool { return w.effects() == 15 })
	if parked := w.parkedReasons(); len(parked) > 0 {
		t.Errorf("parked: %v", parked)
	}
}

// What is replayed comes after all that was passed over, also after what waits to be saved: so whether it is late does not
// depend on when that was.
func TestAReplayComesAfterWhatWasPassedOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	s := &remembering{}
	bad := w.fact(facts, 0, "k")
	s.refuse(idOf(bad))
	w.publish(bad)
	def := w.definition(s, facts)
	def.Clock = map[string]bool{facts.Name: true}
	o := w.operator(def, "m1")
	o.timing.lazy = time.Hour
	w.start(o)
	w.await("parked", func() bool { return len(w.parkedReasons()) == 1 })
	for range 3 {
		w.publish(with(w.fact(facts, 0, "k"), events.HeaderType, "x.y.v1"))
	}
	w.await("three to be passed over", func() bool { return value(t, o.metrics.unknown) == 3 })
	s.refuse()
	ids, err := Replay(t.Context(), w.db.Pool, Selection{Operator: o.Name()}, "ana")
	if err != nil {
		t.Fatal(err)
	}
	w.awaitRequests(ids)
	w.awaitCheckpoints(4)
}
