// Package streamtest makes records as an operator reads them from Kafka, to measure what they cost.
package streamtest

import (
	"encoding/json"
	"iter"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/operator"
)

// Wire is a record as a consumer gets it.
type Wire struct {
	topic      string
	key, value []byte
	headers    [][2][]byte
	offset     int64
}

// Wired encodes an event as its owner's relay publishes it, with position offset+1 and the time of its Meta as that of
// its recording.
func Wired(tb testing.TB, topic events.Topic, offset int64, meta events.Meta, e events.Event) Wire {
	tb.Helper()
	data, err := json.Marshal(e)
	if err != nil {
		tb.Fatal(err)
	}
	w := Wire{topic: topic.Name, key: []byte(e.EventKey()), value: data, offset: offset}
	for _, h := range events.Headers(events.Recorded{
		Meta: meta, Type: e.EventType(), Source: topic.Source(), Subject: e.EventKey(), Key: e.EventKey(),
		Sequence: offset + 1, Previous: offset, HasPrevious: true, RecordedAt: meta.Time, Data: data,
	}) {
		w.headers = append(w.headers, [2][]byte{[]byte(h.Key), []byte(h.Value)})
	}
	return w
}

// Read decodes the record as an operator does.
func (w *Wire) Read(tb testing.TB, registry *events.Registry) operator.Record {
	tb.Helper()
	rec, err := events.FromHeaders(w.key, w.value, w.pairs())
	if err == nil {
		rec.Event, err = registry.Decode(rec.Type, rec.Data)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return operator.Record{Recorded: rec, Topic: w.topic, Offset: w.offset}
}

// Record is what there is to publish.
func (w *Wire) Record() *kgo.Record {
	r := &kgo.Record{Topic: w.topic, Key: w.key, Value: w.value}
	for _, h := range w.headers {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: string(h[0]), Value: h[1]})
	}
	return r
}

func (w *Wire) pairs() iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		for _, h := range w.headers {
			if !yield(h[0], h[1]) {
				return
			}
		}
	}
}
