// Package events is the contract of the shop: what the services tell each other, and how it looks on Kafka.
//
// Every event is a struct in the past tense with a CloudEvents type and a record key. A service that wants to
// know what another does reads this package and nothing else. The same facts for readers of other languages:
// asyncapi.yaml, schemas/ (JSON Schemas) and golden/ (examples). All three are checked against the Go types by
// the tests of this package; `go test ./shared/events -update` writes them.
//
// # On Kafka
//
// Records are CloudEvents 1.0 in binary mode: every attribute is a header with the prefix ce_, the value is the
// JSON of the data and nothing else, content-type is application/json. See [Headers] and [FromHeaders].
//
//	ce_specversion    1.0
//	ce_id             UUIDv7 of the event; the same in the store, in every copy and after a replay
//	ce_source         /feira/<service>, the owner of the topic
//	ce_type           shop.feira.<entity>.<past tense>.v<version>
//	ce_time           when it happened, RFC 3339 in UTC, always with Z
//	ce_subject        the stream it belongs to
//	ce_sequence       its position in the owner's store, a decimal integer; positions of a partition ascend
//	ce_previous       the position of the event before it in the same partition; 0 for the first
//	ce_recordedtime   when the store wrote it
//	ce_correlationid  the first request of the whole story
//	ce_causationid    the event or command it answers
//	ce_actor          who caused it; may be missing
//	traceparent       W3C trace context: where traces are on, of the sending of the record; may be missing
//
// Sources: the Kafka protocol binding of CloudEvents
// (https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/kafka-protocol-binding.md), and of its
// extensions the names sequence, recordedtime, correlationid and causationid
// (https://github.com/cloudevents/spec/tree/main/cloudevents/extensions). Two things differ on purpose: traceparent
// carries no prefix, because that is where OpenTelemetry looks for it, and ce_sequence is not padded, because it
// is compared as a number. ce_previous is our own.
//
// On eventos-usuario anyone may write, and a record without any of these headers is read by its value alone, see
// [UserActed] and [FromPlain].
//
// # Versions
//
// A type, once released, never changes. What changes gets a new type with the next version, and the old
// struct stays and implements [Upcaster]. Readers then only ever see the newest version; see [Registry.Decode].
package events
