package jobs

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/telemetry/telemetrytest"
)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	request = "00-" + traceID + "-00f067aa0ba902b7-01"
)

// askWithin inserts a job for an order, from within a trace.
func (b *bed) askWithin(traceparent, order string) {
	b.t.Helper()
	_, err := decider.Handle(b.t.Context(), b.store, charges(), "charge-"+order, ask{Order: order}, events.Meta{Traceparent: traceparent, Correlation: "o-" + order})
	must(b.t, err)
}

// ofOrder gives the job's events the order as their story.
func ofOrder(a chargeJob) events.Meta { return events.Meta{Correlation: "o-" + a.Order} }

// Each attempt is a span below the append of what called for the job; what the job does is below it, and so is the append
// of its outcome. Lines about a failure name the trace and the order.
func TestAJobContinuesTheTraceOfWhatCalledForIt(t *testing.T) {
	t.Parallel()
	c := telemetrytest.New(t)
	b := newBedWith(t, c.Tracing(t).Service("charges"))
	l, log := telemetrytest.NewLog(t)
	var tried atomic.Bool
	inside := make(chan string, 1)
	s := spec(func(ctx context.Context, a chargeJob) (any, error) {
		if tried.CompareAndSwap(false, true) {
			return nil, errors.New("no answer")
		}
		inside <- trace.SpanContextFromContext(ctx).SpanID().String()
		return receipt(ctx, a)
	})
	s.Meta = ofOrder
	b.askWithin(request, "1")
	b.startWith(l, Work(s))
	b.settled()
	spans := c.Await(t, func(spans []telemetrytest.Span) error {
		if n := len(spans); n != 4 {
			return fmt.Errorf("%d spans, want two appends and two attempts", n)
		}
		return nil
	})
	appends, attempts := telemetrytest.Named(spans, "append charge"), telemetrytest.Named(spans, "job test_charge")
	if len(appends) != 2 || len(attempts) != 2 {
		t.Fatalf("the spans are %v", telemetrytest.Names(spans))
	}
	asked, outcome, failed, done := appends[0], appends[1], attempts[0], attempts[1]
	if asked.Parent != "00f067aa0ba902b7" || failed.Parent != asked.ID || done.Parent != asked.ID || outcome.Parent != done.ID {
		t.Errorf("the spans are %+v", spans)
	}
	if failed.Failure != "no answer" || failed.Attributes["feira.outcome"] != outcomeRetried || failed.Attributes["feira.attempt"] != "1" {
		t.Errorf("the first attempt is %+v", failed)
	}
	if done.Failure != "" || done.Attributes["feira.outcome"] != outcomeCompleted || done.Attributes["feira.order"] != "o-1" || done.ID != receive(t, "the span", inside) {
		t.Errorf("the second attempt is %+v", done)
	}
	if line := log.Lines("jobs: no answer; trying again"); len(line) != 1 || !line[0].Is(traceID, "o-1") || line[0]["span_id"] != failed.ID {
		t.Errorf("said was %v", line)
	}
}

// Without a tracer, and without anything in between knowing of it, the place in the trace goes from event to job to event.
func TestWithoutTracesAJobPassesTheTraceparent(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.askWithin(request, "1")
	b.ask("2")
	b.start(Work(spec(receipt)))
	b.settled()
	for order, want := range map[string]string{"1": request, "2": ""} {
		history, err := b.store.History(t.Context(), "charge-"+order, eventstore.Until{})
		must(t, err)
		for _, r := range history {
			if r.Traceparent != want {
				t.Errorf("%s is at %q, want %q", r.Type, r.Traceparent, want)
			}
		}
	}
}

// An attempt that was not made, since the breaker is open, is none in the trace either.
func TestAnOpenBreakerLeavesNoSpans(t *testing.T) {
	t.Parallel()
	c := telemetrytest.New(t)
	b := newBedWith(t, c.Tracing(t).Service("charges"))
	var down atomic.Bool
	down.Store(true)
	b.start(Work(spec(func(ctx context.Context, a chargeJob) (any, error) {
		if down.Load() {
			return nil, errors.New("no answer")
		}
		return receipt(ctx, a)
	})))
	for i := range 2 * breakerConsecutive {
		b.askWithin(request, fmt.Sprint(i))
	}
	b.until("attempts are put off", "select count(*) > 0 from river_job where state <> 'completed' and scheduled_at > now()")
	for b.counted(outcomeSnoozed) < 5 {
		b.until("a look at the clock", "select pg_sleep(0.01) is not null")
	}
	down.Store(false)
	b.settled()
	want := int(b.counted(outcomeRetried) + b.counted(outcomeCompleted))
	c.Await(t, func(spans []telemetrytest.Span) error {
		if n := len(telemetrytest.Named(spans, "job test_charge")); n != want {
			return fmt.Errorf("%d attempts in traces, %d were made", n, want)
		}
		return nil
	})
}
