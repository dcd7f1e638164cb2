package events_test

import (
	"encoding/json"
	"iter"
	"testing"

	"github.com/feira-shop/feira/shared/events"
)

var sink []events.Header

// Relay and operators do this for every record: what it allocates is counted.
func TestTheCodecAllocatesLittle(t *testing.T) {
	r := sample()
	if n := testing.AllocsPerRun(100, func() { sink = events.Headers(r) }); n > 2 {
		t.Errorf("Headers allocates %v times, at most 2 are allowed", n)
	}
	key, headers := headersOf(r)
	if n := testing.AllocsPerRun(100, func() { _, _ = events.FromHeaders(key, r.Data, headers) }); n > 3 {
		t.Errorf("FromHeaders allocates %v times, at most 3 are allowed", n)
	}
}

// headersOf gives a record's key and headers in bytes made beforehand, as a Kafka client holds them.
func headersOf(r events.Recorded) ([]byte, iter.Seq2[[]byte, []byte]) {
	var names, values [][]byte
	for _, h := range events.Headers(r) {
		names, values = append(names, []byte(h.Key)), append(values, []byte(h.Value))
	}
	return []byte(r.Key), func(yield func(k, v []byte) bool) {
		for i := range names {
			if !yield(names[i], values[i]) {
				return
			}
		}
	}
}

func BenchmarkHeaders(b *testing.B) {
	r := sample()
	b.ReportAllocs()
	for b.Loop() {
		sink = events.Headers(r)
	}
}

func BenchmarkFromHeaders(b *testing.B) {
	r := sample()
	key, headers := headersOf(r)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := events.FromHeaders(key, r.Data, headers); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	registry := events.NewRegistry()
	for _, e := range []events.Event{events.OrderStockReserved{Order: "o1"}, complete(events.OrderPlaced{})} {
		data, err := json.Marshal(e)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(e.EventType(), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if _, err := registry.Decode(e.EventType(), data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	e := complete(events.OrderPlaced{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := json.Marshal(e); err != nil {
			b.Fatal(err)
		}
	}
}
