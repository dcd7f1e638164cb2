package decider

import (
	"context"
	"errors"
	"time"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/telemetry"
)

// Outcome is a stream after a command.
type Outcome[S any] struct {
	Version int64
	State   S
	Events  []events.Event // what this command added; nil when it changed nothing
	// ChangedAt is when the version was recorded. Only [LoadChanged] reads it; zero: it is not known.
	ChangedAt time.Time
}

// Option changes one [Handle].
type Option func(*options)

type options struct {
	fresh     bool
	ifVersion int64
	attempt   *eventstore.Attempt
}

// Fresh says that the stream is most likely new, so that it is not loaded before the first try. The outcome is the
// same when it is not.
func Fresh() Option { return func(o *options) { o.fresh = true } }

// IfVersion demands that the stream is at version v.
func IfVersion(v int64) Option { return func(o *options) { o.ifVersion = v } }

// Completing completes a job's attempt in the same transaction as the events, even when there are none.
func Completing(a eventstore.Attempt) Option { return func(o *options) { o.attempt = &a } }

// Handle runs one command from outside (HTTP, a job, a timer) through the store's group commit: load, decide,
// append, again on a conflict for as long as ctx lives. m gives correlation, causation, traceparent and actor;
// id and time are set per event, and without a correlation the causation or else the first event's id is it. Where ctx
// has a place in a trace, that counts, not m's.
//
// [IfVersion] demands a version (If-Match) and fails with [*eventstore.ConflictError] otherwise. The error of a
// decider comes as it is, with the outcome holding the state that led to it. Other errors:
// [eventstore.ErrAttemptLost], [eventstore.ErrUnknown], [*eventstore.TooLargeError].
func Handle[S any](ctx context.Context, store *eventstore.Store, d Decider[S], stream string, cmd any, m events.Meta, opts ...Option) (Outcome[S], error) {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	if m.Correlation == "" {
		m.Correlation = m.Causation
	}
	ctx = telemetry.About(telemetry.Continue(ctx, m.Traceparent), m.Correlation)
	for {
		now, err := Outcome[S]{State: d.Initial}, error(nil)
		if !o.fresh {
			now, err = Load(ctx, store, d, stream)
		}
		o.fresh = false
		if err != nil {
			return now, err
		}
		if o.ifVersion > 0 && now.Version != o.ifVersion {
			return now, &eventstore.ConflictError{Stream: stream, Expected: o.ifVersion, Actual: now.Version}
		}
		after, err := attempt(ctx, store, d, stream, now, cmd, m, o.attempt)
		var conflict *eventstore.ConflictError
		if errors.As(err, &conflict) {
			continue // another writer was faster, so it made progress
		}
		return after, err
	}
}

// attempt decides on what was loaded and appends once.
func attempt[S any](ctx context.Context, store *eventstore.Store, d Decider[S], stream string, now Outcome[S], cmd any, m events.Meta, job *eventstore.Attempt) (Outcome[S], error) {
	decided, err := d.Decide(now.State, cmd)
	if err != nil || len(decided) == 0 && job == nil {
		return now, err
	}
	ctx, span := store.Tracer().Append(ctx, stream)
	defer span.End()
	if here := telemetry.Traceparent(ctx); here != "" {
		m.Traceparent = here // what follows from the events comes below their append
	}
	a := &aggregate[S]{stream: stream, version: now.Version, state: now.State}
	if err := d.takeAll(a, decided, m); err != nil {
		return now, err
	}
	request, err := d.request(a)
	if err != nil {
		return now, err
	}
	request.Attempt = job
	request.Describe(span, m.Correlation)
	result, err := store.Append(ctx, request)
	if err != nil {
		telemetry.Failed(span, err)
		return now, err
	}
	if len(decided) == 0 {
		decided = nil
	}
	return Outcome[S]{Version: result.Version, State: a.state, Events: decided}, nil
}

// Load reads a stream's state, folding its history when the kept state is of another shape. A stream that was
// never written has version 0 and the initial state.
func Load[S any](ctx context.Context, store *eventstore.Store, d Decider[S], stream string) (Outcome[S], error) {
	kept, err := store.Load(ctx, stream)
	return restore(ctx, store, d, kept, err)
}

// LoadChanged is [Load] that also reads ChangedAt.
func LoadChanged[S any](ctx context.Context, store *eventstore.Store, d Decider[S], stream string) (Outcome[S], error) {
	kept, err := store.LoadChanged(ctx, stream)
	return restore(ctx, store, d, kept, err)
}

func restore[S any](ctx context.Context, store *eventstore.Store, d Decider[S], kept eventstore.Stream, err error) (Outcome[S], error) {
	if err != nil {
		return Outcome[S]{State: d.Initial}, err
	}
	// Bounded, because without a lock the stream may have grown since.
	state, err := d.Restore(kept, func() ([]events.Recorded, error) {
		return store.History(ctx, kept.Name, eventstore.Until{Version: kept.Version})
	})
	return Outcome[S]{Version: kept.Version, State: state, ChangedAt: kept.ChangedAt}, err
}

// At reads a stream as it was at a version or time.
func At[S any](ctx context.Context, store *eventstore.Store, d Decider[S], stream string, until eventstore.Until) (Outcome[S], error) {
	history, err := store.History(ctx, stream, until)
	if err != nil {
		return Outcome[S]{State: d.Initial}, err
	}
	state, err := d.replay(stream, history)
	return Outcome[S]{Version: int64(len(history)), State: state}, err
}
