package eventstore

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/feira-shop/feira/shared/telemetry"
)

type metrics struct {
	batchSize, flushSeconds                       prometheus.Histogram
	retries, conflicts, sideLane, unknown, within prometheus.Counter
}

// newMetrics registers the store's metrics; reg may be nil. queued counts what waits in the group commit.
func newMetrics(reg prometheus.Registerer, log *slog.Logger, queued func() int) *metrics {
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
	}
	waiting := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "feira", Subsystem: "store", Name: "append_queue_length",
		Help: "Appends that wait for a flush.",
	}, func() float64 { return float64(queued()) })
	err := telemetry.Register(reg, m.batchSize, m.flushSeconds, m.retries, m.conflicts, m.sideLane, m.unknown, m.within, waiting)
	if err != nil {
		log.Error("the store has no figures", "error", err)
	}
	return m
}
