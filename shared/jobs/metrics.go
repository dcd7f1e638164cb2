package jobs

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sony/gobreaker/v2"

	"github.com/feira-shop/feira/shared/telemetry"
)

// How an attempt can end.
const (
	outcomeCompleted   = "completed"   // with its outcome's events
	outcomeRetried     = "retried"     // no answer
	outcomeSnoozed     = "snoozed"     // not tried, the breaker is open
	outcomeInterrupted = "interrupted" // the process stopped
	outcomeLost        = "lost"        // another attempt has taken over
	outcomeCancelled   = "cancelled"   // by a person
	outcomeRefused     = "refused"     // by the decider: an error in the program
	outcomePanicked    = "panicked"
)

type metrics struct {
	ends      *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	attempts  *prometheus.HistogramVec
	breakers  *prometheus.GaugeVec
	jobs      *prometheus.GaugeVec
	oldest    prometheus.Gauge
	swept     prometheus.Counter
	lostLocks prometheus.Counter
}

var outcomes = []string{
	outcomeCompleted, outcomeRetried, outcomeSnoozed, outcomeInterrupted, outcomeLost, outcomeCancelled, outcomeRefused, outcomePanicked,
}

// newMetrics shows every outcome of every kind as 0 at first: of a counter that appears with its first events, nobody
// sees them rise.
func newMetrics(reg prometheus.Registerer, definitions []Definition) (*metrics, error) {
	m := &metrics{
		ends: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "feira_job_attempts_total", Help: "Attempts of jobs, by kind and how they ended.",
		}, []string{"kind", "outcome"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "feira_job_duration_seconds", Help: "How long the side effect of one attempt took.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 11),
		}, []string{"kind"}),
		attempts: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "feira_job_attempts_needed", Help: "Attempts that completed jobs needed.",
			Buckets: []float64{1, 2, 3, 5, 10, 30, 100},
		}, []string{"kind"}),
		breakers: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "feira_job_breaker_state", Help: "0 closed, 1 half open, 2 open.",
		}, []string{"breaker"}),
		jobs: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "feira_jobs", Help: "Jobs to do: available, waiting for their time, running.",
		}, []string{"state"}),
		oldest: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "feira_jobs_oldest_seconds", Help: "Age of the oldest job that is not done.",
		}),
		swept: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "feira_jobs_swept_total", Help: "Running jobs given back because their process was gone.",
		}),
		lostLocks: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "feira_jobs_lock_losses_total", Help: "Times the lock on the client id was lost and the workers stopped.",
		}),
	}
	for _, d := range definitions {
		for _, outcome := range outcomes {
			m.ends.WithLabelValues(d.Kind, outcome)
		}
	}
	err := telemetry.Register(reg, m.ends, m.duration, m.attempts, m.breakers, m.jobs, m.oldest, m.swept, m.lostLocks)
	return m, err
}

func (m *metrics) ended(kind, outcome string) { m.ends.WithLabelValues(kind, outcome).Inc() }

func (m *metrics) completed(kind string, attempt int) {
	m.ended(kind, outcomeCompleted)
	m.attempts.WithLabelValues(kind).Observe(float64(attempt))
}

func (m *metrics) did(kind string, took time.Duration) {
	m.duration.WithLabelValues(kind).Observe(took.Seconds())
}

func (m *metrics) breaker(name string, state gobreaker.State) {
	m.breakers.WithLabelValues(name).Set(float64(state))
}

// backlog is what stats.sql counts.
type backlog struct {
	available, waiting, running int64
	oldestSeconds               float64
}

func (m *metrics) backlog(b backlog) {
	m.jobs.WithLabelValues("available").Set(float64(b.available))
	m.jobs.WithLabelValues("waiting").Set(float64(b.waiting))
	m.jobs.WithLabelValues("running").Set(float64(b.running))
	m.oldest.Set(b.oldestSeconds)
}
