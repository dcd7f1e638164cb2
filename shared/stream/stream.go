package stream

import (
	"time"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/operator"
)

// Source says what is read and how: which events, under which key, at which event time.
type Source struct {
	topic    events.Topic
	types    []string
	key      func(events.Recorded) string
	time     func(events.Recorded) time.Time
	disorder time.Duration
	skew     time.Duration
}

// defaultSkew is how far clocks of one shop may be apart.
const defaultSkew = time.Minute

// From reads a topic; with prototypes, only events of their types.
func From(topic events.Topic, prototypes ...events.Event) Source {
	s := Source{topic: topic, time: func(r events.Recorded) time.Time { return r.Time }, skew: defaultSkew}
	for _, p := range prototypes {
		s.types = append(s.types, p.EventType())
	}
	return s
}

// KeyBy names the state an event belongs to; "" leaves the event out. All events of one key must be on one
// partition, so the key must be a refinement of the topic's.
func (s Source) KeyBy(key func(events.Recorded) string) Source { s.key = key; return s }

// At says what an event's time is; by default, CloudEvents time.
func (s Source) At(t func(events.Recorded) time.Time) Source { s.time = t; return s }

// Disorder is how far an event's time may be behind the highest of its partition before it is late.
func (s Source) Disorder(d time.Duration) Source { s.disorder = d; return s }

// Skew is how far an event's time may be after the time at which it was recorded; by default a minute. Beyond that it
// is quarantined: it cannot be true, so it does not move the watermark, which would make all that follows late. It is
// held against the record's own time, not against our clock, so that a replay agrees.
func (s Source) Skew(d time.Duration) Source { s.skew = d; return s }

func (s Source) quarantines(r events.Recorded, at time.Time) bool {
	return !r.RecordedAt.IsZero() && at.Sub(r.RecordedAt) > s.skew
}

// Kind declares the streams that emitted events start: each holds one event and no state.
func Kind(prefix string) decider.Kind {
	return decider.KindOf(prefix, 0, struct{}{}, func(s struct{}, _ events.Event) struct{} { return s })
}

// Process makes an operator of a source and a rule. name is stable: state is kept under it, and an operator
// whose state changed its shape gets a new one.
func Process[S any](name string, from Source, rule Rule[S]) operator.Definition {
	return operator.Definition{
		Name:   name,
		Topics: []events.Topic{from.topic},
		Types:  from.types,
		Handler: func(*eventstore.Store) operator.Handler {
			return newProcessor(name, from, rule)
		},
	}
}
