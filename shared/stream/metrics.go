package stream

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics of one processor. The operator registers them, since its handler is a collector. They are read by another
// goroutine than the loop's, so what is shown is kept apart from the state.
type metrics struct {
	keysDesc, bytesDesc, rowsDesc, delayDesc *prometheus.Desc
	late, quarantined, carried               prometheus.Counter

	keys   atomic.Int64
	bytes  atomic.Int64 // of their states, as saved
	rows   atomic.Int64 // of the logs
	oldest atomic.Int64 // lowest watermark of this process's partitions, microseconds since 1970; 0: none
}

func newMetrics(operator string) *metrics {
	labels := prometheus.Labels{"operator": operator}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "feira_stream_" + name, Help: help, ConstLabels: labels})
	}
	return &metrics{
		keysDesc:    prometheus.NewDesc("feira_stream_state_keys", "Keys with state in this process's memory.", nil, labels),
		bytesDesc:   prometheus.NewDesc("feira_stream_state_bytes", "Size of those states as they are saved.", nil, labels),
		rowsDesc:    prometheus.NewDesc("feira_stream_delta_rows", "Rows in the delta logs of this process's partitions.", nil, labels),
		delayDesc:   prometheus.NewDesc("feira_stream_watermark_delay_seconds", "How far the lowest watermark of this process's partitions is behind the clock; 0 before the first event.", nil, labels),
		late:        counter("late_events_total", "Events behind the watermark of their partition."),
		quarantined: counter("quarantined_events_total", "Events whose time was too far after that of their recording."),
		carried:     counter("carried_keys_total", "States that were saved again without a change, so that old rows of the delta log could go."),
	}
}

func (m *metrics) judged(late, quarantined int64, carried int) {
	m.late.Add(float64(late))
	m.quarantined.Add(float64(quarantined))
	m.carried.Add(float64(carried))
}

// show publishes the size and the age of the state.
func (p *processor[S]) show() {
	keys, bytes, rows, oldest := 0, 0, 0, int64(0)
	for _, s := range p.shards {
		keys, bytes, rows = keys+s.keys.len(), bytes+s.log.needed, rows+len(s.log.rows)
		if watermark := p.watermark(s.maxTime); s.maxTime > 0 && (oldest == 0 || watermark < oldest) {
			oldest = watermark
		}
	}
	p.metrics.keys.Store(int64(keys))
	p.metrics.bytes.Store(int64(bytes))
	p.metrics.rows.Store(int64(rows))
	p.metrics.oldest.Store(oldest)
}

// Describe implements [prometheus.Collector].
func (p *processor[S]) Describe(to chan<- *prometheus.Desc) {
	to <- p.metrics.keysDesc
	to <- p.metrics.bytesDesc
	to <- p.metrics.rowsDesc
	to <- p.metrics.delayDesc
	p.metrics.late.Describe(to)
	p.metrics.quarantined.Describe(to)
	p.metrics.carried.Describe(to)
}

// Collect implements [prometheus.Collector].
func (p *processor[S]) Collect(to chan<- prometheus.Metric) {
	delay := 0.0
	if oldest := p.metrics.oldest.Load(); oldest > 0 {
		delay = max(0, p.now().Sub(time.UnixMicro(oldest)).Seconds())
	}
	to <- prometheus.MustNewConstMetric(p.metrics.keysDesc, prometheus.GaugeValue, float64(p.metrics.keys.Load()))
	to <- prometheus.MustNewConstMetric(p.metrics.bytesDesc, prometheus.GaugeValue, float64(p.metrics.bytes.Load()))
	to <- prometheus.MustNewConstMetric(p.metrics.rowsDesc, prometheus.GaugeValue, float64(p.metrics.rows.Load()))
	to <- prometheus.MustNewConstMetric(p.metrics.delayDesc, prometheus.GaugeValue, delay)
	p.metrics.late.Collect(to)
	p.metrics.quarantined.Collect(to)
	p.metrics.carried.Collect(to)
}
