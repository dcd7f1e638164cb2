package telemetry

import (
	"context"
	"log/slog"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Order is the attribute of spans, and of log lines without its prefix, that names the order that they are about: the
// correlation id of its events.
const Order = attribute.Key("feira.order")

type storyKey struct{}

// story is a place in a context for the order that it is about.
type story struct{ order atomic.Pointer[string] }

// WithStory makes a place for the order that ctx will turn out to be about, so that whoever holds the returned context
// learns of it. See [About].
func WithStory(ctx context.Context) context.Context {
	return context.WithValue(ctx, storyKey{}, &story{})
}

// About notes which order ctx is about, for its log lines and its span: in the place that [WithStory] made, or else in
// the context that is returned. "" notes nothing.
func About(ctx context.Context, order string) context.Context {
	if order == "" {
		return ctx
	}
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(Order.String(order))
	}
	s, ok := ctx.Value(storyKey{}).(*story)
	if !ok {
		s = &story{}
		ctx = context.WithValue(ctx, storyKey{}, s)
	}
	s.order.Store(&order)
	return ctx
}

// OfEvent is ctx for log lines about an event: its trace and its order, not those of ctx.
func OfEvent(ctx context.Context, traceparent, correlation string) context.Context {
	if sc, ok := parse(traceparent); ok {
		ctx = trace.ContextWithRemoteSpanContext(ctx, sc)
	}
	return About(WithStory(ctx), correlation)
}

// Correlated is a handler whose lines carry trace_id and span_id of their context, and the order that it is about.
func Correlated(h slog.Handler) slog.Handler { return correlated{h} }

type correlated struct{ slog.Handler }

// Handle implements [slog.Handler].
func (c correlated) Handle(ctx context.Context, r slog.Record) error {
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		r.AddAttrs(slog.String("trace_id", sc.TraceID().String()), slog.String("span_id", sc.SpanID().String()))
	}
	if s, ok := ctx.Value(storyKey{}).(*story); ok {
		if order := s.order.Load(); order != nil {
			r.AddAttrs(slog.String("order", *order))
		}
	}
	return c.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (c correlated) WithAttrs(attrs []slog.Attr) slog.Handler {
	return correlated{c.Handler.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler].
func (c correlated) WithGroup(name string) slog.Handler { return correlated{c.Handler.WithGroup(name)} }
