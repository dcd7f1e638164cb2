package eventstore_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

// Ended is a private event with several outcomes.
type Ended struct {
	How string `json:"how"`
}

func (Ended) EventType() string  { return "shop.feira.test.ended.v1" }
func (Ended) EventKey() string   { return "key" }
func (e Ended) Outcome() string  { return e.How }
func (Ended) Outcomes() []string { return []string{"well", "badly"} }

// figures of a metric, by the last word of the type and the outcome.
func figures(t *testing.T, reg *prometheus.Registry, name string) map[string]*dto.Metric {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*dto.Metric{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				found[m.GetLabel()[1].GetValue()[len("shop.feira.test."):]+" "+m.GetLabel()[0].GetValue()] = m
			}
		}
	}
	return found
}

func expectCounts(t *testing.T, reg *prometheus.Registry, want map[string]float64) {
	t.Helper()
	got := map[string]float64{}
	for name, m := range figures(t, reg, "feira_store_appended_events_total") {
		got[name] = m.GetCounter().GetValue()
	}
	if !maps.Equal(got, want) {
		t.Errorf("counted %v, not %v", got, want)
	}
}

func TestCommittedEventsAreCountedByTypeAndOutcome(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	db := pgtest.New(t, eventstore.Migrations())
	s := eventstore.New(db.Pool, eventstore.Options{Service: "counter", Registry: events.NewRegistry(Counted{}, Ended{}), Metrics: reg})
	run(t, s)
	// What never happened is 0: of a counter that appears with its first events, nobody sees them rise.
	expectCounts(t, reg, map[string]float64{"counted.v1 ": 0, "ended.v1 well": 0, "ended.v1 badly": 0})

	first := counted(t, "a", 0)
	first.Events = append(first.Events, encode(t, Ended{"badly"}), encode(t, Ended{"by Ana"}))
	first.Events[1].Began = time.Now().Add(-time.Minute)
	want := map[string]float64{"counted.v1 ": 1, "ended.v1 well": 0, "ended.v1 badly": 1, "ended.v1 other": 1}
	for range 2 { // a repeat after an unknown outcome is recognised: it was counted before
		if _, err := s.Append(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		expectCounts(t, reg, want)
	}
	var conflict *eventstore.ConflictError
	if _, err := s.Append(t.Context(), counted(t, "a", 0)); !errors.As(err, &conflict) {
		t.Fatalf("%v", err)
	}
	expectCounts(t, reg, want)

	endings := figures(t, reg, "feira_store_ending_seconds")
	took := endings["ended.v1 badly"].GetHistogram()
	if len(endings) != 1 || took.GetSampleCount() != 1 || took.GetSampleSum() < 60 || took.GetSampleSum() > 600 {
		t.Errorf("one ending began a minute ago, of the others nothing is known: %v", endings)
	}
}

func TestATransactionCountsItsEventsOnceCommitted(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	db := pgtest.New(t, eventstore.Migrations())
	s := eventstore.New(db.Pool, eventstore.Options{Service: "counter", Registry: events.NewRegistry(Ended{}), Metrics: reg})
	run(t, s)
	no := errors.New("no")
	for _, fails := range []error{no, nil} {
		err := s.Within(t.Context(), func(_ context.Context, tx *eventstore.Tx) error {
			a := counted(t, "b", 0)
			a.Events = []eventstore.Event{encode(t, Ended{"well"})}
			tx.Append(a)
			return fails
		})
		if !errors.Is(err, fails) {
			t.Fatal(err)
		}
	}
	expectCounts(t, reg, map[string]float64{"ended.v1 well": 1, "ended.v1 badly": 0})
}
