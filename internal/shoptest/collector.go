package shoptest

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/feira-shop/feira/shared/telemetry"
)

// exportEvery is how often the shop of a test exports its spans.
const exportEvery = 50 * time.Millisecond

// Collector takes traces over OTLP/HTTP and keeps them in memory.
type Collector struct {
	URL string

	mu    sync.Mutex
	spans []Span
}

// Span is an exported span. Ids are in hex.
type Span struct {
	Trace, ID, Parent string // Parent is "" for the first span of a trace
	Service, Name     string // Service is the resource's service.name
	Kind              otlp.Span_SpanKind
	Start, End        time.Time
	Attributes        map[string]string // values as text
	Failure           string            // "": none
}

// NewCollector starts a collector, which is stopped when the test ends.
func NewCollector(tb testing.TB) *Collector {
	tb.Helper()
	c := &Collector{}
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

// Trace makes the tracing of a shop that exports to a collector's address. It is stopped when the test ends.
func Trace(tb testing.TB, url string) *telemetry.Tracing {
	tb.Helper()
	t, err := telemetry.NewTracing(tb.Context(), telemetry.TracingOptions{Endpoint: url, Every: exportEvery})
	must(tb, "trace", err)
	tb.Cleanup(func() { t.Stop(tb.Context()) })
	return t
}

// Spans are those that came in so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span{}, c.spans...)
}

func (c *Collector) take(r *http.Request) error {
	if r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		return fmt.Errorf("%s of %s", r.URL.Path, r.Header.Get("Content-Type"))
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	var export v1.ExportTraceServiceRequest
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
	return nil
}

func spanOf(service string, s *otlp.Span) Span {
	at := func(nanos uint64) time.Time { return time.Unix(0, int64(nanos)) }
	span := Span{
		Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
		Service: service, Name: s.GetName(), Kind: s.GetKind(), Start: at(s.GetStartTimeUnixNano()), End: at(s.GetEndTimeUnixNano()),
		Attributes: texts(s.GetAttributes()),
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
