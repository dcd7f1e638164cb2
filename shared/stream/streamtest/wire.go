// Package streamtest makes records as an operator reads them from Kafka, to measure what they cost.
package streamtest

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"
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
	named      []events.Header
	text       bytes.Buffer
	offset     int64
}

// Encode makes the record that of an event, as its owner's relay publishes it, with position offset+1 and the time of
// its Meta as that of its recording. The room of the record before is used again, with what Read and Record gave of it: where the operator's
// memory is measured, its records' should not count.
func (w *Wire) Encode(tb testing.TB, topic events.Topic, offset int64, meta events.Meta, e events.Event) {
	tb.Helper()
	w.text.Reset()
	if err := json.NewEncoder(&w.text).Encode(e); err != nil {
		tb.Fatal(err)
	}
	data := bytes.TrimSpace(w.text.Bytes())
	w.topic, w.offset = topic.Name, offset
	w.key, w.value = append(w.key[:0], e.EventKey()...), data
	w.named = events.AppendHeaders(w.named[:0], events.Recorded{
		Meta: meta, Type: e.EventType(), Source: topic.Source(), Subject: e.EventKey(), Key: e.EventKey(),
		Sequence: offset + 1, Previous: offset, HasPrevious: true, RecordedAt: meta.Time, Data: data,
	})
	w.headers = slices.Grow(w.headers[:0], len(w.named))[:len(w.named)]
	for i, h := range w.named {
		w.headers[i] = [2][]byte{append(w.headers[i][0][:0], h.Key...), append(w.headers[i][1][:0], h.Value...)}
	}
}

// Read decodes the record as an operator does.
//
//nolint:thelper // a twentieth of what is measured would be Helper
func (w *Wire) Read(tb testing.TB, registry *events.Registry) operator.Record {
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
