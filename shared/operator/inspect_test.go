package operator

import (
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/feira-shop/feira/shared/events"
)

func rawRecord(r *kgo.Record) raw {
	out := raw{key: r.Key, value: r.Value, timestamp: time.Now()}
	for _, h := range r.Headers {
		out.headers = append(out.headers, &sarama.RecordHeader{Key: []byte(h.Key), Value: h.Value})
	}
	return out
}

func TestRecordsAreJudged(t *testing.T) {
	t.Parallel()
	w := &world{t: t, last: map[place]int64{}}
	registry := events.NewRegistry(happened{})
	compacted := events.Topic{Name: "things", Owner: "facts", Partitions: 1, Compacted: true}
	strangers := events.Topic{Name: "clicks", Partitions: 1}
	wanted := []string{happened{}.EventType()}
	good := w.fact(facts, 0, "k")
	tick := record(facts, 0, events.Tick(facts, 0, time.Now()))
	bytes := func(v []byte) *kgo.Record { return &kgo.Record{Key: []byte("k"), Value: v} }
	tests := []struct {
		name            string
		topic           events.Topic
		types           []string
		ticks           bool
		record          *kgo.Record
		fate            fate
		reason          string
		counted, chains bool
	}{
		{"good", facts, nil, false, good, applied, "", true, true},
		{"wanted", facts, wanted, false, good, applied, "", true, true},
		{"not wanted", facts, []string{"shop.feira.order.placed.v1"}, false, good, filtered, "", true, true},
		{"0xFF", facts, nil, false, bytes([]byte{0xff}), parking, reasonNotCloudEvent, false, false},
		{"empty", facts, nil, false, bytes([]byte{}), parking, reasonNotCloudEvent, false, false},
		{"no headers", facts, wanted, false, bytes(good.Value), parking, reasonNotCloudEvent, false, false},
		{"unknown type", facts, nil, false, with(good, events.HeaderType, "shop.feira.thing.vanished.v1"), unknown, "", true, true},
		{"unknown type, some wanted", facts, wanted, false, with(good, events.HeaderType, "x.y.v1"), unknown, "", true, true},
		{"unknown version", facts, nil, false, with(good, events.HeaderType, "shop.feira.thing.happened.v7"), parking, reasonUnknownVersion, true, true},
		{"unknown version of a wanted type", facts, wanted, false, with(good, events.HeaderType, "shop.feira.thing.happened.v7"), parking, reasonUnknownVersion, true, true},
		{"unknown version of another type", facts, []string{"shop.feira.order.placed.v1"}, false, with(good, events.HeaderType, "shop.feira.thing.happened.v7"), filtered, "", true, true},
		{"foreign source", facts, nil, false, with(good, events.HeaderSource, "/feira/somebody"), parking, reasonForeignSource, false, false},
		{"foreign source, not wanted", facts, []string{"shop.feira.order.placed.v1"}, false, with(good, events.HeaderSource, "/feira/somebody"), parking, reasonForeignSource, false, false},
		{"no sequence", facts, nil, false, without(without(good, events.HeaderSequence), events.HeaderPrevious), parking, reasonNotCloudEvent, false, false},
		{"no chain", facts, nil, false, without(good, events.HeaderPrevious), parking, reasonNotCloudEvent, false, false},
		{"tick for a handler with state", facts, wanted, true, tick, applied, "", false, false},
		{"tick for others", facts, nil, false, tick, filtered, "", false, false},
		{"somebody's tick", facts, nil, true, with(tick, events.HeaderSource, "/x"), parking, reasonForeignSource, false, false},
		{"compacted", compacted, nil, false, without(good, events.HeaderPrevious), applied, "", true, false},
		{"tombstone", compacted, nil, false, bytes(nil), applied, "", false, false},
		{"tombstone wanted", compacted, []string{Tombstone}, false, bytes(nil), applied, "", false, false},
		{"tombstone not wanted", compacted, wanted, false, bytes(nil), filtered, "", false, false},
		{"no value on another topic", facts, nil, false, bytes(nil), parking, reasonNotCloudEvent, false, false},
		{"a stranger", strangers, nil, false, with(good, events.HeaderSource, "/x"), applied, "", false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			it := newInspector(tt.topic, registry, tt.types, tt.ticks).inspect(rawRecord(tt.record), 0, 5)
			if it.fate != tt.fate || it.reason != tt.reason || it.counted != tt.counted || it.chained != tt.chains {
				t.Errorf("got fate %v reason %q counted %v chained %v (%s)", it.fate, it.reason, it.counted, it.chained, it.problem)
			}
			if it.fate == applied && it.rec.Type == (happened{}).EventType() && it.rec.Event == nil {
				t.Error("it was not decoded")
			}
		})
	}
}
