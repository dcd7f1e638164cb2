package telemetry

import (
	"fmt"
	"net/http"

	"github.com/IBM/pgxpoolprometheus"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics is the registry of a process, with the Go runtime's and the process's own figures in it.
type Metrics struct{ registry *prometheus.Registry }

// NewMetrics makes the registry of a process.
func NewMetrics() *Metrics {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return &Metrics{r}
}

// Service is where a service registers its metrics: each gets the label service, so that several services of one
// process keep apart.
func (m *Metrics) Service(name string) prometheus.Registerer {
	return prometheus.WrapRegistererWith(prometheus.Labels{"service": name}, m.registry)
}

// Gatherer reads all metrics, for tests and for the live page.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }

// Handler serves /metrics. One broken collector does not hide the others.
func (m *Metrics) Handler() http.Handler {
	return promhttp.InstrumentMetricHandler(m.registry, promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError,
	}))
}

// RegisterPool adds the figures of a connection pool under feira_pgxpool_…, with the label pool.
func RegisterPool(r prometheus.Registerer, name string, pool *pgxpool.Pool) error {
	c := pgxpoolprometheus.NewCollector(pool, map[string]string{"pool": name})
	if err := prometheus.WrapRegistererWithPrefix("feira_", r).Register(c); err != nil {
		return fmt.Errorf("telemetry: register pool %s: %w", name, err)
	}
	return nil
}
