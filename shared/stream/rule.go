package stream

import (
	"time"

	"github.com/feira-shop/feira/shared/events"
)

// Rule is a pure computation over the state of one key.
type Rule[S any] struct {
	// Apply takes the key's state and an event, and says what the state is then and what follows. late: the
	// event is behind its partition's watermark, so that state it would need may have been freed. What follows from
	// a late event must not depend on the state: what is still there differs from run to run. An event in quarantine
	// comes as a late one with no state, and what it makes of it is not kept.
	Apply func(state S, r events.Recorded, late bool) (S, []events.Event)
	// Until is the event time up to which a state is needed; the zero time frees it at once.
	Until func(state S) time.Time
	// Trim drops the parts of a state that are not needed behind the watermark; nil: states are kept whole.
	Trim func(state S, watermark time.Time) S
	// Stream names the stream that an emitted event starts: one event, one stream. Where there is one already, the
	// event that started it stands, and the new one is dropped.
	Stream func(e events.Event) string
	// Agree reports whether what was said agrees with what is said when it is computed anew, as far as the two can be
	// compared; nil: they must be equal. It is for rules that depend on more than events: on thresholds, or on a model.
	Agree func(said, again events.Event) bool
	// Timer is the event time at which a state wants to be looked at again; the zero time: never. nil: no state ever
	// does. It looks at nothing but the state.
	Timer func(state S) time.Time
	// Fire is told when the partition's watermark has reached a state's timer, at. It says what the state is then and
	// what follows. What it returns must not be due at the same time again, or an earlier one: the state would fire
	// for ever, so the event that moved the watermark is parked.
	Fire func(state S, at time.Time) (S, []events.Event)
}
