package telemetrytest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/feira-shop/feira/shared/telemetry"
	"github.com/feira-shop/feira/shared/telemetry/telemetrytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	client  = "00-" + traceID + "-00f067aa0ba902b7-01"
)

func count(n int) func([]telemetrytest.Span) error {
	return func(spans []telemetrytest.Span) error {
		if len(spans) != n {
			return fmt.Errorf("%d spans, want %d", len(spans), n)
		}
		return nil
	}
}

// A request goes through two servers, and what happens in the second is below both.
func TestARequestIsOneTraceThroughServersAndClients(t *testing.T) {
	t.Parallel()
	c := telemetrytest.New(t)
	tracing := c.Tracing(t)
	orders, provider := tracing.Service("orders"), tracing.Service("provider")
	route := func(*http.Request) string { return "/v1/things/{id}" }
	second := httptest.NewServer(provider.Serve(route)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	defer second.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	outgoing := &http.Client{Transport: telemetry.Transport(transport, func(r *http.Request) string { return r.Method + " things" })}
	ask := func(ctx context.Context) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, second.URL+"/v1/things/7", nil)
		if err != nil {
			t.Error(err)
			return
		}
		res, err := outgoing.Do(r)
		if err != nil {
			t.Error(err)
			return
		}
		_ = res.Body.Close()
	}
	first := orders.Serve(func(*http.Request) string { return "" })(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		ctx, span := orders.Append(telemetry.About(r.Context(), "o-1"), "order-1")
		telemetry.Failed(span, errors.New("conflict"))
		ask(ctx)
		span.End()
	}))
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Header.Set("Traceparent", client)
	first.ServeHTTP(httptest.NewRecorder(), r)
	ask(context.Background()) // belongs to no trace, so the server begins one
	spans := c.Await(t, count(5))
	parent := "00f067aa0ba902b7"
	for _, want := range []struct{ service, name string }{
		{"feira-orders", "POST"}, {"feira-orders", "append order"}, {"feira-orders", "GET things"}, {"feira-provider", "GET /v1/things/{id}"},
	} {
		var found telemetrytest.Span
		for _, s := range telemetrytest.Named(spans, want.name) {
			if s.Trace == traceID {
				found = s
			}
		}
		if found.Service != want.service || found.Parent != parent {
			t.Errorf("%s is %+v, want it below %s", want.name, found, parent)
		}
		parent = found.ID
	}
	if s := telemetrytest.Named(spans, "POST")[0]; s.Attributes["feira.order"] != "o-1" {
		t.Errorf("the request is not of the order: %v", s.Attributes)
	}
	if s := telemetrytest.Named(spans, "append order")[0]; s.Failure != "conflict" {
		t.Errorf("the append has not failed: %+v", s)
	}
}

func TestPlannedSpansAreRecordedAsPlanned(t *testing.T) {
	t.Parallel()
	c := telemetrytest.New(t)
	tracer := c.Tracing(t).Service("orders")
	process, ok := tracer.Plan(client)
	if !ok {
		t.Fatal("nothing is planned")
	}
	below, send := process.Child(), process.Named("event-1")
	begun := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, p := range map[string]telemetry.Planned{"process": process, "append": below, "send": send} {
		tracer.Record(p, telemetry.Done{Name: name, Kind: trace.SpanKindConsumer, Start: begun, End: begun.Add(time.Second), Failure: "no " + name})
	}
	spans := c.Await(t, count(3))
	for name, parent := range map[string]string{"process": "00f067aa0ba902b7", "send": "00f067aa0ba902b7"} {
		if s := telemetrytest.Named(spans, name)[0]; s.Parent != parent || s.Trace != traceID {
			t.Errorf("%s is %+v", name, s)
		}
	}
	p, a := telemetrytest.Named(spans, "process")[0], telemetrytest.Named(spans, "append")[0]
	if a.Parent != p.ID || process.Traceparent() != "00-"+traceID+"-"+p.ID+"-01" || below.Traceparent() != "00-"+traceID+"-"+a.ID+"-01" {
		t.Errorf("process is %+v, append %+v", p, a)
	}
	if !p.Start.Equal(begun) || p.End.Sub(p.Start) != time.Second || p.Failure != "no process" {
		t.Errorf("process is %+v", p)
	}
	again, _ := tracer.Plan(client)
	if again.Traceparent() == process.Traceparent() || again.Named("event-1").Traceparent() != send.Traceparent() || again.Named("event-2").Traceparent() == send.Traceparent() {
		t.Error("only a name gives a span the same id again")
	}
}

func TestNothingButARequestBeginsATrace(t *testing.T) {
	t.Parallel()
	c := telemetrytest.New(t)
	tracing := c.Tracing(t)
	tracer := tracing.Service("orders")
	for _, from := range []string{"", client[:54] + "0"} {
		ctx, span := tracer.Append(telemetry.Continue(context.Background(), from), "order-1")
		span.End()
		if got := telemetry.Traceparent(ctx); got != from {
			t.Errorf("from %q came %q", from, got)
		}
	}
	tracing.Stop(t.Context())
	if spans := c.Spans(); len(spans) > 0 {
		t.Errorf("there are spans: %v", spans)
	}
}

func TestStopExportsWhatIsLeft(t *testing.T) {
	t.Parallel()
	c := telemetrytest.New(t)
	tracing, err := telemetry.NewTracing(t.Context(), telemetry.TracingOptions{Endpoint: c.URL, Every: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	_, span := tracing.Service("orders").Append(telemetry.Continue(t.Context(), client), "order-1")
	span.End()
	tracing.Stop(t.Context())
	if names := telemetrytest.Names(c.Spans()); len(names) != 1 {
		t.Errorf("exported were %v", names)
	}
}

// outages are collectors that take nothing: one that is not there, and one that never answers.
func outages(t *testing.T) map[string]string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	missing := "http://" + l.Addr().String()
	_ = l.Close()
	over := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	t.Cleanup(func() { close(over); hanging.Close() })
	return map[string]string{"missing": missing, "hanging": hanging.URL}
}

// Many more spans than are kept for a collector are ended while it takes none: nobody waits.
func TestACollectorThatTakesNothingHoldsUpNobody(t *testing.T) {
	t.Parallel()
	// Usually it takes 50 ms. Where somebody waits, each 512 of the last 3,000 wait for a time-out of the exporter, 10 s at least.
	const spans, patience = 12_000, 30 * time.Second
	for name, url := range outages(t) {
		t.Run(name, func(t *testing.T) {
			tracing, err := telemetry.NewTracing(t.Context(), telemetry.TracingOptions{Endpoint: url, Every: time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			tracer, began := tracing.Service("orders"), time.Now()
			for range spans {
				p, _ := tracer.Plan(client)
				tracer.Record(p, telemetry.Done{Name: "send orders", Start: began, End: began})
				if time.Since(began) > patience {
					t.Fatal("whoever ends spans waits for the collector")
				}
			}
			began = time.Now()
			tracing.Stop(t.Context())
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("the stop took %s, want 3 s at most", took)
			}
		})
	}
}
