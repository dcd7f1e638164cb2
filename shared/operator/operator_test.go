package operator

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/feira-shop/feira/shared/events"
)

func TestEveryEventTakesEffectOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	w.publishFacts(facts, 100)
	o := w.operator(w.definition(&ledger{}, facts), "m1")
	stop := w.start(o)
	w.awaitEffects(100)
	w.publishFacts(facts, 50)
	w.awaitEffects(150)
	if err := o.Health(); err != nil {
		t.Error(err)
	}
	stop()
	w.publishFacts(facts, 10)
	w.start(w.operator(w.definition(&ledger{}, facts), "m1"))
	w.awaitEffects(160)
	w.awaitCheckpoints(160)
}

// What Kafka thinks was consumed means nothing: the checkpoint decides, also when it is far behind.
func TestTheDatabaseKnowsWhereToGoOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	log := w.publishOn(0, 30)
	stop := w.start(w.operator(w.definition(&ledger{}, facts), "m1"))
	w.awaitEffects(30)
	stop() // marks are committed to Kafka
	for _, sql := range []string{
		`delete from effects where "offset" >= 10`,
		"update checkpoints set next_offset = 10, source_position = 10 where partition = 0",
	} {
		if _, err := w.db.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	w.start(w.operator(w.definition(&ledger{}, facts), "m1"))
	w.awaitEffects(len(log))
	w.stateFollowsCheckpoints()
}

func TestABatchMixesTopics(t *testing.T) {
	t.Parallel()
	others := events.Topic{Name: "others", Owner: "others", Partitions: 2, Retention: events.Forever}
	w := newWorld(t, facts, others)
	w.publishFacts(facts, 60)
	w.publishFacts(others, 60)
	o := w.operator(w.definition(&ledger{}, facts, others), "")
	stop := w.start(o)
	w.await("effects", func() bool { return w.effects() == 120 })
	w.publishFacts(others, 10)
	w.await("effects", func() bool { return w.effects() == 130 })
	stop()
	w.stateFollowsCheckpoints()
}

// Records without effect cost no transaction of their own.
func TestRecordsWithoutEffectShareACheckpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	def := w.definition(&ledger{}, facts)
	def.Types = []string{"shop.feira.order.placed.v1"}
	o := w.operator(def, "m1")
	o.timing.lazy = defaultTiming.lazy
	w.start(o)
	for range 50 {
		w.publishFacts(facts, 3)
	}
	w.awaitCheckpoints(150)
	if n := samples(t, o.metrics.duration); n > 10 {
		t.Errorf("%d transactions for records without effect", n)
	}
}

func samples(t *testing.T, h prometheus.Histogram) uint64 {
	t.Helper()
	var out dto.Metric
	if err := h.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.GetHistogram().GetSampleCount()
}

// reactions counts the events that operators measured from their writing to their effects.
func reactions(t *testing.T, registry *prometheus.Registry) (n uint64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "feira_operator_reaction_seconds" {
				n += m.GetHistogram().GetSampleCount()
			}
		}
	}
	return n
}

func TestMetricsOfSeveralOperatorsShareARegistry(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	w.publishFacts(facts, 20)
	registry := prometheus.NewRegistry()
	var stops []func()
	for _, name := range []string{"tests.one", "tests.two"} {
		def := w.definition(&ledger{}, facts)
		def.Name = name
		o := w.operator(def, "m1")
		o.opts.Metrics = registry
		stops = append(stops, w.start(o))
	}
	w.await("effects", func() bool { return w.effects() == 40 })
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, f := range families {
		found[strings.TrimPrefix(f.GetName(), "feira_operator_")] = len(f.GetMetric())
	}
	for _, name := range []string{
		"events_processed_total", "lag_events", "lag_seconds", "batch_events", "checkpoint_seconds", "checkpoint_bytes",
		"duplicates_dropped_total", "parked", "events_parked_total", "commits_fenced_total", "restarts_total",
		"retries_total", "unknown_types_skipped_total", "paused", "stopped", "reaction_seconds",
	} {
		if found[name] != 2 {
			t.Errorf("metric %s: found for %d operators, want 2", name, found[name])
		}
	}
	w.await("measured reactions", func() bool { return reactions(t, registry) == 40 }) // counted after the commit
	for _, stop := range stops {
		stop()
	}
	if families, err = registry.Gather(); err != nil || len(families) != 0 {
		t.Errorf("%d metrics left behind, %v", len(families), err)
	}
}
