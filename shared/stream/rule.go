package stream

import (
	"time"

	"github.com/feira-shop/feira/shared/events"
)

// Rule is a pure computation over the state of one key.
type Rule[S any] struct {
	// Apply takes the key's state as of the partition's watermark and an event, and says what the state is then and what
	// follows. It must not change the state it is given: the batch may be rolled back. late: the event is behind the
	// watermark, so that what it would need of the state may be gone. An event in quarantine comes as a late one with
	// no state, and what it makes of it is not kept.
	Apply func(state S, r events.Recorded, late bool) (S, []events.Event)
	// Until is the event time up to which a state is needed; the zero time frees it at once.
	Until func(state S) time.Time
	// Trim drops the parts of a state that are not needed behind the watermark; nil: states are kept whole. It is asked
	// before every event, so it should return the state itself when nothing is to go; it must not change it. What is
	// dropped does not depend on how often it was asked before.
	Trim func(state S, watermark time.Time) S
	// TrimAt is the event time behind which Trim leaves less of a state that no event has changed until then; the zero
	// time, or nil: it stays whole until it is not needed. It spares memory and changes no answer.
	TrimAt func(state S) time.Time
	// Stream names the stream that an emitted event starts: one event, one stream. Where there is one already, the
	// event that started it stands, and the new one is dropped.
	Stream func(e events.Event) string
	// Agree reports whether what was said agrees with what is said when it is computed anew, as far as the two can be
	// compared; nil: they must be equal. It is for rules that depend on more than events: on thresholds, or on a model.
	Agree func(said, again events.Event) bool
	// Timer is the event time at which a state wants to be looked at again; the zero time: never. nil: no state ever
	// does. It looks at nothing but the state.
	Timer func(state S) time.Time
	// Fire is told when the partition's watermark has reached a state's timer, at, with the state as of then. It says
	// what the state is then and what follows. A timer that is set to a time that has passed fires at once. What Fire
	// returns must not be due at the same time again, or an earlier one: the state would fire for ever, so the event
	// that moved the watermark is parked; one that only told the time does not move it.
	Fire func(state S, at time.Time) (S, []events.Event)
}
