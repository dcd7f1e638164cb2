package operator

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
)

// Start says where a new operator begins on a topic it has no checkpoint for.
type Start int

// Where a new operator starts.
const (
	Beginning Start = iota // all history
	Now                    // only what comes after it was first started
)

// Definition declares an operator: a named consumer that turns topics into effects.
type Definition struct {
	Name   string // "<service>.<verb or noun>", stable: checkpoints are kept under it
	Topics []events.Topic
	Start  Start
	// Types are the event types the handler wants, of whatever version, and [Tombstone] for the tombstones of
	// compacted topics; others move the checkpoint, and the time (see Clock). nil means all, tombstones included.
	Types []string
	// Clock has what Types leaves out tell a stateful handler how far time has come, by topic: it gets ticks with the clock
	// of such events ([events.Recorded.Clock]), where the topic has an owner. Else a partition in which nothing wanted
	// happens any more holds up the others. It is for handlers that go by the CloudEvents time.
	Clock map[string]bool
	// MaxBatch bounds a transaction; 0 means 500 records.
	MaxBatch int
	// Tables are those that the handler alone keeps, and all that it reads and writes: their content follows from the
	// events of the topics, so [Rebuild] can make it anew. nil: there are none such.
	Tables []string
	// Idle has the operator itself make the ticks of topics that have none, by topic: when a partition got no record for
	// so long, the handler is told that nothing is to come which is older than that. Only stateful handlers hear it.
	Idle map[string]time.Duration
	// Handler makes the handler of one running operator.
	Handler func(store *eventstore.Store) Handler
}

// Tombstone stands for a record of a compacted topic that has a key and no value: what was kept under the key is
// gone. It is handed on as a Record with this Type, the Key, no Event and empty Data.
const Tombstone = ""

// Record is an event with its place in Kafka.
type Record struct {
	events.Recorded
	Topic     string
	Partition int32
	Offset    int64 // negative for an event that a person filled in, see [FillGap]
}

// Handler turns a batch into effects inside the operator's transaction. The records of one partition are in
// order; a batch may mix partitions and topics. Apply may be called again for the same records after a
// rollback, and with fewer of them, so it keeps nothing outside tx. An error from [Reject], a panic and data that
// Postgres refuses (SQLSTATE class 22 or 23) are deterministic: the batch is halved down to the one event, which
// is parked. Any other error is retried.
type Handler interface {
	Apply(ctx context.Context, tx *eventstore.Tx, batch []Record) error
}

// Sized is a handler that saves state of its own with the checkpoint and tells how much.
type Sized interface {
	// CheckpointBytes is the size of what the last Apply saved.
	CheckpointBytes() int
}

// Claim is a partition that this process owns for now.
type Claim struct {
	Topic     string
	Partition int32
	Epoch     int64
}

// Querier reads outside a batch's transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Stateful is a handler with keyed state in memory (shared/stream). It receives ticks as records of type
// [events.TickType].
type Stateful interface {
	Handler
	// Restore loads the state of a partition after its epoch was raised and before its first batch.
	Restore(ctx context.Context, q Querier, c Claim) error
	// Release forgets the state of a partition that is not owned any more.
	Release(c Claim)
	// Settle ends the last Apply: true merges what it changed into memory, false discards it.
	Settle(committed bool)
}

// Closing is a handler with work that follows from what all partitions have committed, of whatever process: windows that
// close. The owner of partition 0 of the first topic does it for all, in transactions of their own that are fenced as a
// batch is. The loop calls it between two batches.
type Closing interface {
	Handler
	// Ripe says from memory alone, after each commit, whether a look is worth while; one is taken every second anyway.
	Ripe() bool
	// Look reads what there is to close, at most most results, and says how many it found. It must be right whenever
	// the fence holds, and may be called again at any time.
	Look(ctx context.Context, q Querier, most int) (int, error)
	// Close queues what the last Look found.
	Close(ctx context.Context, tx *eventstore.Tx) error
	// Closed ends the last Close: true when it is known to be committed.
	Closed(committed bool)
}
