package jobs

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"go.opentelemetry.io/otel/trace"

	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/telemetry"
)

// trace continues the trace of the event that called for a job with a span of the attempt, and says for log lines which
// order it is about. What found its breaker open was no attempt, and is not recorded.
func (w *worker[A, S]) trace(ctx context.Context, job *river.Job[A]) (_ context.Context, end func(outcome string, err error)) {
	ctx = telemetry.WithStory(telemetry.Continue(ctx, traceparentOf(job.JobRow)))
	ctx, span := w.runner.store.Tracer().Start(ctx, "job "+w.kind, trace.SpanKindConsumer)
	if span.IsRecording() {
		span.SetAttributes(telemetry.JobKey.Int64(job.ID), telemetry.AttemptKey.Int(job.Attempt))
	}
	if w.spec.Meta != nil {
		ctx = telemetry.About(ctx, w.spec.Meta(job.Args).Correlation)
	}
	return ctx, func(outcome string, err error) {
		if outcome == outcomeSnoozed || !span.IsRecording() {
			return
		}
		span.SetAttributes(telemetry.OutcomeKey.String(outcome))
		if err != nil {
			telemetry.Failed(span, err)
		}
		span.End()
	}
}

// traceparentOf is where in a trace a job was called for; "" is nowhere.
func traceparentOf(job *rivertype.JobRow) string {
	if !bytes.Contains(job.EncodedArgs, []byte(`"`+eventstore.JobTraceparent+`"`)) {
		return ""
	}
	var args struct {
		Traceparent string `json:"traceparent"`
	}
	if json.Unmarshal(job.EncodedArgs, &args) != nil {
		return "" // of another shape than ours: it has no place in a trace
	}
	return args.Traceparent
}
