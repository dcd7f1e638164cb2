// Package relay copies the event store of one service to its Kafka topic: every event, in the order of its
// positions, at least once, the first occurrences of each partition always in that order.
//
// # Who leads
//
// One process leads per store. It holds an advisory lock in a session of its own, and on that same session it reads
// events and moves the cursor, so a leader that has lost the lock can do neither. The server ends a session that is
// silent for 3 s, so a frozen leader loses the lock; one that was frozen while the server sends it events is ended
// by those that wait for the lock. Each new leader raises the term in the cursor row, and a write with an older
// term is refused.
//
// # What is published
//
// Each record has the event's position as ce_sequence and, as ce_previous, the position of the event before it in
// its partition (0 for the first; none on compacted topics), by which consumers notice a hole. After a crash some
// records come again; consumers drop what they have applied. An event without a key goes to the partition of its
// position. Events of other topics, and those a service keeps to itself, are passed over. Where traces are on, a
// record's traceparent names its sending, below the append that the event names; it is the same when it is sent again.
//
// A topic with Ticks gets a tick in each partition that has been silent for 5 s, and then every 30 s: nothing up to
// ce_time is unsent. That time is the store's clock, read while nobody was appending and before the read that found
// nothing more; under a backlog it is the time at which the last event sent was recorded.
//
// # What is checked
//
// At the start of each leadership every record after the cursor must be in the store, under its id at its position.
// After a crash that is the last batch; after a restore or a failover that lost commits, it is what consumers know
// and the store does not.
//
// # Runbook
//
// [*StoreRestoredError]: the store was restored to a state before events that were published and applied by other
// services. Nothing was published since. In this order of preference:
//
//  1. Restore a later backup, or promote the replica that has the events, and start the service again.
//  2. If there is none: the lost events stay facts for everybody else. Stop the service and copy them from the log back
//     into the store, where it has published all it knew: [Recover]. Start it again: it compares once more.
//
// Never delete the relay's rows to get past it: new events would take the lost positions, and consumers would drop
// them as duplicates.
//
// [*LogLostError]: the topic was made anew, or its brokers lost acknowledged records. Operators stop as well, with
// TopicReplacedError or HistoryLostError. Bring the log back from a mirror; else stop the service, publish its store
// anew ([PublishAnew]), start it, then let the operators read the topic from its beginning; what they have applied they
// drop.
//
// [*PartitionCountError]: somebody added partitions. Kafka cannot take them back. Delete the topic, make it with the
// former number ("feira migrate"), and go on as for [*LogLostError].
package relay
