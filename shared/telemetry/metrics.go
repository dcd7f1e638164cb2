package telemetry

import (
	"errors"
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

// RegisterPool adds the figures of a connection pool under feira_pgxpool_…, with the label pool. A pool that was registered
// under the same name, by an earlier start, gives way to it.
func RegisterPool(r prometheus.Registerer, name string, pool *pgxpool.Pool) error {
	c := pgxpoolprometheus.NewCollector(pool, map[string]string{"pool": name})
	r = prometheus.WrapRegistererWithPrefix("feira_", r)
	err := r.Register(c)
	if known := (prometheus.AlreadyRegisteredError{}); errors.As(err, &known) {
		r.Unregister(known.ExistingCollector)
		err = r.Register(c)
	}
	if err != nil {
		return fmt.Errorf("telemetry: register pool %s: %w", name, err)
	}
	return nil
}
