package events

import (
	"encoding/json"
	"strconv"
	"time"
)

// Event is a fact in the past tense. Payload types are plain structs with JSON tags; a type, once
// released, never changes: a new version is a new type with an upcaster.
type Event interface {
	// EventType is the CloudEvents type, for example "shop.feira.order.placed.v1".
	EventType() string
	// EventKey is the record key in Kafka. Events with one key keep their order; "" spreads them.
	EventKey() string
}

// Upcaster is an event of an older version that can say itself in the next one.
type Upcaster interface {
	Event
	// Upcast returns the same fact as a later version of the same type.
	Upcast() Event
}

// List collects events, so that deciders read as sentences.
func List(evs ...Event) []Event { return evs }

// Meta is what every event carries beside its data.
type Meta struct {
	ID          string    `json:"id"`                    // UUIDv7
	Time        time.Time `json:"time"`                  // when it happened, UTC
	Correlation string    `json:"correlation,omitempty"` // the first request of the whole story
	Causation   string    `json:"causation,omitempty"`   // id of the event or command it answers
	Traceparent string    `json:"traceparent,omitempty"` // W3C trace context
	Actor       string    `json:"actor,omitempty"`       // customer, operator or service that caused it
}

// Recorded is an event as it was written to a store or read from Kafka.
type Recorded struct {
	Meta
	Type     string // CloudEvents type as recorded, perhaps older than that of Event
	Source   string // see [Topic.Source]
	Subject  string // the stream it belongs to
	Key      string // record key
	Sequence int64  // position in its owner's store; 0 where there is none (ticks, strangers)
	Previous int64  // position of the event before it in the same partition; 0 for the first
	// HasPrevious tells a chain that starts (Previous 0) from a topic without one (compacted).
	HasPrevious bool
	RecordedAt  time.Time       // when the store wrote it; zero for strangers
	Data        json.RawMessage // the JSON as published; nil for a tombstone
	Event       Event           // the decoded data; nil when the type is unknown
}

// Clock is how far time had come in the topic of the event's owner when it was written: to its own time, or to that of its
// recording if that is earlier. It is zero when the event does not say when it was recorded.
func (r Recorded) Clock() time.Time {
	if r.Time.Before(r.RecordedAt) {
		return r.Time
	}
	return r.RecordedAt
}

// TickType is the type of the records by which a relay says: nothing unsent up to ce_time. A tick is not
// stored and has no sequence; only stream operators look at it.
const TickType = "shop.feira.tick.v1"

// Tick makes the tick of one partition. It has no key: the relay sends it to the partition by number.
func Tick(t Topic, partition int32, at time.Time) Recorded {
	at = at.UTC()
	return Recorded{
		Meta: Meta{
			// Ticks are never stored or compared, so their ids need only be unique for their source.
			ID:   "tick-" + t.Name + "-" + strconv.Itoa(int(partition)) + "-" + strconv.FormatInt(at.UnixNano(), 10),
			Time: at,
		},
		Type:       TickType,
		Source:     t.Source(),
		RecordedAt: at,
		Data:       json.RawMessage("{}"),
	}
}
