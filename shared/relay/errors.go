package relay

import (
	"errors"
	"fmt"

	"github.com/feira-shop/feira/shared/eventstore"
)

// PartitionCountError says that the topic has another number of partitions than when the relay first saw it. Keys
// would move to other partitions and lose their order.
type PartitionCountError struct {
	Topic      string
	Have, Want int32
}

func (e *PartitionCountError) Error() string {
	return fmt.Sprintf("relay: topic %s has %d partitions, it was published with %d; keys would move to other partitions and lose "+
		"their order. Nothing more is published. Make a topic with %d partitions and publish the store to it anew: docs/runbook.md",
		e.Topic, e.Have, e.Want, e.Want)
}

// StoreRestoredError says that the log has an event that the store does not have: the database was restored to a
// state before it. Consumers have applied that event, and would drop the one that takes its position as a duplicate.
type StoreRestoredError struct {
	Topic     string
	Partition int32
	Offset    int64
	Position  int64  // of the event, by the log
	ID        string // of the event
	Was, Is   string // the database as the relay last knew it, and as it is
}

func (e *StoreRestoredError) Error() string {
	return fmt.Sprintf("relay: the log has event %s of position %d (%s/%d, offset %d), the store does not: it was restored to a state "+
		"before that event was published. Nothing more is published. Restore a later backup, or copy the events back from the log: docs/runbook.md "+
		"(database was: %s; is: %s)", e.ID, e.Position, e.Topic, e.Partition, e.Offset, e.Was, e.Is)
}

// LogLostError says that a partition ends before records that were acknowledged: the topic was deleted and made
// again, or its broker lost data. Consumers would miss what is gone.
type LogLostError struct {
	Topic     string
	Partition int32
	End, Want int64 // offsets: where the partition ends, and where it ended at least
}

func (e *LogLostError) Error() string {
	return fmt.Sprintf("relay: partition %s/%d ends at offset %d, but records up to offset %d were acknowledged; they are lost. "+
		"Nothing more is published. Bring the log back, or publish the store anew: docs/runbook.md", e.Topic, e.Partition, e.End, e.Want)
}

// errFenced ends a leadership: another leader has moved the cursor.
var errFenced = errors.New("relay: another leader has taken over")

// stops tells whether an error needs a person.
func stops(err error) bool {
	var count *PartitionCountError
	var restored *StoreRestoredError
	var lost *LogLostError
	var archived *eventstore.ArchivedError
	return errors.As(err, &count) || errors.As(err, &restored) || errors.As(err, &lost) || errors.As(err, &archived)
}
