package decider_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/pg/pgtest"
	"github.com/feira-shop/feira/shared/telemetry"
	"github.com/feira-shop/feira/shared/telemetry/telemetrytest"
)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	request = "00-" + traceID + "-00f067aa0ba902b7-01"
)

// A command that changes something is a span, which its events name as their place in the trace. A command that was
// carried out before is none.
func TestACommandIsASpanOfItsAppend(t *testing.T) {
	t.Parallel()
	c := telemetrytest.New(t)
	db := pgtest.New(t, eventstore.Migrations())
	store := eventstore.New(db.Pool, eventstore.Options{Service: "loyalty", Registry: events.NewRegistry(), Tracer: c.Tracing(t).Service("loyalty")})
	run(t, store)
	ctx := telemetry.Continue(t.Context(), request)
	stray := events.Meta{Correlation: "o1", Traceparent: "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-01"}
	handle := func(ctx context.Context, order string, m events.Meta, opts ...decider.Option) {
		t.Helper()
		if _, err := decider.Handle(ctx, store, rules, stream, earn{"ana", order, ""}, m, opts...); err != nil {
			t.Fatal(err)
		}
	}
	handle(ctx, "o1", stray)
	handle(ctx, "o1", stray)
	handle(t.Context(), "o2", events.Meta{Traceparent: request})       // as a loop does, which has no place of its own
	handle(ctx, "o3", events.Meta{Correlation: "o3"}, decider.Fresh()) // which meets another version first
	spans := c.Await(t, func(spans []telemetrytest.Span) error {
		if len(spans) != 4 {
			return fmt.Errorf("%d spans, want three commands and one that was refused at first", len(spans))
		}
		return nil
	})
	h, refused := history(t, store, stream), 0
	ids := map[string]bool{}
	for _, s := range spans {
		if s.Trace != traceID || s.Parent != "00f067aa0ba902b7" || s.Name != "append loyalty" {
			t.Errorf("the span is %+v", s)
		}
		if s.Failure != "" {
			refused++
			continue
		}
		ids["00-"+traceID+"-"+s.ID+"-01"] = true
	}
	if refused != 1 || len(h) != 3 {
		t.Errorf("%d spans tell of a refusal, there are %d events", refused, len(h))
	}
	for _, r := range h {
		if !ids[r.Traceparent] {
			t.Errorf("%s is at %s, which is none of the spans", r.ID, r.Traceparent)
		}
	}
	if o := telemetrytest.Named(spans, "append loyalty")[0].Attributes; o["feira.order"] != "o1" || o["feira.events"] != (events.PointsEarned{}).EventType() {
		t.Errorf("the span says %v", o)
	}
}
