package eventstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/feira-shop/feira/shared/events"
)

// MaxEventBytes is the largest event a store takes, data and meta together: a larger one would block the relay
// for ever.
const MaxEventBytes = 256 << 10

// Event is an event ready to be appended: encoded once, and published with these bytes.
type Event struct {
	ID   string          // Meta.ID, repeated to recognise the event after an unknown outcome
	Type string          // CloudEvents type
	Key  string          // record key in Kafka
	Data json.RawMessage // with Meta at most [MaxEventBytes]
	Meta json.RawMessage // JSON of [events.Meta]

	Traceparent string // Meta.Traceparent, repeated to find the append's span

	// For the figures only: whether it ends something, how (see [events.Ending]), and when that began; zero: unknown.
	Ends    bool
	Outcome string
	Began   time.Time
}

// Job is an external side effect, inserted in the transaction that appends the events it belongs to.
type Job struct {
	Kind        string          // River job kind
	Args        json.RawMessage // River job args, a JSON object
	Traceparent string          // of what calls for it; added to the args, see [JobTraceparent]
	Queue       string          // River queue; "" is the default queue
	MaxAttempts int             // 0 is River's default
	ScheduledAt time.Time       // zero is now
}

// Attempt names one attempt of a running job. An append that carries it completes the job in the same
// transaction, and is refused unless that very attempt is still the running one.
type Attempt struct {
	JobID       int64
	AttemptedAt time.Time
}

// Append is one request: events of one stream, with the state that follows from them.
type Append struct {
	Stream   string
	Expected int64           // version the stream must have; 0 means the stream must be absent or at version 0
	Shape    int             // version of the state's structure
	State    json.RawMessage // state after the events
	Events   []Event         // may be empty when only jobs or an attempt are to be written
	Jobs     []Job
	Attempt  *Attempt
}

// next is the stream's version after the append.
func (a *Append) next() int64 { return a.Expected + int64(len(a.Events)) }

// id recognises a request that was written before: events are written all or none, so the first one's will do.
func (a *Append) id() string {
	if len(a.Events) == 0 {
		return ""
	}
	return a.Events[0].ID
}

// check refuses what the database could not take, or could not recognise later.
func (a *Append) check() error {
	if a.Stream == "" || a.Expected < 0 {
		return &InvalidError{Stream: a.Stream, Reason: fmt.Sprintf("a stream needs a name and a version of 0 or more, not %d", a.Expected)}
	}
	if len(a.Events) > 0 && len(a.State) == 0 {
		return &InvalidError{Stream: a.Stream, Reason: "events need the state that follows from them"}
	}
	for i := range a.Events {
		e := &a.Events[i]
		if n := len(e.Data) + len(e.Meta); n > MaxEventBytes {
			return &TooLargeError{Stream: a.Stream, Type: e.Type, Bytes: n}
		}
		if e.ID == "" || e.Type == "" {
			return &InvalidError{Stream: a.Stream, Reason: "an event needs an id and a type; make events with Encode"}
		}
	}
	for i := range a.Jobs {
		if a.Jobs[i].Kind == "" || len(a.Jobs[i].Args) == 0 {
			return &InvalidError{Stream: a.Stream, Reason: "a job needs a kind and arguments"}
		}
	}
	return nil
}

// Result says where an append was written.
type Result struct {
	Version int64 // of the stream, after the append
}

// Stream is an aggregate as the store keeps it.
type Stream struct {
	Name    string
	Version int64 // 0: nothing was ever appended
	Shape   int
	State   json.RawMessage
	// ChangedAt is when the version was recorded. Only [Store.LoadChanged] reads it; zero: it is not known.
	ChangedAt time.Time
}

// ErrUnknown says that the caller gave up while its append was in flight. It may or may not have been
// written; appending the same events again at the same expected version tells.
var ErrUnknown = errors.New("eventstore: the outcome is unknown; repeat the same append to learn it")

// ErrAttemptLost says that a job's attempt is not the running one any more: it was rescued, cancelled or completed.
var ErrAttemptLost = errors.New("eventstore: this attempt of the job is not the running one any more")

// ConflictError says that a stream was not at the expected version. Load it and decide again.
type ConflictError struct {
	Stream           string
	Expected, Actual int64
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("eventstore: stream %s is at version %d, not at %d; load it and decide again", e.Stream, e.Actual, e.Expected)
}

// InvalidError says that a request is not one that a store can write. It is a fault of the program.
type InvalidError struct{ Stream, Reason string }

func (e *InvalidError) Error() string {
	return fmt.Sprintf("eventstore: append to stream %q: %s", e.Stream, e.Reason)
}

// TooLargeError says that an event exceeds [MaxEventBytes].
type TooLargeError struct {
	Stream, Type string
	Bytes        int
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("eventstore: event %s of stream %s has %d bytes; at most %d are allowed", e.Type, e.Stream, e.Bytes, MaxEventBytes)
}

// Encode makes an event ready to be appended.
func Encode(m events.Meta, e events.Event) (Event, error) {
	data, err := json.Marshal(e)
	if err != nil {
		return Event{}, fmt.Errorf("encode %s: %w", e.EventType(), err)
	}
	var room [512]byte // most need less
	meta, err := events.AppendMeta(room[:0], &m)
	if err != nil {
		return Event{}, fmt.Errorf("encode meta of %s: %w", e.EventType(), err)
	}
	outcome, ends := events.OutcomeOf(e)
	return Event{
		ID: m.ID, Type: e.EventType(), Key: e.EventKey(), Data: data, Meta: bytes.Clone(meta), Traceparent: m.Traceparent, Ends: ends, Outcome: outcome,
	}, nil
}
