package events_test

import (
	"errors"
	"iter"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/feira-shop/feira/shared/events"
)

// each hands headers to FromHeaders as a Kafka client does.
func each(hs []events.Header) iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		for _, h := range hs {
			if !yield([]byte(h.Key), []byte(h.Value)) {
				return
			}
		}
	}
}

func sample() events.Recorded {
	at := time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)
	return events.Recorded{
		Meta: events.Meta{
			ID: "0195512e-5e40-7b3a-8f6e-0f6d9f0c1a2b", Time: at, Correlation: "request-1", Causation: "command-1",
			Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", Actor: "customer-ana",
		},
		Type: "shop.feira.order.stock_reserved.v1", Source: "/feira/orders", Subject: "order-o1", Key: "o1",
		Sequence: 42, Previous: 40, HasPrevious: true, RecordedAt: at.Add(time.Millisecond),
		Data: []byte(`{"order":"o1"}`),
	}
}

// The wire is a contract: this test is meant to fail when a name or a form changes.
func TestHeadersAreCloudEventsInBinaryMode(t *testing.T) {
	t.Parallel()
	want := []events.Header{
		{Key: "ce_specversion", Value: "1.0"},
		{Key: "ce_id", Value: "0195512e-5e40-7b3a-8f6e-0f6d9f0c1a2b"},
		{Key: "ce_source", Value: "/feira/orders"},
		{Key: "ce_type", Value: "shop.feira.order.stock_reserved.v1"},
		{Key: "ce_time", Value: "2026-03-01T12:00:00.123456Z"},
		{Key: "ce_subject", Value: "order-o1"},
		{Key: "ce_sequence", Value: "42"},
		{Key: "ce_previous", Value: "40"},
		{Key: "ce_recordedtime", Value: "2026-03-01T12:00:00.124456Z"},
		{Key: "ce_correlationid", Value: "request-1"},
		{Key: "ce_causationid", Value: "command-1"},
		{Key: "ce_actor", Value: "customer-ana"},
		{Key: "traceparent", Value: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
		{Key: "content-type", Value: "application/json"},
	}
	if got := events.Headers(sample()); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestHeadersLeaveOutWhatIsNotThere(t *testing.T) {
	t.Parallel()
	local := time.Date(2026, 3, 1, 9, 0, 0, 0, time.FixedZone("BRT", -3*3600))
	got := events.Headers(events.Tick(events.Payments, 3, local))
	want := []events.Header{
		{Key: "ce_specversion", Value: "1.0"},
		{Key: "ce_id", Value: "tick-payments-3-1772366400000000000"},
		{Key: "ce_source", Value: "/feira/payments"},
		{Key: "ce_type", Value: "shop.feira.tick.v1"},
		{Key: "ce_time", Value: "2026-03-01T12:00:00Z"},
		{Key: "ce_recordedtime", Value: "2026-03-01T12:00:00Z"},
		{Key: "content-type", Value: "application/json"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// Readers in other languages ignore an offset in silence, so times always end in Z.
func TestTimesAreInUTC(t *testing.T) {
	t.Parallel()
	r := sample()
	local := time.FixedZone("BRT", -3*3600)
	r.Time, r.RecordedAt = r.Time.In(local), r.RecordedAt.In(local)
	if got := events.Headers(r); !reflect.DeepEqual(got, events.Headers(sample())) {
		t.Errorf("got %v", got)
	}
}

func TestFirstOfAPartitionStartsItsChain(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Previous = 0
	back, err := events.FromHeaders([]byte(r.Key), r.Data, each(events.Headers(r)))
	if err != nil || !back.HasPrevious || back.Previous != 0 {
		t.Errorf("got previous %d (%v), %v; want a chain that starts", back.Previous, back.HasPrevious, err)
	}
	r.HasPrevious = false
	back, err = events.FromHeaders([]byte(r.Key), r.Data, each(events.Headers(r)))
	if err != nil || back.HasPrevious {
		t.Errorf("got a chain (%v), %v; want none", back.HasPrevious, err)
	}
}

func TestATombstoneHasNoData(t *testing.T) {
	t.Parallel()
	r := sample()
	back, err := events.FromHeaders([]byte(r.Key), nil, each(events.Headers(r)))
	if err != nil || back.Data != nil {
		t.Errorf("got %q, %v", back.Data, err)
	}
}

func TestOtherHeadersAndParametersAreTaken(t *testing.T) {
	t.Parallel()
	r := sample()
	hs := append(events.Headers(r), events.Header{Key: "x-other", Value: "\xff"}, events.Header{Key: "ce_other", Value: "1"},
		events.Header{Key: "content-type", Value: "Application/JSON; charset=utf-8"},
		events.Header{Key: "ce_time", Value: "2026-03-01T10:00:00+01:00"})
	back, err := events.FromHeaders([]byte(r.Key), r.Data, each(hs))
	if err != nil || !back.Time.Equal(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)) || back.Time.Location() != time.UTC {
		t.Errorf("got time %v, %v", back.Time, err)
	}
}

func TestNotACloudEvent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, header, value string }{
		{"other version of CloudEvents", "ce_specversion", "0.3"},
		{"no id", "ce_id", ""},
		{"no source", "ce_source", ""},
		{"no type", "ce_type", ""},
		{"no UTF-8", "ce_subject", "\xff"},
		{"NUL", "ce_actor", "a\x00b"},
		{"structured mode", "content-type", "application/cloudevents+json"},
		{"no JSON", "content-type", "text/plain"},
		{"no time", "ce_time", ""},
		{"time as a number", "ce_time", "1772366400"},
		{"recorded time without a zone", "ce_recordedtime", "2026-03-01T12:00:00"},
		{"sequence 0", "ce_sequence", "0"},
		{"negative sequence", "ce_sequence", "-1"},
		{"sequence out of range", "ce_sequence", "9223372036854775808"},
		{"previous is text", "ce_previous", "x"},
		{"previous at the sequence", "ce_previous", "42"},
	} {
		hs := append(events.Headers(sample()), events.Header{Key: c.header, Value: c.value})
		_, err := events.FromHeaders([]byte("o1"), []byte("{}"), each(hs))
		var not *events.NotCloudEventError
		if !errors.As(err, &not) || not.Header != c.header {
			t.Errorf("%s: got %v, want NotCloudEventError of %s", c.name, err, c.header)
		}
	}
	for i, h := range events.Headers(sample())[:5] {
		hs := events.Headers(sample())
		hs = append(hs[:i], hs[i+1:]...)
		_, err := events.FromHeaders(nil, nil, each(hs))
		var not *events.NotCloudEventError
		if !errors.As(err, &not) || not.Header != h.Key {
			t.Errorf("without %s: got %v, want NotCloudEventError of it", h.Key, err)
		}
	}
	r, err := events.FromHeaders([]byte("k"), []byte("{}"), each(nil))
	var not *events.NotCloudEventError
	if !errors.As(err, &not) || r.Key != "k" || string(r.Data) != "{}" {
		t.Errorf("without headers: got %+v, %v; want NotCloudEventError and what could be read", r, err)
	}
	if _, err = events.FromHeaders([]byte{0xff}, []byte("{}"), each(events.Headers(sample()))); !errors.As(err, &not) {
		t.Errorf("binary key: got %v, want NotCloudEventError", err)
	}
}

// recorded draws any event that a store can hold.
func recorded(t *rapid.T) events.Recorded {
	text := rapid.StringMatching(`[^\x00]{0,40}`)
	some := rapid.StringMatching(`[^\x00]{1,40}`)
	at := rapid.Custom(func(t *rapid.T) time.Time {
		return time.Unix(rapid.Int64Range(0, 253402300799).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
	})
	r := events.Recorded{
		Meta: events.Meta{ID: some.Draw(t, "id"), Time: at.Draw(t, "time"), Correlation: text.Draw(t, "correlation"),
			Causation: text.Draw(t, "causation"), Traceparent: text.Draw(t, "traceparent"), Actor: text.Draw(t, "actor")},
		Type:    rapid.OneOf(some, rapid.SampledFrom([]string{"shop.feira.order.placed.v1", events.TickType})).Draw(t, "type"),
		Source:  rapid.OneOf(some, rapid.Just("/feira/orders")).Draw(t, "source"),
		Subject: text.Draw(t, "subject"), Key: text.Draw(t, "key"),
		Data: []byte(some.Draw(t, "data")),
	}
	if rapid.Bool().Draw(t, "stored") {
		r.Sequence = rapid.Int64Range(1, math.MaxInt64).Draw(t, "sequence")
		r.RecordedAt = at.Draw(t, "recorded")
		if r.HasPrevious = rapid.Bool().Draw(t, "chained"); r.HasPrevious {
			r.Previous = rapid.Int64Range(0, r.Sequence-1).Draw(t, "previous")
		}
	}
	return r
}

func TestHeadersComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := recorded(t)
		hs := events.Headers(want)
		got, err := events.FromHeaders([]byte(want.Key), want.Data, each(rapid.Permutation(hs).Draw(t, "order")))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %+v, %v\nwant %+v", got, err, want)
		}
	})
}

// FuzzFromHeaders reads arbitrary bytes: nothing may panic, and what is taken can be written and read again.
func FuzzFromHeaders(f *testing.F) {
	var lines []string
	for _, h := range events.Headers(sample()) {
		lines = append(lines, h.Key+"="+h.Value)
	}
	f.Add([]byte("o1"), []byte("{}"), strings.Join(lines, "\n"))
	f.Add([]byte{0xff}, []byte{}, "ce_id=\xff\nce_time=x\nce_sequence=-1")
	f.Fuzz(func(t *testing.T, key, value []byte, text string) {
		var hs []events.Header
		for line := range strings.SplitSeq(text, "\n") {
			k, v, _ := strings.Cut(line, "=")
			hs = append(hs, events.Header{Key: k, Value: v})
		}
		r, err := events.FromHeaders(key, value, each(hs))
		if err != nil {
			var not *events.NotCloudEventError
			if !errors.As(err, &not) {
				t.Fatalf("got %v, want NotCloudEventError", err)
			}
			return
		}
		again, err := events.FromHeaders(key, value, each(events.Headers(r)))
		if err != nil || !reflect.DeepEqual(again, r) {
			t.Fatalf("read again: %+v, %v; first %+v", again, err, r)
		}
	})
}

// FuzzDecode decodes arbitrary bytes as every type.
func FuzzDecode(f *testing.F) {
	registry := events.NewRegistry()
	var types []string
	for _, topic := range events.Topics() {
		for _, e := range events.Published(topic) {
			types = append(types, e.EventType())
		}
	}
	f.Add(uint(0), []byte(`{"order":"o","lines":[{"sku":"s","unit_price":{"amount":1,"currency":"BRL"}}]}`))
	f.Add(uint(3), []byte(`null`))
	f.Fuzz(func(t *testing.T, n uint, data []byte) {
		typ := types[n%uint(len(types))]
		e, err := registry.Decode(typ, data)
		var invalid *events.InvalidError
		if (err == nil) == (e == nil) || err != nil && !errors.As(err, &invalid) {
			t.Fatalf("got %#v, %v", e, err)
		}
	})
}
