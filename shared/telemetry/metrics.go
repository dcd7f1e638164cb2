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
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), buildInfo())
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

// Register adds collectors to r, nil: nowhere. Those that were registered under the same names, by an earlier start in this
// process, give way to them. An error says that a name is already taken by another kind of figure.
func Register(r prometheus.Registerer, collectors ...prometheus.Collector) error {
	if r == nil {
		return nil
	}
	var errs []error
	for _, c := range collectors {
		err := r.Register(c)
		if known := (prometheus.AlreadyRegisteredError{}); errors.As(err, &known) {
			r.Unregister(c) // what is registered is found by its names and labels
			err = r.Register(c)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("telemetry: register: %w", err))
		}
	}
	return errors.Join(errs...)
}

// RegisterPool adds the figures of a connection pool under feira_pgxpool_…, with the label pool, as [Register] does.
func RegisterPool(r prometheus.Registerer, name string, pool *pgxpool.Pool) error {
	c := pgxpoolprometheus.NewCollector(pool, map[string]string{"pool": name})
	if err := Register(prometheus.WrapRegistererWithPrefix("feira_", r), c); err != nil {
		return fmt.Errorf("telemetry: pool %s: %w", name, err)
	}
	return nil
}
