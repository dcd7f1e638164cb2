package events

import "time"

// Forever is the retention of topics that are the history of the shop.
const Forever = time.Duration(-1)

// Topic describes a Kafka topic as it must exist: who writes it and how it is kept.
type Topic struct {
	Name       string
	Owner      string // the only service that may write it; "" for a topic anyone may write
	Partitions int32
	Compacted  bool
	Retention  time.Duration // [Forever], or how long records are kept
	// LogAppendTime makes the broker stamp records; for topics whose producers' clocks are unknown.
	LogAppendTime bool
	// Ticks asks the relay for a tick per idle partition, which moves the watermark of stream operators.
	Ticks bool
	// Plain is the type that a record without CloudEvents headers holds, where programs write that know nothing of
	// CloudEvents; "": such a record is no event.
	Plain string
}

// Source is the CloudEvents source of the topic's owner.
func (t Topic) Source() string { return SourceOf(t.Owner) }

// SourceOf is the CloudEvents source of a service, for example "/feira/orders".
func SourceOf(service string) string { return "/feira/" + service }

// The topics of the shop. Names and keys are documented in asyncapi.yaml.
var (
	Orders    = Topic{Name: "orders", Owner: "orders", Partitions: 6, Retention: Forever, Ticks: true}
	Payments  = Topic{Name: "payments", Owner: "payments", Partitions: 6, Retention: Forever, Ticks: true}
	Inventory = Topic{Name: "inventory", Owner: "inventory", Partitions: 6, Retention: Forever}
	Fraud     = Topic{Name: "fraud", Owner: "fraud", Partitions: 6, Retention: Forever}
	Loyalty   = Topic{Name: "loyalty", Owner: "loyalty", Partitions: 6, Retention: Forever}
	Analytics = Topic{Name: "analytics", Owner: "analytics", Partitions: 6, Retention: Forever}
	Catalog   = Topic{Name: "catalog", Owner: "catalog", Partitions: 6, Retention: Forever, Compacted: true}
	Clicks    = Topic{Name: "eventos-usuario", Partitions: 3, Retention: 7 * 24 * time.Hour, LogAppendTime: true, Plain: UserActed{}.EventType()}
)

// Topics lists every topic of the shop.
func Topics() []Topic {
	return []Topic{Orders, Payments, Inventory, Fraud, Loyalty, Analytics, Catalog, Clicks}
}
