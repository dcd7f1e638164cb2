package decider

import (
	"context"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/operator"
)

// Decider is the pure core of an aggregate.
type Decider[S any] struct {
	Initial S
	// Decide answers a command with what happened; no events means nothing changes. An error refuses the
	// command: a HTTP caller gets it, an operator parks the event that led to it.
	Decide func(state S, cmd any) ([]events.Event, error)
	Evolve func(state S, e events.Event) S
	// Shape is the version of S's JSON: raise it when S changes, and states are folded anew from the events.
	Shape int
	// Jobs are the side effects an event calls for, inserted with it. nil: none.
	Jobs func(stream string, e events.Event) []eventstore.Job
}

// Fold computes the state after events.
func (d Decider[S]) Fold(history []events.Event) S { panic("unimplemented") }

// Route says what an event means to an aggregate: a command for a stream. Made by [On].
type Route struct {
	Type  string // event type heard
	Route func(r events.Recorded) (stream string, cmd any)
}

// On routes events of type E. An empty stream means: not for us.
func On[E events.Event](f func(E) (stream string, cmd any)) Route { panic("unimplemented") }

// OnRecorded is [On] for those who need the event's id or time too.
func OnRecorded[E events.Event](f func(r events.Recorded, e E) (stream string, cmd any)) Route {
	panic("unimplemented")
}

// Operator is an operator of kind decide: events become commands of streams. Topics and types follow from
// the routes.
func Operator[S any](name string, d Decider[S], routes ...Route) operator.Definition {
	panic("unimplemented")
}

// Outcome is a stream after a command.
type Outcome[S any] struct {
	Version int64
	State   S
	Events  []events.Event // what this command added; nil when it changed nothing
}

// Handle runs one command from outside (HTTP, a job, a timer) through the store's group commit: load, decide,
// append, again on a conflict. m gives correlation, causation and actor; id and time are set per event.
// ifVersion > 0 demands that version (If-Match) and fails with [*eventstore.ConflictError] otherwise.
func Handle[S any](ctx context.Context, store *eventstore.Store, d Decider[S], stream string, cmd any, m events.Meta, opts ...Option) (Outcome[S], error) {
	panic("unimplemented")
}

// Option changes one [Handle].
type Option func(*options)

type options struct {
	ifVersion int64
	attempt   *eventstore.Attempt
}

// IfVersion demands that the stream is at version v.
func IfVersion(v int64) Option { return func(o *options) { o.ifVersion = v } }

// Completing completes a job's attempt in the same transaction as the events, even when there are none.
func Completing(a eventstore.Attempt) Option { return func(o *options) { o.attempt = &a } }

// Load reads a stream's state, folding its history when the kept state is of another shape.
func Load[S any](ctx context.Context, store *eventstore.Store, d Decider[S], stream string) (Outcome[S], error) {
	panic("unimplemented")
}

// At reads a stream as it was at a version or time.
func At[S any](ctx context.Context, store *eventstore.Store, d Decider[S], stream string, until eventstore.Until) (Outcome[S], error) {
	panic("unimplemented")
}
