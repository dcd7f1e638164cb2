package events

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// What is written by hand is what encoding/json writes.
func TestMetaIsWrittenAsEncodingJSONDoes(t *testing.T) {
	t.Parallel()
	if n := reflect.TypeFor[Meta]().NumField(); n != 6 {
		t.Errorf("Meta has %d fields; AppendMeta and this test know 6", n)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.Just(""), rapid.String(), rapid.StringMatching(`[ -~]*`))
		zone := time.FixedZone("", rapid.IntRange(-1500, 1500).Draw(t, "offset in minutes")*60)
		m := Meta{
			ID: text.Draw(t, "id"), Time: time.Unix(rapid.Int64Range(-1e11, 3e11).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanos")).In(zone),
			Correlation: text.Draw(t, "correlation"), Causation: text.Draw(t, "causation"), Traceparent: text.Draw(t, "traceparent"), Actor: text.Draw(t, "actor"),
		}
		want, refused := json.Marshal(m)
		have, err := AppendMeta(nil, &m)
		if (err != nil) != (refused != nil) || err == nil && string(have) != string(want) {
			t.Fatalf("%s, %v, want %s, %v", have, err, want, refused)
		}
	})
}

func BenchmarkAppendMeta(b *testing.B) {
	m := Meta{
		ID: "0190b3a4-5e6f-7a8b-9c0d-e1f203040506", Time: time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC), Correlation: "0190b3a4-5e6f-7a8b-9c0d-e1f203040506",
		Causation: "0190b3a4-5e6f-7a8b-9c0d-e1f203040506", Actor: "fraud.cards",
	}
	b.Run("by hand", func(b *testing.B) {
		b.ReportAllocs()
		var scratch [512]byte
		for b.Loop() {
			if _, err := AppendMeta(scratch[:0], &m); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding/json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := json.Marshal(m); err != nil {
				b.Fatal(err)
			}
		}
	})
}
