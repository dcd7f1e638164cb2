package relay

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/kafka"
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

// A backlog is shown while nobody can publish it, and by the leader alone.
func TestABacklogIsShownWhileKafkaIsAway(t *testing.T) {
	t.Parallel()
	e := newEnv(t, events.Orders)
	e.append(placed, keys(3)...)
	opts := e.options()
	opts.Kafka = kafka.Config{Brokers: []string{"127.0.0.1:1"}}
	r := New(opts)
	r.timing = quick()
	if _, err := r.lead(t.Context()); err == nil || stops(err) {
		t.Fatalf("led without Kafka: %v", err)
	}
	if n := value(r.metrics.outbox); n != 3 || value(r.metrics.oldest) <= 0 || value(r.metrics.leader) != 0 {
		t.Errorf("%v events are shown as unpublished, want 3", n)
	}
	conn, err := e.db.Pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), "select pg_advisory_lock($1)", leaderLock); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _, _ = r.lead(ctx) }() // it does not get to lead
	e.until("the other process speaks for the backlog", func() bool { return value(r.metrics.outbox) == 0 && value(r.metrics.oldest) == 0 })
	cancel()
	<-ended
}
