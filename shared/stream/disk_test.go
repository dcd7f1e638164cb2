package stream

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"pgregory.net/rapid"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/operator"
)

// disk stands in for the tables, so that a million batches take seconds: what save.sql and free.sql do, and no more.
type disk map[shardKey]*diskPart

type diskPart struct {
	maxTime, expires           int64
	counted, late, quarantined int64
	rows                       []checkpoint
}

// save does what the transaction of a batch does.
func (d disk) save(all []checkpoint) {
	for _, c := range all {
		part := d[c.shardKey]
		if part == nil {
			part = &diskPart{}
			d[c.shardKey] = part
		}
		if c.delta = bytes.Clone(c.delta); len(c.delta) > 0 {
			part.rows = append(part.rows, c)
		}
		part.maxTime, part.expires = c.maxTime, c.expires
		part.counted, part.late, part.quarantined = part.counted+c.counted, part.late+c.late, part.quarantined+c.quarantined
		for len(part.rows) > 0 && part.rows[0].seq < c.low {
			part.rows = part.rows[1:]
		}
	}
}

// size is that of a partition's rows.
func (d disk) size(k shardKey) (size int) {
	if d[k] == nil {
		return 0
	}
	for _, r := range d[k].rows {
		size += len(r.delta)
	}
	return size
}

// restore gives a new process the partitions.
func restore[S any](tb rapid.TB, d disk, from Source, rule Rule[S], keys ...shardKey) *processor[S] {
	tb.Helper()
	p := newProcessor("test", from, rule)
	for _, k := range keys {
		s := newShard[S]()
		if part := d[k]; part != nil {
			s.maxTime, s.expires = part.maxTime, part.expires
			for _, r := range part.rows {
				if err := p.fold(s, r.seq, r.expires, r.delta); err != nil {
					tb.Fatal(err)
				}
			}
		}
		p.restored(k, s)
	}
	return p
}

// try applies a batch, up to the point where its transaction would commit.
func (p *processor[S]) try(tb rapid.TB, batch []operator.Record) ([]events.Event, []checkpoint) {
	tb.Helper()
	var emitted []events.Event
	if err := p.hear(batch, func(_ events.Recorded, e events.Event) error {
		emitted = append(emitted, e)
		return nil
	}); err != nil {
		tb.Fatal(err)
	}
	all, err := p.checkpoints()
	if err != nil {
		tb.Fatal(err)
	}
	return emitted, all
}

// commit applies a batch for good.
func (p *processor[S]) commit(tb rapid.TB, d disk, batch []operator.Record) []events.Event {
	tb.Helper()
	emitted, all := p.try(tb, batch)
	d.save(all)
	p.Settle(true)
	return emitted
}

// states are the living ones of a partition, as text.
func (p *processor[S]) states(tb rapid.TB, k shardKey) map[string]string {
	tb.Helper()
	texts, err := p.texts(p.shards[k])
	if err != nil {
		tb.Fatal(err)
	}
	return texts
}

// audit compares the books of a shard with what they are about.
func (s *shard[S]) audit(tb rapid.TB) {
	tb.Helper()
	live, needed, timed := map[*row]int{}, 0, 0
	for at, e := range s.keys.all() {
		if found, ok := s.keys.find(e.key); !ok || found != at {
			tb.Errorf("%s is at %d, and looked for at %d (%v)", e.key, at, found, ok)
		}
		if e.home != nil && !e.home.gone {
			if !slices.Contains(e.home.places, at) {
				tb.Errorf("the row of %s does not list it", e.key)
			}
			live[e.home]++
			needed += e.size
		}
		if e.timer != 0 {
			timed++
			if !slices.Contains(s.timers, timer{e.timer, e.key}) {
				tb.Errorf("the timer of %s is not in the heap", e.key)
			}
		}
		if !slices.Contains(s.buckets[e.visit].all(), at) {
			tb.Errorf("%s is in no bucket", e.key)
		}
	}
	planned := 0
	for _, due := range s.buckets {
		planned += len(due.all())
	}
	free := s.keys.free.all()
	for _, at := range free {
		if !reflect.ValueOf(s.keys.entry(at)).Elem().IsZero() {
			tb.Errorf("place %d is free, and holds %+v", at, s.keys.entry(at))
		}
	}
	if planned != s.planned || len(free)+s.keys.len() != int(s.keys.ends) {
		tb.Errorf("%d keys are due, the books say %d; of %d places %d are free, beside %d keys", planned, s.planned, s.keys.ends, len(free), s.keys.len())
	}
	bytes := 0
	for _, r := range s.log.rows {
		bytes += r.bytes
		if r.live != live[r] {
			tb.Errorf("row %d holds %d newest entries, the books say %d", r.seq, live[r], r.live)
		}
	}
	if bytes != s.log.bytes || needed != s.log.needed || timed != s.timed {
		tb.Errorf("the log has %d bytes, %d needed, %d timers; the books say %d, %d, %d", bytes, needed, timed, s.log.bytes, s.log.needed, s.timed)
	}
}

func sameText(a, b map[string]string) bool { return maps.Equal(a, b) }

// spoken are events as text.
func spoken(tb rapid.TB, list []events.Event) (texts []string) {
	tb.Helper()
	for _, e := range list {
		b, err := json.Marshal(e)
		if err != nil {
			tb.Fatal(err)
		}
		texts = append(texts, string(b))
	}
	return texts
}
