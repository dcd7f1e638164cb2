package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/telemetry/telemetrytest"
)

const (
	traceID  = "4bf92f3577b34da6a3ce929d0e0e4736"
	sent     = "00-" + traceID + "-00f067aa0ba902b7-01"
	sentDark = "00-" + traceID + "-00f067aa0ba902b7-00" // its trace is not kept
)

// traced is a world whose operators trace, and log as the shop does.
func traced(t *testing.T) (*world, *telemetrytest.Collector) {
	t.Helper()
	w, c := newWorld(t, facts), telemetrytest.New(t)
	w.store = eventstore.New(w.db.Pool, eventstore.Options{
		Service: "tests", Registry: events.NewRegistry(happened{}), Tracer: c.Tracing(t).Service("tests"),
	})
	return w, c
}

// answering appends an event to the stream of each record's key.
type answering struct{ failing atomic.Int32 }

func (a *answering) Apply(_ context.Context, tx *eventstore.Tx, batch []Record) error {
	if a.failing.Add(-1) >= 0 {
		return errors.New("not now")
	}
	for _, r := range batch {
		if r.Key == "silent" {
			continue
		}
		m, err := events.Reply(r.Recorded, "tests", r.Time)
		if err != nil {
			return err
		}
		e, err := eventstore.Encode(m, happened{Key: r.Key})
		if err != nil {
			return err
		}
		tx.Append(eventstore.Append{Stream: "answer-" + r.ID, State: json.RawMessage(`{}`), Events: []eventstore.Event{e}})
	}
	return nil
}

func spansNamed(name string, n int) func([]telemetrytest.Span) error {
	return func(spans []telemetrytest.Span) error {
		if got := len(telemetrytest.Named(spans, name)); got != n {
			return fmt.Errorf("%d spans %s, want %d", got, name, n)
		}
		return nil
	}
}

// A record's processing is below its sending, the append of what follows below the processing, and the events name the
// append. A batch that was tried again is one span.
func TestARecordIsProcessedWithinItsTrace(t *testing.T) {
	t.Parallel()
	w, c := traced(t)
	spoken := with(with(w.fact(facts, 1, "spoken"), events.HeaderTraceparent, sent), events.HeaderCorrelation, "o-1")
	silent := with(w.fact(facts, 1, "silent"), events.HeaderTraceparent, sent)
	dark := with(w.fact(facts, 1, "dark"), events.HeaderTraceparent, sentDark)
	w.publish(spoken, silent, dark, w.fact(facts, 1, "plain"))
	h := &answering{}
	h.failing.Store(2)
	o := w.operator(w.definition(h, facts), "m1")
	w.start(o)
	w.awaitCheckpoints(4)
	spans := c.Await(t, func(spans []telemetrytest.Span) error {
		return errors.Join(spansNamed("process facts", 2)(spans), spansNamed("append answer", 1)(spans))
	})
	for _, s := range telemetrytest.Named(spans, "process facts") {
		a := s.Attributes
		if s.Trace != traceID || s.Parent != "00f067aa0ba902b7" || s.Service != "feira-tests" || s.Failure != "" ||
			a["messaging.consumer.group.name"] != o.Name()+".facts" || a["feira.operator"] != o.Name() || a["messaging.destination.partition.id"] != "1" {
			t.Errorf("the processing is %+v", s)
		}
		switch a["messaging.message.id"] {
		case idOf(spoken):
			if a["feira.order"] != "o-1" || a["messaging.kafka.offset"] != "0" {
				t.Errorf("the processing is %+v", s)
			}
			w.isBelow(t, s, telemetrytest.Named(spans, "append answer")[0], idOf(spoken))
		case idOf(silent):
		default:
			t.Errorf("a span of %s", a["messaging.message.id"])
		}
		if a["feira.batch"] == "4" && a["feira.tries"] != "3" {
			t.Errorf("the batch was tried %s times", a["feira.tries"])
		}
	}
	if got := w.traceparent(idOf(dark)); got != sentDark {
		t.Errorf("what follows from a trace that is not kept is at %s", got)
	}
}

// isBelow: the append is below the processing, and its event names it.
func (w *world) isBelow(t *testing.T, process, appended telemetrytest.Span, id string) {
	t.Helper()
	if appended.Parent != process.ID || appended.Attributes["feira.events"] != (happened{}).EventType() ||
		appended.Attributes["feira.stream"] != "answer-"+id || appended.Attributes["feira.order"] != "o-1" {
		t.Errorf("the append is %+v", appended)
	}
	if got, want := w.traceparent(id), "00-"+traceID+"-"+appended.ID+"-01"; got != want {
		t.Errorf("the event is at %s, want %s", got, want)
	}
}

// traceparent is that of the event which answers a record.
func (w *world) traceparent(id string) (traceparent string) {
	w.t.Helper()
	err := w.db.Pool.QueryRow(w.t.Context(), "select coalesce(meta ->> 'traceparent', '') from events where stream = $1", "answer-"+id).Scan(&traceparent)
	if err != nil {
		w.t.Fatal(err)
	}
	return traceparent
}

// What is said of one event names its trace and its order: that it is tried again, that it is parked, that its replay
// failed. The trace shows the failures, and the replay that went well.
func TestWhatIsSaidOfAnEventNamesItsTraceAndOrder(t *testing.T) {
	t.Parallel()
	w, c := traced(t)
	l, log := telemetrytest.NewLog(t)
	bad := with(with(w.fact(facts, 0, "a"), events.HeaderTraceparent, sent), events.HeaderCorrelation, "o-1")
	behind := with(with(w.fact(facts, 0, "a"), events.HeaderTraceparent, sent), events.HeaderCorrelation, "o-1")
	h, first := &ledger{}, true
	h.refuse(idOf(bad))
	h.before = func(context.Context, *eventstore.Tx, []Record) error {
		if first {
			first = false
			return errors.New("not now")
		}
		return nil
	}
	o := w.operator(w.definition(h, facts), "m1")
	o.log = l.With("operator", o.Name())
	w.publish(bad)
	w.start(o)
	w.awaitCheckpoints(1)
	w.publish(behind)
	w.awaitCheckpoints(2)
	replay := func() {
		if _, err := Replay(t.Context(), w.db.Pool, Selection{Operator: o.Name()}, "tester"); err != nil {
			t.Fatal(err)
		}
	}
	replay()
	w.await("the replay fails", func() bool { return len(log.Lines("an event is parked")) == 3 })
	h.refuse()
	replay()
	w.awaitEffects(2)
	for _, line := range append(log.Lines("a batch is tried again"), log.Lines("an event is parked")...) {
		if !line.Is(traceID, "o-1") {
			t.Errorf("the line is about no event: %v", line)
		}
	}
	if n := len(log.Lines("a batch is tried again")); n != 1 {
		t.Errorf("%d lines about the batch that is tried again", n)
	}
	for i, want := range []struct{ id, reason, level string }{
		{idOf(bad), reasonRejected, "ERROR"}, {idOf(behind), reasonWaiting, "DEBUG"}, {idOf(bad), reasonRejected, "ERROR"},
	} {
		if line := log.Lines("an event is parked")[i]; line["event"] != want.id || line["reason"] != want.reason || line["level"] != want.level {
			t.Errorf("line %d is %v", i, line)
		}
	}
	spans := c.Await(t, spansNamed("process facts", 4)) // both parked, both replayed
	var failures []string
	for _, s := range spans {
		if s.Failure != "" {
			failures = append(failures, s.Failure)
		}
	}
	if want := "parked, rejected: event " + idOf(bad) + " is not acceptable, parked, waiting: an earlier record of its key is parked"; strings.Join(failures, ", ") != want {
		t.Errorf("the failures are %q", failures)
	}
}
