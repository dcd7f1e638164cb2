package telemetry

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	nospan "go.opentelemetry.io/otel/trace/noop"
)

// Tracer makes the spans of one service. A nil Tracer makes none, and costs nothing.
//
// A trace begins with an HTTP request. All else only continues one, and does nothing where there is none or where it is
// not kept.
type Tracer struct {
	provider trace.TracerProvider
	tracer   trace.Tracer
}

// Start begins a span within the trace of ctx. The caller ends it.
func (t *Tracer) Start(ctx context.Context, name string, kind trace.SpanKind) (context.Context, trace.Span) {
	if t == nil || !trace.SpanContextFromContext(ctx).IsSampled() {
		return ctx, nospan.Span{}
	}
	return t.tracer.Start(ctx, name, trace.WithSpanKind(kind))
}

// Append begins the span of an append to a stream. The events of the append carry its [Traceparent]: what they lead to
// comes below it. The caller ends the span, or lets go of it when there is nothing to append.
func (t *Tracer) Append(ctx context.Context, stream string) (context.Context, trace.Span) {
	if t == nil {
		return ctx, nospan.Span{}
	}
	return t.Start(ctx, Appending(stream), trace.SpanKindInternal)
}

// Serve gives each request a span, which continues the client's trace. route is the pattern of its path, "" where there
// is none.
func (t *Tracer) Serve(route func(*http.Request) string) func(http.Handler) http.Handler {
	if t == nil {
		return func(next http.Handler) http.Handler { return next }
	}
	named := otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string {
		if pattern := route(r); pattern != "" {
			return r.Method + " " + pattern
		}
		return r.Method
	})
	spans := otelhttp.NewMiddleware("", otelhttp.WithTracerProvider(t.provider), otelhttp.WithPropagators(propagation.TraceContext{}),
		otelhttp.WithMeterProvider(noop.NewMeterProvider()), named)
	return func(next http.Handler) http.Handler {
		return spans(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if span := trace.SpanFromContext(r.Context()); span.IsRecording() {
				if pattern := route(r); pattern != "" {
					span.SetAttributes(semconv.HTTPRoute(pattern))
				}
			}
			next.ServeHTTP(w, r)
		}))
	}
}

// Transport gives each request that belongs to a trace a span of its own, by the tracer of the span that it is made in,
// and passes the trace on to the server. name names the span.
func Transport(base http.RoundTripper, name func(*http.Request) string) http.RoundTripper {
	return otelhttp.NewTransport(base, otelhttp.WithPropagators(propagation.TraceContext{}),
		otelhttp.WithMeterProvider(noop.NewMeterProvider()),
		otelhttp.WithFilter(func(r *http.Request) bool { return trace.SpanContextFromContext(r.Context()).IsValid() }),
		otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return name(r) }))
}

// Failed notes the error with which something ended.
func Failed(span trace.Span, err error) {
	if span.IsRecording() {
		span.SetStatus(codes.Error, err.Error())
	}
}

// Planned is a span that others can name as their parent before it is recorded. What happens in batches is traced like
// that: a record's span is recorded only when its batch is committed, and nothing needs to be undone when it is not.
type Planned struct {
	parent trace.SpanContext
	id     trace.SpanID
}

// Plan plans a span below one that is known by its traceparent; ok is false when there is none, or its trace is not
// kept. That costs a comparison of one byte.
func (t *Tracer) Plan(traceparent string) (p Planned, ok bool) {
	if t == nil || !kept(traceparent) {
		return Planned{}, false
	}
	parent, ok := parse(traceparent)
	return Planned{parent, randomID()}, ok
}

// Named is the plan with an id that follows from a name: who plans it again gives it the same id.
func (p Planned) Named(name string) Planned {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails
	p.id = trace.SpanID(h.Sum(nil))
	return p
}

// Child plans a span below p.
func (p Planned) Child() Planned { return Planned{p.context(), randomID()} }

// Traceparent names the planned span.
func (p Planned) Traceparent() string { return format(p.context()) }

func (p Planned) context() trace.SpanContext { return p.parent.WithSpanID(p.id) }

// Done is what is recorded of a planned span.
type Done struct {
	Name       string
	Kind       trace.SpanKind
	Start, End time.Time
	Attributes []attribute.KeyValue
	Failure    string // "": none
}

// Record makes a planned span that is over.
func (t *Tracer) Record(p Planned, d Done) {
	ctx := trace.ContextWithRemoteSpanContext(withID{context.Background(), p.id}, p.parent)
	_, span := t.tracer.Start(ctx, d.Name, trace.WithSpanKind(d.Kind), trace.WithTimestamp(d.Start), trace.WithAttributes(d.Attributes...))
	if d.Failure != "" {
		span.SetStatus(codes.Error, d.Failure)
	}
	span.End(trace.WithTimestamp(d.End))
}

// planned gives planned spans their ids, and others any.
type planned struct{}

// withID is a context with the id of a planned span.
type withID struct {
	context.Context //nolint:containedctx // it is one
	id              trace.SpanID
}

type idKey struct{}

// Value implements [context.Context].
func (c withID) Value(key any) any {
	if key == (idKey{}) {
		return c.id
	}
	return c.Context.Value(key)
}

// NewIDs implements the SDK's IDGenerator.
func (planned) NewIDs(context.Context) (trace.TraceID, trace.SpanID) {
	return randomTrace(), randomID()
}

// NewSpanID implements the SDK's IDGenerator.
func (planned) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if id, ok := ctx.Value(idKey{}).(trace.SpanID); ok {
		return id
	}
	return randomID()
}

func randomID() (id trace.SpanID) {
	for !id.IsValid() {
		fill(id[:])
	}
	return id
}

func randomTrace() (id trace.TraceID) {
	for !id.IsValid() {
		fill(id[:8])
		fill(id[8:])
	}
	return id
}

func fill(b []byte) {
	n := rand.Uint64() //nolint:gosec // a name, not a secret
	for i := range b {
		b[i] = byte(n >> (8 * i))
	}
}
