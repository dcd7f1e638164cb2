package stream

import (
	"slices"
	"time"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/operator"
)

// Source says what is read and how: which events, under which key, at which event time.
type Source struct {
	topic    events.Topic
	types    []string // nil: all
	key      func(events.Recorded) string
	keys     func(events.Recorded) []string // nil: key says it
	time     func(events.Recorded) time.Time
	other    bool // time is not the CloudEvents time
	disorder time.Duration
	skew     time.Duration
	idle     time.Duration // 0: the topic's ticks are the relay's
}

// defaultSkew is how far clocks of one shop may be apart.
const defaultSkew = time.Minute

// From reads a topic; with prototypes, only events of their types. Unless it is said otherwise, an event belongs to its
// record's key and happened at its CloudEvents time.
func From(topic events.Topic, prototypes ...events.Event) Source {
	s := Source{
		topic: topic, skew: defaultSkew,
		key:  func(r events.Recorded) string { return r.Key },
		time: func(r events.Recorded) time.Time { return r.Time },
	}
	for _, p := range prototypes {
		s.types = append(s.types, p.EventType())
	}
	return s
}

// KeyBy names the state or the window an event belongs to; "" leaves the event out. For [Source.Process] all events of
// one key must be on one partition, so the key must be a refinement of the topic's; windows take any key.
func (s Source) KeyBy(key func(events.Recorded) string) Source {
	s.key, s.keys = key, nil
	return s
}

// KeysBy is KeyBy for windows of events that belong to several keys, as an order to its products; none leaves the event
// out. A key that is named twice counts once.
func (s Source) KeysBy(keys func(events.Recorded) []string) Source {
	s.keys = keys
	return s
}

// At says what an event's time is; by default, CloudEvents time. By that time, events of other types, and those that are
// left out, move the watermark too; by another time they cannot.
func (s Source) At(t func(events.Recorded) time.Time) Source { s.time, s.other = t, true; return s }

// Disorder is how far an event's time may be behind the highest of its partition before it is late; 0 by default.
func (s Source) Disorder(d time.Duration) Source { s.disorder = d; return s }

// Skew is how far an event's time may be after the time at which it was recorded; by default a minute. Beyond that it
// is quarantined: it cannot be true, so it does not move the watermark, which would make all that follows late. It is
// held against the record's own time, not against our clock, so that a replay agrees.
func (s Source) Skew(d time.Duration) Source { s.skew = d; return s }

// Idle has the operator itself tick a partition that got no record for d: nothing is to come that happened more than d
// ago. It is for topics without a relay, whose partitions nobody else ticks. Such ticks are on no topic, so what they
// made late counts when the history is computed anew.
func (s Source) Idle(d time.Duration) Source { s.idle = d; return s }

func (s Source) quarantines(r events.Recorded, at time.Time) bool {
	return !r.RecordedAt.IsZero() && at.Sub(r.RecordedAt) > s.skew
}

// wants says whether an event is one of the source's types: an operator on several topics gets those of all, and ticks.
func (s Source) wants(r events.Recorded) bool {
	if s.types == nil {
		return r.Type != events.TickType
	}
	return r.Event != nil && slices.Contains(s.types, r.Event.EventType())
}

// clock is how far an event that does not count says that time has come; zero: it does not say.
func (s Source) clock(r events.Recorded) time.Time {
	if r.Type == events.TickType {
		return r.Time
	}
	if s.other || s.topic.Owner == "" {
		return time.Time{}
	}
	return r.Clock()
}

// keysOf lists the keys an event belongs to.
func (s Source) keysOf(r events.Recorded) []string {
	if s.keys == nil {
		return named([]string{s.key(r)})
	}
	return named(s.keys(r))
}

// named leaves out "" and what is named twice.
func named(keys []string) []string {
	kept := keys[:0:0]
	for _, k := range keys {
		if k != "" && !slices.Contains(kept, k) {
			kept = append(kept, k)
		}
	}
	return kept
}

// Kind declares the streams that emitted events start: each holds events and no state.
func Kind(prefix string) decider.Kind {
	return decider.KindOf(prefix, 0, struct{}{}, func(s struct{}, _ events.Event) struct{} { return s })
}

// Computation is a [Rule], of whatever state.
type Computation interface {
	process(name string, from Source) operator.Handler
}

// Process makes an operator that computes with keyed state. name is stable: state is kept under it, and an operator
// whose state changed its shape gets a new one.
func (s Source) Process(name string, rule Computation) operator.Definition {
	return define(name, Sources{s}, func(*eventstore.Store) operator.Handler { return rule.process(name, s) })
}

func (r Rule[S]) process(name string, from Source) operator.Handler {
	return newProcessor(name, from, r)
}

// Sources are several topics that one operator reads; the first is [Source.And]'s own.
type Sources []Source

// And reads another topic too, with keys, times and bounds of its own. Windows hold the events of both.
func (s Source) And(other Source) Sources { return Sources{s, other} }

// And reads another topic too.
func (ss Sources) And(other Source) Sources { return append(ss[:len(ss):len(ss)], other) }

// of is the source that reads a topic.
func (ss Sources) of(topic string) Source {
	for _, s := range ss {
		if s.topic.Name == topic {
			return s
		}
	}
	return Source{}
}

func define(name string, from Sources, handler func(*eventstore.Store) operator.Handler) operator.Definition {
	def := operator.Definition{Name: name, Handler: handler, Clock: map[string]bool{}, Idle: map[string]time.Duration{}}
	all := false
	for _, s := range from {
		def.Topics = append(def.Topics, s.topic)
		def.Types = append(def.Types, s.types...)
		def.Clock[s.topic.Name] = !s.other
		all = all || s.types == nil
		if s.idle > 0 {
			def.Idle[s.topic.Name] = s.idle
		}
	}
	if all {
		def.Types = nil
	}
	return def
}
