package telemetry

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	client  = "00-" + traceID + "-00f067aa0ba902b7-01"
	unkept  = "00-" + traceID + "-00f067aa0ba902b7-00"
)

func TestTraceparentIsReadAndWrittenAsW3CHasIt(t *testing.T) {
	t.Parallel()
	for _, tp := range []string{client, unkept} {
		ctx := Continue(context.Background(), tp)
		if got := Traceparent(ctx); got != tp {
			t.Errorf("%s became %q", tp, got)
		}
		theirs := propagation.MapCarrier{}
		propagation.TraceContext{}.Inject(ctx, theirs)
		if theirs["traceparent"] != tp {
			t.Errorf("OpenTelemetry writes %q for %s", theirs["traceparent"], tp)
		}
	}
	if Traceparent(context.Background()) != "" {
		t.Error("a context without a trace has a place in one")
	}
}

func TestATraceparentThatIsNotUnderstoodChangesNothing(t *testing.T) {
	t.Parallel()
	for _, tp := range []string{
		"", "trace", client[:54], client + "0", "01" + client[2:], "00_" + client[3:],
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01", "00-" + traceID + "-0000000000000000-01",
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", "00-" + traceID + "-00f067aa0ba902b7-x1",
		"00-" + traceID + "_00f067aa0ba902b7-01", "00-" + traceID + "-00f067aa0ba902b7_01",
	} {
		if trace.SpanContextFromContext(Continue(context.Background(), tp)).IsValid() {
			t.Errorf("%q was understood", tp)
		}
		if _, ok := (&Tracer{}).Plan(tp); ok {
			t.Errorf("a span is planned below %q", tp)
		}
	}
}

func TestAPlaceInATraceIsKept(t *testing.T) {
	t.Parallel()
	here := Continue(context.Background(), client)
	if got := Traceparent(Continue(here, "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-01")); got != client {
		t.Errorf("it became %s", got)
	}
}

// What looks at one byte only must agree with what reads all.
func TestWhetherATraceIsKept(t *testing.T) {
	t.Parallel()
	for flags := range 256 {
		tp := client[:53] + string("0123456789abcdef"[flags>>4]) + string("0123456789abcdef"[flags&15])
		if sc, ok := parse(tp); !ok || sc.IsSampled() != kept(tp) || kept(tp) != (flags&1 == 1) {
			t.Errorf("%s: read %v, kept %v, looked at %v", tp, ok, sc.IsSampled(), kept(tp))
		}
	}
}
