package relay

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// value reads a counter or gauge.
func value(m prometheus.Metric) float64 {
	var d dto.Metric
	if err := m.Write(&d); err != nil {
		return -1
	}
	return d.GetCounter().GetValue() + d.GetGauge().GetValue()
}

func TestMetricsAreRegistered(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	New(Options{Metrics: registry})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, f := range families {
		names[f.GetName()] = true
	}
	for _, name := range []string{
		"feira_relay_outbox_events", "feira_relay_oldest_unpublished_seconds", "feira_relay_published_events_total",
		"feira_relay_produce_errors_total", "feira_relay_rounds_total", "feira_relay_leader", "feira_relay_batch_events",
		"feira_relay_ticks_total", "feira_relay_stopped",
	} {
		if !names[name] {
			t.Errorf("%s is missing", name)
		}
	}
}
