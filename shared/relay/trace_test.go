package relay

import (
	"fmt"
	"slices"
	"testing"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/telemetry/telemetrytest"
)

// The events of these tests, by their traceparents.
const (
	inATrace  = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	notKept   = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
	ofNoTrace = ""
)

// traced writes an event with a traceparent and returns its id.
func (e *env) traced(traceparent string) (id string) {
	e.t.Helper()
	e.append(placed, "key")
	e.scan(&id, "select meta ->> 'id' from events order by position desc limit 1")
	if traceparent != "" {
		e.exec("update events set meta = (meta::jsonb || jsonb_build_object('traceparent', $2::text))::json where meta ->> 'id' = $1", id, traceparent)
	}
	return id
}

// records are those of an event, as they are on the topic.
func (e *env) records(id string) (all []events.Recorded) {
	e.t.Helper()
	for n := range e.topic.Partitions {
		all = append(all, slices.DeleteFunc(e.log(n), func(r events.Recorded) bool { return r.ID != id })...)
	}
	return all
}

// A record names its sending as its place in the trace, and the sending is below the append. What is sent again, by a new
// leader, is the same, and nobody takes the log for another store's.
func TestASendingIsASpanBetweenAppendAndRecord(t *testing.T) {
	t.Parallel()
	e := newEnv(t, events.Orders)
	c := telemetrytest.New(t)
	withTraces := func(r *Relay) { r.opts.Tracer = c.Tracing(t).Service("orders") }
	kept, dropped, plain := e.traced(inATrace), e.traced(notKept), e.traced(ofNoTrace)
	_, stop := e.start(withTraces)
	e.drained()
	stop()
	e.exec("update relay_cursor set position = 0; delete from relay_partitions") // as a crash before the cursor moves leaves it
	r, stop := e.start(withTraces)
	e.drained()
	stop()
	if err := r.Health(); err != nil {
		t.Fatal(err)
	}
	spans := c.Await(t, func(spans []telemetrytest.Span) error {
		if len(spans) != 2 {
			return fmt.Errorf("%d spans, want one for each sending of the one event whose trace is kept", len(spans))
		}
		return nil
	})
	twice := e.records(kept)
	if len(twice) != 2 {
		t.Fatalf("%d records of one event that was sent twice", len(twice))
	}
	if twice[0].Traceparent != twice[1].Traceparent {
		t.Errorf("sent again, it is at %s instead of %s", twice[1].Traceparent, twice[0].Traceparent)
	}
	for i, s := range spans {
		if s.Parent != "00f067aa0ba902b7" || s.Name != "send orders" || s.Attributes["messaging.message.id"] != kept || s.Attributes["feira.order"] != "c-1" {
			t.Errorf("the span is %+v", s)
		}
		if want := "00-4bf92f3577b34da6a3ce929d0e0e4736-" + s.ID + "-01"; twice[i].Traceparent != want {
			t.Errorf("the record is at %s, want %s", twice[i].Traceparent, want)
		}
	}
	for id, want := range map[string]string{dropped: notKept, plain: ofNoTrace} {
		for _, record := range e.records(id) {
			if record.Traceparent != want {
				t.Errorf("the record is at %q, want %q", record.Traceparent, want)
			}
		}
	}
	if e.check() != 3 {
		t.Error("three events were to be repeated")
	}
}

// Without a tracer the client's trace goes on as it is.
func TestWithoutTracesTheTraceparentPasses(t *testing.T) {
	t.Parallel()
	e := newEnv(t, events.Orders)
	id := e.traced(inATrace)
	e.start()
	e.drained()
	if records := e.records(id); len(records) != 1 || records[0].Traceparent != inATrace {
		t.Errorf("the records are %+v", records)
	}
}
