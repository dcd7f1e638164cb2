package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/riverqueue/river"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
)

// DefaultTimeout bounds one attempt whose [Spec] does not.
const DefaultTimeout = 10 * time.Second

// attemptsWithoutEnd is the most that River's column holds. A job never gets there: giving an attempt back
// keeps its number below.
const attemptsWithoutEnd = math.MaxInt16

// Spec declares how a kind of job is done: a side effect whose outcome is a command of an aggregate.
type Spec[A river.JobArgs, S any] struct {
	Decider decider.Decider[S]
	Stream  func(A) string
	// Do performs the side effect, idempotent by a key in its args, and says what came out of it as a command.
	// An error means no answer: the job is retried with backoff, for ever. Do must return when ctx ends.
	Do      func(ctx context.Context, args A) (cmd any, err error)
	Timeout time.Duration // of one attempt; 0 is [DefaultTimeout]
	Breaker string        // jobs with one name share a circuit breaker; "" is the kind
	// Reached says of an error whether the other side did answer, so that it says nothing against its health
	// and does not open the breaker. nil: every error counts.
	Reached func(err error) bool
	// Meta gives the outcome's events their correlation and actor. Causation is the job, unless set. nil: none.
	Meta func(A) events.Meta
}

// Definition is a kind of job, of whatever types. Made by [Work].
type Definition struct {
	Kind string
	// register adds a worker of this kind to a client.
	register func(workers *river.Workers, rt *runner) error
}

// Work makes a definition of a spec.
func Work[A river.JobArgs, S any](s Spec[A, S]) Definition {
	var args A
	kind := args.Kind()
	if s.Timeout <= 0 {
		s.Timeout = DefaultTimeout
	}
	if s.Breaker == "" {
		s.Breaker = kind
	}
	s.Decider = reportRefusals(kind, s.Decider)
	return Definition{Kind: kind, register: func(workers *river.Workers, rt *runner) error {
		return river.AddWorkerSafely(workers, &worker[A, S]{kind: kind, spec: s, runner: rt})
	}}
}

// New makes a job for [decider.Decider.Jobs]. Args that cannot be written as JSON are a mistake in the
// program; such a job fails the transaction that inserts it, since its arguments are no JSON.
func New(args river.JobArgs) eventstore.Job {
	data, err := json.Marshal(args)
	if err != nil {
		data = []byte(err.Error())
	}
	return eventstore.Job{Kind: args.Kind(), Args: data, MaxAttempts: attemptsWithoutEnd}
}

// RefusedError says that the decider did not accept what came out of a job. What happened outside has happened,
// so this is an error in the decider: the job is kept and tried again until the program is corrected.
type RefusedError struct {
	Kind    string
	Command any
	Err     error
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("jobs: the outcome %T of a %s job was refused: %v; the decider must accept every outcome, the job is kept and retried",
		e.Command, e.Kind, e.Err)
}

func (e *RefusedError) Unwrap() error { return e.Err }

// reportRefusals tells the decider's own errors from those of the store.
func reportRefusals[S any](kind string, d decider.Decider[S]) decider.Decider[S] {
	decide := d.Decide
	d.Decide = func(state S, cmd any) ([]events.Event, error) {
		evs, err := decide(state, cmd)
		if err != nil {
			return nil, &RefusedError{Kind: kind, Command: cmd, Err: err}
		}
		return evs, nil
	}
	return d
}
