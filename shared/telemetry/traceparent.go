package telemetry

import (
	"context"
	"encoding/hex"

	"go.opentelemetry.io/otel/trace"
)

// A traceparent is the place in a trace, as W3C writes it: 00-<trace, 32 hex>-<span, 16 hex>-<flags, 2 hex>. Events
// carry it in the store and on Kafka, and jobs in their arguments.
const (
	traceparentLength = 55
	traceAt, spanAt   = 3, 36
	flagsAt           = 53
)

// Traceparent names the span of ctx; "" if there is none.
func Traceparent(ctx context.Context) string {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() {
		return ""
	}
	return format(sc)
}

// Continue gives ctx the place in a trace that a traceparent names, unless it has one. One that is not understood
// changes nothing.
func Continue(ctx context.Context, traceparent string) context.Context {
	if len(traceparent) != traceparentLength || trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	sc, ok := parse(traceparent)
	if !ok {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, sc)
}

// kept looks at the flag that says so, and at nothing else.
func kept(traceparent string) bool {
	if len(traceparent) != traceparentLength {
		return false
	}
	switch traceparent[flagsAt+1] {
	case '1', '3', '5', '7', '9', 'b', 'd', 'f':
		return true
	}
	return false
}

func parse(traceparent string) (trace.SpanContext, bool) {
	t := traceparent
	if len(t) != traceparentLength || t[:traceAt] != "00-" || t[spanAt-1] != '-' || t[flagsAt-1] != '-' {
		return trace.SpanContext{}, false
	}
	traceID, err := trace.TraceIDFromHex(t[traceAt : spanAt-1])
	if err != nil {
		return trace.SpanContext{}, false
	}
	spanID, err := trace.SpanIDFromHex(t[spanAt : flagsAt-1])
	if err != nil {
		return trace.SpanContext{}, false
	}
	var flags [1]byte
	if _, err := hex.Decode(flags[:], []byte(t[flagsAt:])); err != nil {
		return trace.SpanContext{}, false
	}
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: traceID, SpanID: spanID, TraceFlags: trace.TraceFlags(flags[0]) & trace.FlagsSampled, Remote: true,
	}), true
}

func format(sc trace.SpanContext) string {
	var b [traceparentLength]byte
	copy(b[:], "00-")
	traceID, spanID := sc.TraceID(), sc.SpanID()
	hex.Encode(b[traceAt:], traceID[:])
	b[spanAt-1] = '-'
	hex.Encode(b[spanAt:], spanID[:])
	b[flagsAt-1] = '-'
	b[flagsAt], b[flagsAt+1] = '0', '0'
	if sc.IsSampled() {
		b[flagsAt+1] = '1'
	}
	return string(b[:])
}
