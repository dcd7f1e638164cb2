package operator

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics of one operator; each carries the label operator.
type metrics struct {
	op         *Operator
	processed  prometheus.Counter
	duplicates prometheus.Counter
	unknown    prometheus.Counter
	parked     prometheus.Counter
	fenced     prometheus.Counter
	retries    prometheus.Counter
	restarts   prometheus.Counter
	batch      prometheus.Histogram
	duration   prometheus.Histogram
	bytes      prometheus.Histogram
	reaction   prometheus.Histogram
	closings   prometheus.Histogram
	paused     prometheus.Gauge
	stopped    prometheus.Gauge
	gauges     []prometheus.Collector
}

func newMetrics(o *Operator) *metrics {
	labels := prometheus.Labels{"operator": o.def.Name}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "feira_operator_" + name, Help: help, ConstLabels: labels})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "feira_operator_" + name, Help: help, ConstLabels: labels})
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: "feira_operator_" + name, Help: help, ConstLabels: labels, Buckets: buckets})
	}
	m := &metrics{
		op:         o,
		processed:  counter("events_processed_total", "Events whose effects were committed."),
		duplicates: counter("duplicates_dropped_total", "Records dropped because their event was applied before."),
		unknown:    counter("unknown_types_skipped_total", "Records of types that nobody here knows."),
		parked:     counter("events_parked_total", "Records parked, those that wait behind others included."),
		fenced:     counter("commits_fenced_total", "Commits refused because the partition had another owner."),
		retries:    counter("retries_total", "Batches tried again after a transient error."),
		restarts:   counter("restarts_total", "Reconnections to consumer groups and resumptions after a stop."),
		batch:      histogram("batch_events", "Events applied per transaction.", prometheus.ExponentialBuckets(1, 2, 11)),
		duration:   histogram("checkpoint_seconds", "Duration of a transaction, from begin to commit.", prometheus.ExponentialBuckets(0.001, 2, 14)),
		bytes:      histogram("checkpoint_bytes", "Bytes of state saved per transaction by handlers that tell, else of the events applied.", prometheus.ExponentialBuckets(256, 4, 10)),
		reaction: histogram("reaction_seconds", "From the writing of an event to the commit of its effects here.",
			[]float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}),
		closings: histogram("closing_seconds", "Duration of closing windows, one transaction at a time, from the look to the commit.", prometheus.ExponentialBuckets(0.001, 2, 14)),
		paused:   gauge("paused", "1 while the operator is paused."),
		stopped:  gauge("stopped", "1 while the operator is stopped by a named error."),
	}
	computed := func(name, help string, f func() float64) {
		m.gauges = append(m.gauges, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "feira_operator_" + name, Help: help, ConstLabels: labels}, f))
	}
	computed("lag_events", "Records of this process's partitions that are not committed.", m.lagEvents)
	computed("lag_seconds", "Age of the oldest record read and not committed; 0 when caught up.", m.lagSeconds)
	computed("parked", "Records parked in this process's partitions.", m.parkedNow)
	return m
}

func (m *metrics) collectors() []prometheus.Collector {
	all := append([]prometheus.Collector{m.processed, m.duplicates, m.unknown, m.parked, m.fenced, m.retries, m.restarts,
		m.batch, m.duration, m.bytes, m.reaction, m.paused, m.stopped}, m.gauges...)
	if m.op.closing != nil {
		all = append(all, m.closings)
	}
	if own, ok := m.op.handler.(prometheus.Collector); ok { // a handler with state has some of its own
		all = append(all, own)
	}
	return all
}

// register makes the metrics visible while the operator runs.
func (m *metrics) register(reg prometheus.Registerer) {
	if reg == nil {
		return
	}
	for _, c := range m.collectors() {
		if err := reg.Register(c); err != nil {
			m.op.log.Error("a metric cannot be registered", "error", err)
		}
	}
}

func (m *metrics) unregister(reg prometheus.Registerer) {
	if reg == nil {
		return
	}
	for _, c := range m.collectors() {
		reg.Unregister(c)
	}
}

// passed counts the records of a part that is done.
func (m *metrics) passed(p *part) {
	now := time.Now()
	for _, s := range p.steps {
		switch s.fate {
		case applied:
			m.processed.Inc()
			if at := s.rec.RecordedAt; !at.IsZero() { // strangers do not say when they wrote it
				m.reaction.Observe(max(0, now.Sub(at).Seconds()))
			}
		case duplicate:
			m.duplicates.Inc()
		case unknown:
			m.unknown.Inc()
		case parking:
			m.parked.Inc()
		case filtered:
		}
	}
}

// wrote measures a committed transaction.
func (m *metrics) wrote(b batch, took time.Duration) {
	m.duration.Observe(took.Seconds())
	events, bytes := 0, 0
	for _, p := range b {
		for _, s := range p.steps {
			if s.fate == applied {
				events++
				bytes += len(s.raw.value)
			}
		}
	}
	if sized, ok := m.op.handler.(Sized); ok {
		bytes = sized.CheckpointBytes()
	}
	if events > 0 {
		m.batch.Observe(float64(events))
		m.bytes.Observe(float64(bytes))
	}
}

func (m *metrics) setPaused(yes bool) { m.paused.Set(number(yes)) }

func (m *metrics) setStopped(yes bool) { m.stopped.Set(number(yes)) }

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func (m *metrics) claims() []*claim {
	m.op.mu.Lock()
	defer m.op.mu.Unlock()
	if m.op.current == nil {
		return nil
	}
	return m.op.current.claims.sorted()
}

func (m *metrics) lagEvents() float64 {
	total := int64(0)
	for _, c := range m.claims() {
		total += c.lag()
	}
	return float64(total)
}

func (m *metrics) lagSeconds() float64 {
	most := time.Duration(0)
	for _, c := range m.claims() {
		most = max(most, c.age())
	}
	return most.Seconds()
}

func (m *metrics) parkedNow() float64 {
	total := int64(0)
	for _, c := range m.claims() {
		total += c.parked.Load()
	}
	return float64(total)
}
