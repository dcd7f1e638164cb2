package eventstore

import (
	"bytes"
	"context"
	"encoding/json"

	"go.opentelemetry.io/otel/trace"

	"github.com/feira-shop/feira/shared/telemetry"
)

// JobTraceparent is the member of a job's arguments that says where in a trace the job was called for. It is there
// beside those of the job's own type, which need not know of it.
const JobTraceparent = "traceparent"

// Tracer makes the spans of the store's service; nil: none.
func (s *Store) Tracer() *telemetry.Tracer { return s.opts.Tracer }

// Describe says in the span of an append what is appended, and for which order (correlation id; "": none).
func (a *Append) Describe(span trace.Span, order string) {
	if span.IsRecording() {
		span.SetAttributes(telemetry.Appended(a.Stream, order, a.types())...)
	}
}

func (a *Append) types() []string {
	types := make([]string, len(a.Events))
	for i := range a.Events {
		types[i] = a.Events[i].Type
	}
	return types
}

// Appends are what the commit will write, or has written.
func (t *Tx) Appends() []Append { return t.appends }

// note says in the span of the caller when its request was sent, and with how many others.
func (f flush) note(ctx context.Context) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() && f.requests > 0 {
		span.AddEvent("flush", trace.WithTimestamp(f.began), trace.WithAttributes(telemetry.FlushKey.Int(f.requests)))
	}
}

// traceWithin begins the span of a transaction. end ends it, if the transaction has appended something.
func (s *Store) traceWithin(ctx context.Context) (_ context.Context, end func(*Tx)) {
	ctx, span := s.opts.Tracer.Append(ctx, "")
	return ctx, func(t *Tx) {
		if len(t.appends) == 0 || !span.IsRecording() {
			return
		}
		span.SetName(telemetry.Appending(t.appends[0].Stream))
		t.appends[0].Describe(span, "")
		span.End()
	}
}

// args are the arguments as they are stored.
func (j *Job) args() string {
	members, isObject := bytes.CutPrefix(j.Args, []byte("{"))
	value, err := json.Marshal(j.Traceparent)
	if j.Traceparent == "" || !isObject || err != nil {
		return string(j.Args)
	}
	separator := ","
	if bytes.HasPrefix(bytes.TrimSpace(members), []byte("}")) {
		separator = ""
	}
	return `{"` + JobTraceparent + `":` + string(value) + separator + string(members)
}
