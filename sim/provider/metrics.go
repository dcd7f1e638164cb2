package provider

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	factory := promauto.With(r)
	return &metrics{
		requests: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "feira_provider_requests_total",
			Help: "Requests that change the ledger, by operation, HTTP status and whether the answer was a stored one.",
		}, []string{"operation", "status", "replayed"}),
		seconds: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "feira_provider_request_seconds",
			Help:    "Time until the answer was decided and stored, wanted delays not included.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}, []string{"operation"}),
	}
}

func (m *metrics) answered(operation string, status int, replayed bool, took time.Duration) {
	m.requests.WithLabelValues(operation, strconv.Itoa(status), strconv.FormatBool(replayed)).Inc()
	m.seconds.WithLabelValues(operation).Observe(took.Seconds())
}
