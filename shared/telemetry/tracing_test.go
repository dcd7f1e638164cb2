package telemetry

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// variables are all that NewTracing looks at itself.
var variables = []string{
	"OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
	"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG",
}

func setVariables(t *testing.T, set map[string]string) {
	t.Helper()
	for _, v := range variables {
		t.Setenv(v, set[v])
	}
}

func TestTracesAreOnWhereAnEndpointIsSet(t *testing.T) {
	const address = "http://127.0.0.1:1"
	for name, c := range map[string]struct {
		set map[string]string
		on  bool
	}{
		"nothing":         {nil, false},
		"an endpoint":     {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": address}, true},
		"one for traces":  {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": address + "/v1/traces"}, true},
		"disabled":        {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_SDK_DISABLED": "true"}, false},
		"no exporter":     {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_TRACES_EXPORTER": "none"}, false},
		"named, protocol": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			setVariables(t, c.set)
			tracing, err := NewTracing(t.Context(), TracingOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer tracing.Stop(t.Context())
			if tracer := tracing.Service("orders"); (tracer != nil) != c.on {
				t.Errorf("traces are on: %v", tracer != nil)
			}
		})
	}
}

func TestVariablesThatAreOfNoUseAreNamed(t *testing.T) {
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc",
		"OTEL_TRACES_EXPORTER": "console", "OTEL_TRACES_SAMPLER": "sometimes", "OTEL_TRACES_SAMPLER_ARG": "10%",
	} {
		t.Run(name, func(t *testing.T) {
			set := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_SAMPLER": "parentbased_traceidratio"}
			set[name] = value
			setVariables(t, set)
			_, err := NewTracing(t.Context(), TracingOptions{})
			var wrong *VariableError
			if !errors.As(err, &wrong) || wrong.Name != name || wrong.Value != value || wrong.Want == "" {
				t.Errorf("%v", err)
			}
		})
	}
}

// Whatever the sampler, a trace is kept as a whole or not at all.
func TestTheBeginningDecidesForTheWholeTrace(t *testing.T) {
	for name, c := range map[string]struct {
		arg  string
		root bool // whether a trace that begins here is kept
	}{
		"": {"", true}, "always_on": {"", true}, "parentbased_always_on": {"", true},
		"always_off": {"", false}, "parentbased_always_off": {"", false},
		"traceidratio": {"0", false}, "parentbased_traceidratio": {"1", true}, "PARENTBASED_TRACEIDRATIO": {" 0.0 ", false},
	} {
		t.Run(name, func(t *testing.T) {
			setVariables(t, map[string]string{"OTEL_TRACES_SAMPLER": name, "OTEL_TRACES_SAMPLER_ARG": c.arg})
			tracing, err := NewTracing(t.Context(), TracingOptions{Endpoint: "http://127.0.0.1:1"})
			if err != nil {
				t.Fatal(err)
			}
			defer tracing.Stop(t.Context())
			tracer := tracing.Service("orders")
			for from, want := range map[string]bool{"": c.root, client: true, unkept: false} {
				_, span := tracer.tracer.Start(Continue(context.Background(), from), "test")
				if got := span.SpanContext().IsSampled(); got != want {
					t.Errorf("below %q it is kept: %v", from, got)
				}
			}
		})
	}
}

func TestRatio(t *testing.T) {
	setVariables(t, map[string]string{"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.1"})
	tracing, err := NewTracing(t.Context(), TracingOptions{Endpoint: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer tracing.Stop(t.Context())
	tracer, n := tracing.Service("orders"), 0
	for range 10_000 {
		if _, span := tracer.tracer.Start(context.Background(), "test"); span.SpanContext().IsSampled() {
			n++
		}
	}
	if n < 800 || n > 1200 { // six standard deviations
		t.Errorf("of 10000 traces %d are kept, want about 1000", n)
	}
}

func TestNoTracerCostsNothing(t *testing.T) {
	var tracing *Tracing
	tracer := tracing.Service("orders")
	tracing.Stop(t.Context())
	ctx := Continue(context.Background(), client)
	allocations := testing.AllocsPerRun(1000, func() {
		if _, ok := tracer.Plan(client); ok {
			t.Error("a span is planned")
		}
		if same, span := tracer.Append(ctx, "order-1"); same != ctx || span.IsRecording() {
			t.Error("a span is recorded")
		}
		if same, span := tracer.Start(ctx, "test", trace.SpanKindInternal); same != ctx || span.IsRecording() {
			t.Error("a span is recorded")
		}
	})
	if allocations > 0 {
		t.Errorf("%v allocations", allocations)
	}
	if tracer.Serve(nil)(nil) != nil {
		t.Error("a handler is wrapped")
	}
}

// A trace that is not kept costs one comparison per record.
func TestATraceThatIsNotKeptCostsNothing(t *testing.T) {
	tracer := &Tracer{}
	if n := testing.AllocsPerRun(1000, func() { tracer.Plan(unkept) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestComplaintsAreFew(t *testing.T) {
	t.Parallel()
	log, lines := captured()
	c := newComplaints(log)
	for range 10 {
		c.Handle(errors.New("connection refused"))
	}
	if n := len(lines()); n != 1 {
		t.Errorf("%d lines about a collector that is down", n)
	}
	c.last.Add(-int64(time.Minute / time.Second))
	c.Handle(errors.New("connection refused"))
	if n := len(lines()); n != 2 {
		t.Errorf("%d lines a minute later", n)
	}
}
