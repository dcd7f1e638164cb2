package telemetry

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	gometrics "github.com/rcrowley/go-metrics"
)

// RegisterKafka adds the totals of a sarama client (its Config.MetricRegistry) under feira_kafka_client_…, with
// the label client. sarama's figures per broker and topic are left out: their names hold ids.
func RegisterKafka(r prometheus.Registerer, client string, source gometrics.Registry) error {
	labels := prometheus.Labels{"client": client}
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("feira_kafka_client_"+name, help, nil, labels)
	}
	c := &kafkaCollector{
		source: source,
		totals: map[string]*prometheus.Desc{
			"request-rate":       desc("requests_total", "Requests sent to brokers."),
			"response-rate":      desc("responses_total", "Responses received from brokers."),
			"incoming-byte-rate": desc("received_bytes_total", "Bytes read from brokers."),
			"outgoing-byte-rate": desc("sent_bytes_total", "Bytes written to brokers."),
		},
		inFlight: desc("requests_in_flight", "Requests without a response yet."),
		latency:  desc("request_duration_seconds", "Time from request to response, over the recent ones."),
	}
	if err := r.Register(c); err != nil {
		return fmt.Errorf("telemetry: register Kafka client %s: %w", client, err)
	}
	return nil
}

type kafkaCollector struct {
	source            gometrics.Registry
	totals            map[string]*prometheus.Desc // by sarama's name
	inFlight, latency *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *kafkaCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.totals {
		ch <- d
	}
	ch <- c.inFlight
	ch <- c.latency
}

// Collect implements prometheus.Collector. What sarama has not measured yet is absent.
func (c *kafkaCollector) Collect(ch chan<- prometheus.Metric) {
	for name, d := range c.totals {
		if m, ok := c.source.Get(name).(gometrics.Meter); ok {
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(m.Count()))
		}
	}
	if n, ok := c.source.Get("requests-in-flight").(gometrics.Counter); ok {
		ch <- prometheus.MustNewConstMetric(c.inFlight, prometheus.GaugeValue, float64(n.Count()))
	}
	if h, ok := c.source.Get("request-latency-in-ms").(gometrics.Histogram); ok {
		ch <- latencySummary(c.latency, h.Snapshot())
	}
}

func latencySummary(d *prometheus.Desc, h gometrics.Histogram) prometheus.Metric {
	at := []float64{0.5, 0.99}
	quantiles := make(map[float64]float64, len(at))
	for i, ms := range h.Percentiles(at) {
		quantiles[at[i]] = ms / 1000
	}
	count := uint64(h.Count())
	// sarama keeps a sample of the durations; their mean times the count stands for the sum.
	return prometheus.MustNewConstSummary(d, count, h.Mean()*float64(count)/1000, quantiles)
}
