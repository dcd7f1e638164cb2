package jobs

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
)

// When a breaker opens and for how long. A provider that fails a third of its calls is still worth calling;
// one that answers nobody is not.
const (
	breakerWindow      = 10 * time.Second
	breakerConsecutive = 10  // failures in a row open it
	breakerMinimum     = 30  // calls in a window, before the ratio counts
	breakerRatio       = 0.7 // of failed calls in the window opens it
	breakerOpen        = time.Second
	breakerProbes      = 3 // good calls that close it again
)

// whileOpen is how long a job waits that found the breaker open, spread so that not all come back at once.
func whileOpen() time.Duration {
	return breakerOpen/2 + rand.N(breakerOpen) //nolint:gosec // jitter, not a secret
}

// breakers are the circuit breakers of one client, by name.
type breakers struct {
	log     *slog.Logger
	metrics *metrics

	mu     sync.Mutex
	byName map[string]*gobreaker.CircuitBreaker[any]
}

func (b *breakers) named(name string) *gobreaker.CircuitBreaker[any] {
	b.mu.Lock()
	defer b.mu.Unlock()
	breaker, ok := b.byName[name]
	if !ok {
		breaker = b.make(name)
		b.byName[name] = breaker
	}
	return breaker
}

func (b *breakers) make(name string) *gobreaker.CircuitBreaker[any] {
	b.metrics.breaker(name, gobreaker.StateClosed)
	return gobreaker.NewCircuitBreaker[any](gobreaker.Settings{
		Name:         name,
		Interval:     breakerWindow,
		BucketPeriod: time.Second,
		Timeout:      breakerOpen,
		MaxRequests:  breakerProbes,
		ReadyToTrip:  readyToTrip,
		IsSuccessful: func(err error) bool {
			var reached *reachedError
			return err == nil || errors.As(err, &reached)
		},
		IsExcluded: func(err error) bool {
			var interrupted *interruptedError
			return errors.As(err, &interrupted)
		},
		OnStateChange: func(name string, from, to gobreaker.State) {
			b.metrics.breaker(name, to)
			b.log.Warn("jobs: breaker changed", "breaker", name, "from", from.String(), "to", to.String())
		},
	})
}

func readyToTrip(c gobreaker.Counts) bool {
	if c.ConsecutiveFailures >= breakerConsecutive {
		return true
	}
	return c.Requests >= breakerMinimum && float64(c.TotalFailures) >= breakerRatio*float64(c.Requests)
}
