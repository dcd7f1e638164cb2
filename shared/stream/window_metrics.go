package stream

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// windowMetrics of one windower. They are read by another goroutine than the loop's, so what is shown is kept apart.
type windowMetrics struct {
	late, quarantined, results prometheus.Counter
	delayDesc, openDesc        *prometheus.Desc

	lowest atomic.Int64 // watermark of this process's partitions, microseconds since 1970
	open   atomic.Int64 // panes between what is closed and the newest event
}

func newWindowMetrics(operator string) *windowMetrics {
	labels := prometheus.Labels{"operator": operator}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "feira_stream_" + name, Help: help, ConstLabels: labels})
	}
	shared := newMetrics(operator)
	return &windowMetrics{
		late: shared.late, quarantined: shared.quarantined, delayDesc: shared.delayDesc,
		results:  counter("window_results_total", "Results of windows that this process has closed, one per window and key."),
		openDesc: prometheus.NewDesc("feira_stream_open_windows", "Windows that have begun and are not closed, as far as this process knows.", nil, labels),
	}
}

func (m *windowMetrics) judged(l *ledger) {
	m.late.Add(float64(l.total(late)))
	m.quarantined.Add(float64(l.total(quarantined)))
}

func (m *windowMetrics) closed(results int) { m.results.Add(float64(results)) }

// show publishes how far event time has come.
func (w *windower[A]) show() {
	lowest, highest := int64(0), int64(noWatermark)
	for _, at := range w.watermarks {
		if at == noWatermark {
			continue
		}
		if lowest == 0 || at < lowest {
			lowest = at
		}
		highest = max(highest, at)
	}
	w.metrics.lowest.Store(lowest)
	open := int64(0)
	if w.closed > noWatermark && highest > w.closed {
		open = (highest-w.closed)/w.windows.slide.Microseconds() + 1
	}
	w.metrics.open.Store(open)
}

// Describe implements [prometheus.Collector].
func (w *windower[A]) Describe(to chan<- *prometheus.Desc) {
	to <- w.metrics.delayDesc
	to <- w.metrics.openDesc
	w.metrics.late.Describe(to)
	w.metrics.quarantined.Describe(to)
	w.metrics.results.Describe(to)
}

// Collect implements [prometheus.Collector].
func (w *windower[A]) Collect(to chan<- prometheus.Metric) {
	delay := 0.0
	if lowest := w.metrics.lowest.Load(); lowest > 0 {
		delay = max(0, w.now().Sub(time.UnixMicro(lowest)).Seconds())
	}
	to <- prometheus.MustNewConstMetric(w.metrics.delayDesc, prometheus.GaugeValue, delay)
	to <- prometheus.MustNewConstMetric(w.metrics.openDesc, prometheus.GaugeValue, float64(w.metrics.open.Load()))
	w.metrics.late.Collect(to)
	w.metrics.quarantined.Collect(to)
	w.metrics.results.Collect(to)
}
