package decider

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
)

// Dated is a state that knows when what it describes began, in the time of the process that began it. Figures then show
// how long it took to its end, see [events.Ending].
type Dated interface{ Began() time.Time }

// aggregate is a stream while commands run on it: what was loaded, and what is to be appended.
type aggregate[S any] struct {
	stream  string
	version int64 // as loaded
	state   S     // after what is to be appended
	events  []eventstore.Event
	jobs    []eventstore.Job
}

// run decides one command and takes its events in. m is the metadata of the new events but for id and time.
// Every error is the command's own: the same command on the same state fails again. After one, the aggregate
// is not to be appended.
func (d Decider[S]) run(a *aggregate[S], cmd any, m events.Meta) ([]events.Event, error) {
	decided, err := d.Decide(a.state, cmd)
	if err != nil || len(decided) == 0 {
		return nil, err
	}
	if err := d.takeAll(a, decided, m); err != nil {
		return nil, err
	}
	return decided, nil
}

// takeAll takes decided events in.
func (d Decider[S]) takeAll(a *aggregate[S], decided []events.Event, m events.Meta) error {
	m.Time = d.now()
	for _, e := range decided {
		if err := d.take(a, e, &m); err != nil {
			return err
		}
	}
	return nil
}

func (d Decider[S]) take(a *aggregate[S], e events.Event, m *events.Meta) error {
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("decider: no id for an event of %s: %w", a.stream, err)
	}
	m.ID = id.String()
	if m.Correlation == "" {
		m.Correlation = m.ID // this event starts the story
	}
	encoded, err := eventstore.Encode(*m, e)
	if err != nil {
		return err
	}
	if n := len(encoded.Data) + len(encoded.Meta); n > eventstore.MaxEventBytes {
		return &eventstore.TooLargeError{Stream: a.stream, Type: encoded.Type, Bytes: n}
	}
	if encoded.Ends {
		if state, ok := any(a.state).(Dated); ok {
			encoded.Began = state.Began()
		}
	}
	a.events = append(a.events, encoded)
	if d.Jobs != nil {
		for _, job := range d.Jobs(a.stream, e) {
			job.Traceparent = m.Traceparent
			a.jobs = append(a.jobs, job)
		}
	}
	a.state = d.Evolve(a.state, e)
	return nil
}

// request is the append of everything that was decided. encoding/json writes fields in their order and maps
// sorted, so equal states are equal bytes.
func (d Decider[S]) request(a *aggregate[S]) (eventstore.Append, error) {
	state, err := json.Marshal(a.state)
	if err != nil {
		return eventstore.Append{}, fmt.Errorf("decider: encode the state of %s: %w", a.stream, err)
	}
	return eventstore.Append{
		Stream:   a.stream,
		Expected: a.version,
		Shape:    d.Shape,
		State:    state,
		Events:   a.events,
		Jobs:     a.jobs,
	}, nil
}
