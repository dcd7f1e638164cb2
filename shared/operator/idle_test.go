package operator

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
)

// A partition that gets nothing for a while is ticked by the operator itself, again and again, without moving its
// offset; one that the broker cannot be asked about is not: what it has may be anything.
func TestIdlePartitionsAreTicked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	network := w.behind()
	w.publishFacts(facts, 9)
	s := &remembering{}
	def := w.definition(s, facts)
	def.Idle = map[string]time.Duration{facts.Name: 300 * time.Millisecond}
	o := w.operator(def, "m1")
	o.timing.idle = 30 * time.Millisecond
	w.start(o)
	ticks := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.ticks
	}
	w.await("two ticks of three partitions", func() bool { return ticks() >= 6 })
	w.awaitCheckpoints(9)
	w.exactlyOnce(9)
	network.Down()
	before := ticks()
	<-time.After(time.Second) // three times as long as a partition must be silent
	if after := ticks(); after > before+3 {
		t.Errorf("%d ticks while the broker was away", after-before)
	}
	network.Up()
	w.await("ticks again", func() bool { return ticks() > before+3 })
	w.publishFacts(facts, 9)
	w.awaitCheckpoints(18)
	w.exactlyOnce(18)
}

// Records of programs that know nothing of CloudEvents are events of the topic's plain type, named by their place and
// recorded when the broker stamped them. A bad one is parked and blocks nobody, not even records of its key.
func TestPlainRecordsOfStrangers(t *testing.T) {
	t.Parallel()
	notes := events.Topic{Name: "notes", Partitions: 1, Retention: time.Hour, LogAppendTime: true, Plain: happened{}.EventType()}
	w := newWorld(t, notes)
	stamp := time.Unix(1_700_000_000, 0).UTC() // the embedded broker leaves stamps as they are
	plain := func(value string) *kgo.Record {
		return &kgo.Record{Topic: notes.Name, Key: []byte("k"), Value: []byte(value), Timestamp: stamp}
	}
	claimed := with(w.fact(notes, 0, "k"), events.HeaderSource, "/x") // it says that it was recorded just now
	claimed.Timestamp = stamp
	w.publish(plain(`{"key":"a","n":1}`), plain(`not json`), plain(`{"key":"b","n":2}`), claimed, &kgo.Record{Topic: notes.Name})
	heard := &hearing{}
	w.start(w.operator(w.definition(heard, notes), "m1"))
	w.awaitCheckpoints(5)
	heard.mu.Lock()
	defer heard.mu.Unlock()
	if got, err := json.Marshal(heard.what); err != nil || string(got) != `["notes/0/0 a","notes/0/2 b","`+idOf(claimed)+` k"]` {
		t.Errorf("heard %s (%v)", got, err)
	}
	for _, at := range heard.recorded {
		if !at.Equal(stamp) {
			t.Errorf("an event was recorded at %s, the record was stamped at %s", at, stamp)
		}
	}
	if n := w.count(`select count(*) from parked where "offset" in (1, 4) and reason = 'invalid_data'`); n != 2 {
		t.Errorf("%d of 2 bad records are parked", n)
	}
}

// hearing remembers what it was told.
type hearing struct {
	mu       sync.Mutex
	what     []string
	recorded []time.Time
}

func (h *hearing) Apply(_ context.Context, _ *eventstore.Tx, b []Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range b {
		h.what = append(h.what, r.ID+" "+r.Event.(happened).Key)
		h.recorded = append(h.recorded, r.RecordedAt)
	}
	return nil
}
