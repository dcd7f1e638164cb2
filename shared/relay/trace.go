package relay

import (
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/telemetry"
)

// sending is the span of one event whose trace is kept.
type sending struct {
	telemetry.Planned
	record         int // in the batch
	id, typ, order string
}

// trace plans the span of an event that is about to be sent, and puts it into the event's traceparent, so that those who
// process the record come below it. Its id follows from that of the event: a record that is sent again is the same.
func (b *batch) trace(t *telemetry.Tracer, e *events.Recorded) {
	plan, ok := t.Plan(e.Traceparent)
	if !ok {
		return
	}
	plan = plan.Named(e.ID)
	e.Traceparent = plan.Traceparent()
	b.spans = append(b.spans, sending{plan, len(b.records), e.ID, e.Type, e.Correlation})
}

// sent records the spans of what was acknowledged.
func (b *batch) sent(t *telemetry.Tracer, topic string, acked int, offsets []int64, began time.Time) {
	ended := time.Now()
	for i := range b.spans {
		s := &b.spans[i]
		if s.record >= acked {
			return
		}
		m := telemetry.Message{
			Topic: topic, Partition: b.records[s.record].Partition, Offset: offsets[s.record], ID: s.id, Type: s.typ, Order: s.order,
		}
		t.Record(s.Planned, telemetry.Done{
			Name: "send " + topic, Kind: trace.SpanKindProducer, Start: began, End: ended, Attributes: m.Sent(),
		})
	}
}
