package decider

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
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
	// Clock gives the time of new events. nil: the system's clock; tests set it.
	Clock func() time.Time
}

// Fold computes the state after events.
func (d Decider[S]) Fold(history []events.Event) S {
	state := d.Initial
	for _, e := range history {
		state = d.Evolve(state, e)
	}
	return state
}

// UnknownCommandError says that a decider has no answer to a kind of command: a fault of the program, since
// routes and callers make commands of their own service only.
type UnknownCommandError struct{ Command string }

func (e *UnknownCommandError) Error() string {
	return fmt.Sprintf("decider: command %s is unknown to this decider; add a case to its Decide", e.Command)
}

// Unknown is what Decide returns for a command that it does not know.
func Unknown(cmd any) error { return &UnknownCommandError{fmt.Sprintf("%T", cmd)} }

// BrokenHistoryError says that a stream does not have the events its version promises. Nothing is decided on
// such a stream: compare its rows in the store with a backup or with the topic.
type BrokenHistoryError struct {
	Stream  string
	Version int64 // as the store keeps it
	Events  int   // how many there are up to that version
}

func (e *BrokenHistoryError) Error() string {
	return fmt.Sprintf("decider: stream %s is at version %d but has %d events; its history is damaged", e.Stream, e.Version, e.Events)
}

// UnknownHistoryError says that a stream has an event of a type or version that this program does not know, so
// that its state cannot be folded. Most likely a newer release wrote it.
type UnknownHistoryError struct {
	Stream  string
	Version int64 // of the event
	Type    string
}

func (e *UnknownHistoryError) Error() string {
	return fmt.Sprintf("decider: event %d of stream %s is of type %s, which is unknown here; run a release that knows it",
		e.Version, e.Stream, e.Type)
}

// Restore gives the state of a stream as the store keeps it. What is kept is a cache: if it is of another shape,
// or does not decode because someone forgot to raise Shape, the state is folded from the stream's whole history.
// Errors: [*BrokenHistoryError], [*UnknownHistoryError], and history's own.
func (d Decider[S]) Restore(s eventstore.Stream, history func() ([]events.Recorded, error)) (S, error) {
	if s.Version == 0 {
		return d.Initial, nil
	}
	if s.Shape == d.Shape {
		var state S
		if err := json.Unmarshal(s.State, &state); err == nil {
			return state, nil
		}
	}
	recorded, err := history()
	if err != nil {
		return d.Initial, err
	}
	if int64(len(recorded)) != s.Version {
		return d.Initial, &BrokenHistoryError{s.Name, s.Version, len(recorded)}
	}
	return d.replay(s.Name, recorded)
}

// replay is Fold over a stream's history, which must be known as a whole.
func (d Decider[S]) replay(stream string, history []events.Recorded) (S, error) {
	state := d.Initial
	for i := range history {
		if history[i].Event == nil {
			return d.Initial, &UnknownHistoryError{stream, int64(i + 1), history[i].Type}
		}
		state = d.Evolve(state, history[i].Event)
	}
	return state, nil
}

func (d Decider[S]) now() time.Time {
	if d.Clock != nil {
		return events.Timestamp(d.Clock())
	}
	return events.Timestamp(time.Now())
}
