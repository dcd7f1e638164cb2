package operator

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/telemetry"
)

// spans are those of an attempt's records whose traces are kept. They are planned before the handler runs, so that its
// events can name them, and recorded once the attempt is committed.
type spans struct {
	records []Record
	planned []plannedSpans
	applied time.Time // when the handler was done
}

// plannedSpans are those of one record: its processing, and below it the append of what follows from it.
type plannedSpans struct {
	record          int
	process, append telemetry.Planned
	stream          string // appended to; "": to none
	events          []string
}

// plan plans the spans of an attempt, and has the records name them as their place in the trace.
func (o *Operator) plan(records []Record) *spans {
	t := o.store.Tracer()
	if t == nil {
		return nil
	}
	s := &spans{records: records}
	for i := range records {
		if process, ok := t.Plan(records[i].Traceparent); ok {
			p := plannedSpans{record: i, process: process, append: process.Child()}
			records[i].Traceparent = p.append.Traceparent()
			s.planned = append(s.planned, p)
		}
	}
	if len(s.planned) == 0 {
		return nil
	}
	return s
}

// appending takes note of what the handler appends.
func (s *spans) appending(tx *eventstore.Tx) {
	if s == nil {
		return
	}
	s.applied = time.Now()
	by := make(map[string]*plannedSpans, len(s.planned))
	for i := range s.planned {
		p := &s.planned[i]
		by[s.records[p.record].Traceparent] = p
	}
	for _, a := range tx.Appends() {
		for i := range a.Events {
			if p := by[a.Events[i].Traceparent]; p != nil {
				p.stream = a.Stream
				p.events = append(p.events, a.Events[i].Type)
			}
		}
	}
}

// recordSpans records the spans of a committed batch, and of what was parked with it.
func (l *loop) recordSpans(b batch) {
	t, ended := l.op.store.Tracer(), time.Now()
	if t == nil {
		return
	}
	if s := l.spans; s != nil {
		for i := range s.planned {
			p := &s.planned[i]
			r := &s.records[p.record]
			l.processed(t, p.process, r, ended, "")
			if p.stream == "" {
				continue
			}
			done := telemetry.Done{Name: telemetry.Appending(p.stream), Kind: trace.SpanKindInternal, Start: s.applied, End: ended}
			done.Attributes = telemetry.Appended(p.stream, r.Correlation, p.events)
			t.Record(p.append, done)
		}
	}
	for _, part := range b {
		for _, s := range part.steps {
			if s.fate != parking {
				continue
			}
			if p, ok := t.Plan(s.rec.Traceparent); ok {
				problem, _, _ := strings.Cut(s.problem, "\n") // a panic has its stack behind it
				l.processed(t, p, &s.rec, ended, "parked, "+s.reason+": "+problem)
			}
		}
	}
	l.spans = nil
}

func (l *loop) processed(t *telemetry.Tracer, p telemetry.Planned, r *Record, ended time.Time, failure string) {
	m := telemetry.Message{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, ID: r.ID, Type: r.Type, Order: r.Correlation}
	attributes := append(m.Processed(l.op.def.Name, l.op.group(r.Topic)), telemetry.BatchKey.Int(l.hand.records))
	if l.hand.tries > 1 {
		attributes = append(attributes, telemetry.TriesKey.Int(l.hand.tries))
	}
	t.Record(p, telemetry.Done{
		Name: "process " + r.Topic, Kind: trace.SpanKindConsumer, Start: l.hand.since, End: ended, Attributes: attributes, Failure: failure,
	})
}

// hand is what the loop has in hand, as spans tell of it.
type hand struct {
	since   time.Time
	tries   int
	records int // of the last try
}

// take notes a try.
func (h *hand) take(records int) {
	h.tries++
	h.records = records
}

// about is ctx for log lines about a record.
func (it *item) about(ctx context.Context) context.Context {
	return telemetry.OfEvent(ctx, it.rec.Traceparent, it.rec.Correlation)
}

// about is ctx for log lines about a batch: about its record if it has only one.
func (b batch) about(ctx context.Context) context.Context {
	if b.size() != 1 {
		return ctx
	}
	for _, p := range b {
		for _, s := range p.steps {
			return s.about(ctx)
		}
	}
	return ctx
}
