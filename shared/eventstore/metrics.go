package eventstore

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/telemetry"
)

type metrics struct {
	batchSize, flushSeconds                       prometheus.Histogram
	retries, conflicts, sideLane, unknown, within prometheus.Counter

	events  *prometheus.CounterVec
	endings *prometheus.HistogramVec
}

// newMetrics makes the store's metrics and registers them, if the options say where. queued counts what waits in the
// group commit.
func newMetrics(o Options, log *slog.Logger, queued func() int) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "feira", Subsystem: "store", Name: name, Help: help})
	}
	m := &metrics{
		batchSize: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "feira", Subsystem: "store", Name: "append_batch_size",
			Help:    "Requests per flush of the group commit.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 8),
		}),
		flushSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "feira", Subsystem: "store", Name: "flush_duration_seconds",
			Help:    "Time of one flush of the group commit, commit included.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}),
		retries:   counter("append_retries_total", "Flushes that failed and were tried again whole."),
		conflicts: counter("append_conflicts_total", "Appends refused because the stream was at another version."),
		sideLane:  counter("append_side_lane_total", "Appends that waited in the side lane for a row that somebody else held."),
		unknown:   counter("append_unknown_total", "Appends whose outcome was unknown after a try and that were tried again."),
		within:    counter("transaction_retries_total", "Transactions of Within that were tried again after a conflict."),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "feira", Subsystem: "store", Name: "appended_events_total",
			Help: "Events that were committed, by type and, of those that end something in one of several ways, by outcome.",
		}, []string{"type", "outcome"}),
		endings: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "feira", Subsystem: "store", Name: "ending_seconds",
			Help:    "From the beginning of what an event ends to the commit of that event, by type and outcome.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300},
		}, []string{"type", "outcome"}),
	}
	m.begin(o)
	waiting := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "feira", Subsystem: "store", Name: "append_queue_length",
		Help: "Appends that wait for a flush.",
	}, func() float64 { return float64(queued()) })
	err := telemetry.Register(o.Metrics, m.batchSize, m.flushSeconds, m.retries, m.conflicts, m.sideLane, m.unknown, m.within,
		m.events, m.endings, waiting)
	if err != nil {
		log.Error("the store has no figures", "error", err)
	}
	return m
}

// begin shows what was never appended as 0: of a counter that appears with its first events, nobody sees them rise.
func (m *metrics) begin(o Options) {
	if o.Registry == nil {
		return
	}
	for _, e := range o.Registry.Owned(o.Service) {
		outcomes := []string{""}
		if ending, ok := e.(events.Ending); ok {
			outcomes = ending.Outcomes()
		}
		for _, outcome := range outcomes {
			m.events.WithLabelValues(e.EventType(), outcome)
		}
	}
}

// appended counts events that were committed.
func (m *metrics) appended(all []Event) {
	for i := range all {
		e := &all[i]
		m.events.WithLabelValues(e.Type, e.Outcome).Inc()
		if e.Ends && !e.Began.IsZero() {
			m.endings.WithLabelValues(e.Type, e.Outcome).Observe(max(0, time.Since(e.Began).Seconds()))
		}
	}
}
