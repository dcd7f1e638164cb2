// Package telemetrytest is a collector of traces in a test's memory: spans come to it as they do to any other, over
// OTLP/HTTP.
package telemetrytest

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/feira-shop/feira/shared/telemetry"
)

const (
	exportEvery = 20 * time.Millisecond
	patience    = time.Minute // no measure of speed: a loaded machine may need it
)

// Collector takes traces over OTLP/HTTP and keeps them in memory.
type Collector struct {
	URL string

	mu    sync.Mutex
	spans []Span
	more  chan struct{}
}

// Span is an exported span. Ids are in hex.
type Span struct {
	Trace, ID, Parent string // Parent is "" for the first span of a trace
	Service, Name     string // Service is the resource's service.name
	Kind              otlp.Span_SpanKind
	Start, End        time.Time
	Attributes        map[string]string // values as text
	Failure           string            // "": none
	Events            []string          // names
}

// New starts a collector, which is stopped when the test ends.
func New(tb testing.TB) *Collector {
	tb.Helper()
	c := &Collector{more: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := c.take(r); err != nil {
			tb.Errorf("the collector got something else than traces: %v", err)
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	tb.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// Tracing exports to the collector. It is stopped when the test ends.
func (c *Collector) Tracing(tb testing.TB) *telemetry.Tracing {
	tb.Helper()
	return Tracing(tb, c.URL)
}

// Tracing exports to the collector of an address. It is stopped when the test ends.
func Tracing(tb testing.TB, url string) *telemetry.Tracing {
	tb.Helper()
	t, err := telemetry.NewTracing(tb.Context(), telemetry.TracingOptions{Endpoint: url, Every: exportEvery})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { t.Stop(context.Background()) })
	return t
}

// Await waits until the spans that came in are as wanted: until wanted has nothing to complain about.
func (c *Collector) Await(tb testing.TB, wanted func([]Span) error) []Span {
	tb.Helper()
	limit := time.After(patience)
	for {
		spans, more := c.look()
		err := wanted(spans)
		if err == nil {
			return spans
		}
		select {
		case <-more:
		case <-limit:
			tb.Fatalf("in vain waited for spans: %v; there are %s", err, strings.Join(Names(spans), ", "))
		}
	}
}

// Names are the names of spans, as they came in.
func Names(spans []Span) []string {
	names := make([]string, len(spans))
	for i, s := range spans {
		names[i] = s.Name
	}
	return names
}

// Named finds the spans of a name.
func Named(spans []Span, name string) []Span {
	return slices.DeleteFunc(slices.Clone(spans), func(s Span) bool { return s.Name != name })
}

// look gives the spans so far, and a channel that is closed when there are more.
func (c *Collector) look() ([]Span, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans), c.more
}

// Spans are those that came in so far.
func (c *Collector) Spans() []Span {
	spans, _ := c.look()
	return spans
}

func (c *Collector) take(r *http.Request) error {
	if r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		return fmt.Errorf("%s of %s", r.URL.Path, r.Header.Get("Content-Type"))
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	var export collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &export); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range export.GetResourceSpans() {
		service := texts(of.GetResource().GetAttributes())["service.name"]
		for _, scope := range of.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, spanOf(service, s))
			}
		}
	}
	close(c.more)
	c.more = make(chan struct{})
	return nil
}

func spanOf(service string, s *otlp.Span) Span {
	at := func(nanos uint64) time.Time { return time.Unix(0, int64(nanos)) }
	span := Span{
		Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
		Service: service, Name: s.GetName(), Kind: s.GetKind(), Start: at(s.GetStartTimeUnixNano()), End: at(s.GetEndTimeUnixNano()),
		Attributes: texts(s.GetAttributes()),
	}
	for _, e := range s.GetEvents() {
		span.Events = append(span.Events, e.GetName())
	}
	if s.GetStatus().GetCode() == otlp.Status_STATUS_CODE_ERROR {
		span.Failure = s.GetStatus().GetMessage()
	}
	return span
}

func texts(attributes []*common.KeyValue) map[string]string {
	all := map[string]string{}
	for _, a := range attributes {
		switch v := a.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			all[a.GetKey()] = v.StringValue
		case *common.AnyValue_IntValue:
			all[a.GetKey()] = fmt.Sprint(v.IntValue)
		case *common.AnyValue_ArrayValue:
			var list []string
			for _, item := range v.ArrayValue.GetValues() {
				list = append(list, item.GetStringValue())
			}
			all[a.GetKey()] = strings.Join(list, " ")
		default:
			all[a.GetKey()] = a.GetValue().String()
		}
	}
	return all
}
