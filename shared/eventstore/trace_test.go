package eventstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/pg/pgtest"
	"github.com/feira-shop/feira/shared/telemetry"
	"github.com/feira-shop/feira/shared/telemetry/telemetrytest"
)

const request = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// A job's arguments say where it was called for, whatever else they say. They stay JSON whatever the traceparent is.
func TestAJobKeepsWhereItWasCalledFor(t *testing.T) {
	t.Parallel()
	db := withRiver(t)
	s := start(t, db.Pool)
	for i, c := range []struct{ traceparent, args, want string }{
		{request, `{"n":1}`, `{"n": 1, "traceparent": "` + request + `"}`},
		{request, `{}`, `{"traceparent": "` + request + `"}`},
		{request, `{ }`, `{"traceparent": "` + request + `"}`},
		{"", `{"n":1}`, `{"n": 1}`},
		{`"},"n":2,{"`, `{"n":1}`, `{"n": 1, "traceparent": "\"},\"n\":2,{\""}`},
		{request, `[1]`, `[1]`}, // of another shape than River's
	} {
		a := counted(t, fmt.Sprintf("counter-%d", i), 0)
		a.Jobs = []eventstore.Job{{Kind: "charge", Args: []byte(c.args), Traceparent: c.traceparent}}
		_, err := s.Append(t.Context(), a)
		must(t, err)
		if got := one[string](t, db.Pool, "select args::text from river_job order by id desc limit 1"); got != c.want {
			t.Errorf("%s became %s, want %s", c.args, got, c.want)
		}
	}
}

// A transaction that appends is a span, and its events name it. One that appends nothing, or fails, is none.
func TestATransactionIsASpan(t *testing.T) {
	t.Parallel()
	c := telemetrytest.New(t)
	tracing := c.Tracing(t)
	db := pgtest.New(t, eventstore.Migrations())
	s := eventstore.New(db.Pool, eventstore.Options{Service: "counter", Registry: events.NewRegistry(Counted{}), Tracer: tracing.Service("counter")})
	run(t, s)
	ctx := telemetry.Continue(t.Context(), request)
	within := func(fn func(ctx context.Context, tx *eventstore.Tx) error) error {
		return s.Within(ctx, func(ctx context.Context, tx *eventstore.Tx) error {
			if _, err := tx.Load(ctx, []string{"counter-1"}); err != nil {
				return err
			}
			return fn(ctx, tx)
		})
	}
	failed := errors.New("failed")
	if err := within(func(context.Context, *eventstore.Tx) error { return failed }); !errors.Is(err, failed) {
		t.Fatal(err)
	}
	must(t, within(func(context.Context, *eventstore.Tx) error { return nil }))
	var at string
	must(t, within(func(ctx context.Context, tx *eventstore.Tx) error {
		at = telemetry.Traceparent(ctx)
		tx.Append(counted(t, "counter-1", 0))
		return nil
	}))
	tracing.Stop(t.Context())
	spans := c.Spans()
	if len(spans) != 1 {
		t.Fatalf("the spans are %v", telemetrytest.Names(spans))
	}
	if s := spans[0]; s.Name != "append counter" || s.Attributes["feira.stream"] != "counter-1" || s.Parent != "00f067aa0ba902b7" ||
		at != "00-4bf92f3577b34da6a3ce929d0e0e4736-"+s.ID+"-01" {
		t.Errorf("the span is %+v, the function was at %s", s, at)
	}
}

// An append says in its caller's span when it was sent.
func TestAnAppendSaysWhenItWasFlushed(t *testing.T) {
	t.Parallel()
	c := telemetrytest.New(t)
	tracer := c.Tracing(t).Service("counter")
	db := pgtest.New(t, eventstore.Migrations())
	s := start(t, db.Pool)
	ctx, span := tracer.Append(telemetry.Continue(t.Context(), request), "counter-1")
	_, err := s.Append(ctx, counted(t, "counter-1", 0))
	must(t, err)
	span.End()
	c.Await(t, func(spans []telemetrytest.Span) error {
		if len(spans) != 1 || len(spans[0].Events) != 1 || spans[0].Events[0] != "flush" {
			return fmt.Errorf("the spans are %+v", spans)
		}
		return nil
	})
}
