package relay

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/feira-shop/feira/shared/telemetry"
)

// metrics of one relay. The gauges are those of the leader; where another process leads they are 0. A leader that
// lost Kafka and tries again keeps what it saw last: a backlog must not look like none because nobody publishes it.
type metrics struct {
	leader    prometheus.Gauge
	outbox    prometheus.Gauge
	oldest    prometheus.Gauge
	published prometheus.Counter
	ticks     prometheus.Counter
	errors    prometheus.Counter
	rounds    prometheus.Counter
	batch     prometheus.Histogram
	stopped   prometheus.Gauge
}

func newMetrics(r prometheus.Registerer, log *slog.Logger) *metrics {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "feira", Subsystem: "relay", Name: name, Help: help})
	}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "feira", Subsystem: "relay", Name: name, Help: help})
	}
	m := &metrics{
		leader:    gauge("leader", "1 in the process that publishes the store, else 0."),
		outbox:    gauge("outbox_events", "Events of the store that are not published yet (upper bound)."),
		oldest:    gauge("oldest_unpublished_seconds", "Age of the oldest event that is not published yet; 0 if there is none."),
		published: counter("published_events_total", "Events acknowledged by Kafka, repeated ones included."),
		ticks:     counter("ticks_total", "Ticks written to idle partitions."),
		errors:    counter("produce_errors_total", "Batches that could not be published whole."),
		rounds:    counter("rounds_total", "Reads of the store."),
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "feira", Subsystem: "relay", Name: "batch_events",
			Help: "Events published at once.", Buckets: prometheus.ExponentialBuckets(1, 4, 6),
		}),
		stopped: gauge("stopped", "1 after a named error that needs a person, else 0."),
	}
	err := telemetry.Register(r, m.leader, m.outbox, m.oldest, m.published, m.ticks, m.errors, m.rounds, m.batch, m.stopped)
	if err != nil {
		log.Error("the relay has no figures", "error", err)
	}
	return m
}

// follow is for a process that does not lead: what is unpublished is for the leader to say.
func (m *metrics) follow() {
	m.outbox.Set(0)
	m.oldest.Set(0)
}
