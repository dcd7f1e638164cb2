package telemetry

import (
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// What spans say beside the attributes that OpenTelemetry has names for. Each is explained in docs/telemetry.md.
const (
	StreamKey   = attribute.Key("feira.stream")
	EventsKey   = attribute.Key("feira.events") // types of the appended events
	FlushKey    = attribute.Key("feira.flush")  // requests that shared the transaction
	OperatorKey = attribute.Key("feira.operator")
	BatchKey    = attribute.Key("feira.batch") // records that shared the transaction
	TriesKey    = attribute.Key("feira.tries")
	JobKey      = attribute.Key("feira.job")
	AttemptKey  = attribute.Key("feira.attempt")
	OutcomeKey  = attribute.Key("feira.outcome")
)

// Message is a record on Kafka, as spans tell of it by the conventions for messaging.
type Message struct {
	Topic     string
	Partition int32
	Offset    int64  // below 0: not known
	ID, Type  string // of the event
	Order     string // its correlation id
}

// Sent describes the sending of the record.
func (m Message) Sent() []attribute.KeyValue {
	return m.describe(append(make([]attribute.KeyValue, 0, 9),
		semconv.MessagingOperationName("send"), semconv.MessagingOperationTypeSend))
}

// Processed describes the processing by an operator, as a member of a consumer group.
func (m Message) Processed(operator, group string) []attribute.KeyValue {
	return m.describe(append(make([]attribute.KeyValue, 0, 14),
		semconv.MessagingOperationName("process"), semconv.MessagingOperationTypeProcess,
		semconv.MessagingConsumerGroupName(group), OperatorKey.String(operator)))
}

func (m Message) describe(to []attribute.KeyValue) []attribute.KeyValue {
	to = append(to, semconv.MessagingSystemKafka, semconv.MessagingDestinationName(m.Topic),
		semconv.MessagingDestinationPartitionID(strconv.Itoa(int(m.Partition))),
		semconv.MessagingMessageID(m.ID), semconv.CloudEventsEventType(m.Type))
	if m.Offset >= 0 {
		to = append(to, semconv.MessagingKafkaOffset(int(m.Offset)))
	}
	if m.Order != "" {
		to = append(to, Order.String(m.Order))
	}
	return to
}

// Appended describes an append of events to a stream, for an order (correlation id; "": none).
func Appended(stream, order string, types []string) []attribute.KeyValue {
	all := []attribute.KeyValue{StreamKey.String(stream), EventsKey.StringSlice(types)}
	if order != "" {
		all = append(all, Order.String(order))
	}
	return all
}

// Appending names the span of an append by the kind of the stream: the part of its name before the id.
func Appending(stream string) string {
	kind, _, _ := strings.Cut(stream, "-")
	return "append " + kind
}
