package shoptest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/internal/shoptest"
	"github.com/feira-shop/feira/shared/telemetry/telemetrytest"
)

// story is what one trace of one order has at least, each from the request down. What confirms the order is the last
// of three facts that it waits for, so any of them may.
var story = []string{
	"POST /v1/orders > append order > send orders > process orders inventory.reserve > append reservation > send inventory > process inventory orders.process > append order",
	"POST /v1/orders > append order > send orders > process orders payments.pay > append payment > job payment_authorize > POST authorizations > POST /v1/authorizations",
	"POST /v1/orders > append order > send orders > process orders payments.pay > append payment > job payment_authorize > append payment > send payments > process payments orders.process > append order",
	"process payments fraud.cards > append verdict > send fraud > process fraud orders.process > append order",
	"append order > send orders > process orders payments.pay > append payment > job payment_capture > POST capture > POST /v1/authorizations/{id}/capture",
	"job payment_capture > append payment > send payments > process payments orders.process > append order",
	"job payment_capture > append payment > send payments > process payments loyalty.account > append loyalty > send loyalty",
}

// kinds are the kinds of spans by the first word of their names.
var kinds = map[string]otlp.Span_SpanKind{
	"append": otlp.Span_SPAN_KIND_INTERNAL, "send": otlp.Span_SPAN_KIND_PRODUCER,
	"process": otlp.Span_SPAN_KIND_CONSUMER, "job": otlp.Span_SPAN_KIND_CONSUMER,
}

// TestOneTrace: what an order goes through, from the request to the last event, is one trace.
func TestOneTrace(t *testing.T) {
	t.Parallel()
	c := telemetrytest.New(t)
	s := shoptest.Start(t, shoptest.Options{Tracing: c.Tracing(t)})
	sku, ana := s.Product(t, 12_345, 10), s.Customer(t)
	res := ana.Send(t, s.Key(), ana.Checkout(sku, 1, s.Card("tok_visa")), 10)
	if res.JSON201 == nil {
		t.Fatalf("the answer is %s %s", res.Status(), res.Body)
	}
	order := *res.JSON201
	ana.AwaitMoney(t, order, api.FinancialStatusPaid)
	tr := traceOf(c.Await(t, func(spans []telemetrytest.Span) error { return traceOf(spans, order.Id).whole() }), order.Id)
	t.Logf("the trace of one order, from its request on (start, duration, service, span):\n%s", tr.print())
	tr.check(t, order.Id)
	logsOfTrace(t, s, tr.root.Trace, order.Id)
}

// TestAHangingCollectorHoldsUpNoOrder: with every trace kept and none taken, orders are as quick as ever.
func TestAHangingCollectorHoldsUpNoOrder(t *testing.T) {
	t.Parallel()
	over, asked := make(chan struct{}), make(chan struct{}, 1)
	hanging := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-over
	}))
	t.Cleanup(func() { close(over); hanging.Close() })
	s := shoptest.Start(t, shoptest.Options{Tracing: telemetrytest.Tracing(t, hanging.URL)})
	sku, ana := s.Product(t, 1_000, 100), s.Customer(t)
	<-asked // from here on the collector hangs
	best := time.Hour
	for range 20 {
		began := time.Now()
		res := ana.Send(t, s.Key(), ana.Checkout(sku, 1, s.Card("tok_visa")), 10)
		if took := time.Since(began); res.JSON201 != nil && res.JSON201.Status == api.OrderStatusConfirmed {
			best = min(best, took)
		}
	}
	if t.Logf("confirmed within %s", best); best >= time.Second {
		t.Errorf("the quickest order was confirmed after %s, want less than a second", best)
	}
}

// tree is the spans of one trace.
type tree struct {
	root  *telemetrytest.Span
	byID  map[string]*telemetrytest.Span
	below map[string][]*telemetrytest.Span // by the id of the parent, as they began
}

// traceOf picks the trace of the request that placed an order.
func traceOf(all []telemetrytest.Span, order string) tree {
	tr := tree{byID: map[string]*telemetrytest.Span{}, below: map[string][]*telemetrytest.Span{}}
	id := ""
	for _, s := range all {
		if s.Name == "POST /v1/orders" && s.Attributes["feira.order"] == order {
			id = s.Trace
		}
	}
	for i := range all {
		s := &all[i]
		if s.Trace != id {
			continue
		}
		tr.byID[s.ID] = s
		tr.below[s.Parent] = append(tr.below[s.Parent], s)
		if s.Parent == "" {
			tr.root = s
		}
	}
	for _, list := range tr.below {
		slices.SortFunc(list, func(a, b *telemetrytest.Span) int { return a.Start.Compare(b.Start) })
	}
	return tr
}

// label is a span's name, and the operator's where it is one's.
func label(s *telemetrytest.Span) string {
	return strings.TrimSpace(s.Name + " " + s.Attributes["feira.operator"])
}

// path is a span's ancestors and itself.
func (tr tree) path(s *telemetrytest.Span) string {
	if parent := tr.byID[s.Parent]; parent != nil {
		return tr.path(parent) + " > " + label(s)
	}
	return label(s)
}

// whole says what is missing in the trace.
func (tr tree) whole() error {
	if tr.root == nil {
		return fmt.Errorf("%d spans, and none is the first", len(tr.byID))
	}
	var paths []string
	confirmed := false
	for _, s := range tr.byID {
		if s.Parent != "" && tr.byID[s.Parent] == nil {
			return fmt.Errorf("%s is below a span that is not there", label(s))
		}
		paths = append(paths, tr.path(s))
		confirmed = confirmed || s.Service == "feira-orders" && strings.Contains(s.Attributes["feira.events"], "shop.feira.order.confirmed.v1")
	}
	if !confirmed {
		return fmt.Errorf("nothing confirms the order")
	}
	for _, want := range story {
		if !slices.ContainsFunc(paths, func(p string) bool { return p == want || strings.HasSuffix(p, " > "+want) }) {
			return fmt.Errorf("there is no %s", want)
		}
	}
	return nil
}

// check looks at what the spans say.
func (tr tree) check(t *testing.T, order string) {
	t.Helper()
	if n := len(tr.below[""]); n != 1 {
		t.Errorf("the trace has %d beginnings", n)
	}
	for _, s := range tr.byID {
		first, rest, _ := strings.Cut(s.Name, " ")
		if want, ok := kinds[first]; ok && s.Kind != want {
			t.Errorf("%s is of kind %s", label(s), s.Kind)
		}
		if s.Failure != "" || s.End.Before(s.Start) {
			t.Errorf("%s: failure %q, from %s to %s", label(s), s.Failure, s.Start, s.End)
		}
		if parent := tr.byID[s.Parent]; parent != nil && s.Start.Before(parent.Start.Add(-time.Millisecond)) {
			t.Errorf("%s began before %s, which it follows from", label(s), label(parent))
		}
		if first == "GET" || first == "POST" { // the provider knows of no orders
			continue
		}
		if got := s.Attributes["feira.order"]; got != order {
			t.Errorf("%s is of order %q", label(s), got)
		}
		if first != "send" && first != "process" {
			continue
		}
		want := map[string]string{"messaging.system": "kafka", "messaging.operation.name": first, "messaging.destination.name": rest}
		if first == "process" {
			want["messaging.consumer.group.name"] = s.Attributes["feira.operator"] + "." + rest
		}
		for k, v := range want {
			if s.Attributes[k] != v {
				t.Errorf("%s has %s %q, want %q", label(s), k, s.Attributes[k], v)
			}
		}
		for _, k := range []string{"messaging.message.id", "messaging.kafka.offset", "messaging.destination.partition.id", "cloudevents.event_type"} {
			if s.Attributes[k] == "" {
				t.Errorf("%s has no %s", label(s), k)
			}
		}
	}
}

// print draws the trace as a tree.
func (tr tree) print() string {
	var b strings.Builder
	var draw func(s *telemetrytest.Span, indent string)
	draw = func(s *telemetrytest.Span, indent string) {
		ms := func(d time.Duration) string { return fmt.Sprintf("%8.2f ms", float64(d.Microseconds())/1000) }
		fmt.Fprintf(&b, "%s %s  %-16s %s%s", ms(s.Start.Sub(tr.root.Start)), ms(s.End.Sub(s.Start)), strings.TrimPrefix(s.Service, "feira-"), indent, label(s))
		what := s.Attributes["feira.events"] + s.Attributes["cloudevents.event_type"]
		fmt.Fprintf(&b, "  %s\n", strings.NewReplacer("shop.feira.", "", ".v1", "").Replace(what))
		for _, child := range tr.below[s.ID] {
			draw(child, indent+"  ")
		}
	}
	draw(tr.root, "")
	return b.String()
}

// logsOfTrace: the line of the request names its trace and its order.
func logsOfTrace(t *testing.T, s *shoptest.Shop, trace, order string) {
	t.Helper()
	for line := range strings.Lines(s.Log.String()) {
		var said struct {
			Msg     string `json:"msg"`
			Route   string `json:"route"`
			Method  string `json:"method"`
			TraceID string `json:"trace_id"`
			SpanID  string `json:"span_id"`
			Order   string `json:"order"`
		}
		if json.Unmarshal([]byte(line), &said) != nil || said.TraceID != trace {
			continue
		}
		if said.Msg == "request" && said.Method == http.MethodPost && said.Route == "/v1/orders" && said.Order == order && len(said.SpanID) == 16 {
			return
		}
	}
	t.Errorf("no line of the log is about the request of trace %s and order %s", trace, order)
}
