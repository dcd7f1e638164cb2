package jobs

import (
	"context"
	"time"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/riverqueue/river"
)

// Spec declares how a kind of job is done: a side effect whose outcome is a command of an aggregate.
type Spec[A river.JobArgs, S any] struct {
	Decider decider.Decider[S]
	Stream  func(A) string
	// Do performs the side effect, idempotent by a key in its args, and says what came out of it as a command.
	// An error means no answer: the job is retried with backoff, for ever.
	Do      func(ctx context.Context, args A) (cmd any, err error)
	Timeout time.Duration // of one attempt; 0 is 10 s
	Breaker string        // jobs with one name share a circuit breaker
}

// Definition is a kind of job, of whatever types. Made by [Work].
type Definition struct {
	Kind string
}

// Work makes a definition of a spec.
func Work[A river.JobArgs, S any](s Spec[A, S]) Definition { panic("unimplemented") }

// New makes a job for [decider.Decider.Jobs].
func New(args river.JobArgs) eventstore.Job { panic("unimplemented") }
