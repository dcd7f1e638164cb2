package provider

import (
	"log/slog"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/feira-shop/feira/shared/telemetry"
)

type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newMetrics(r prometheus.Registerer, log *slog.Logger) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "feira_provider_requests_total",
			Help: "Requests that change the ledger, by operation, HTTP status and whether the answer was a stored one.",
		}, []string{"operation", "status", "replayed"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "feira_provider_request_seconds",
			Help:    "Time until the answer was decided and stored, wanted delays not included.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}, []string{"operation"}),
	}
	if err := telemetry.Register(r, m.requests, m.seconds); err != nil {
		log.Error("the provider has no figures", "error", err)
	}
	return m
}

func (m *metrics) answered(operation string, status int, replayed bool, took time.Duration) {
	m.requests.WithLabelValues(operation, strconv.Itoa(status), strconv.FormatBool(replayed)).Inc()
	m.seconds.WithLabelValues(operation).Observe(took.Seconds())
}
