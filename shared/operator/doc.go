// Package operator turns Kafka topics into effects in Postgres, each exactly once.
//
// An operator takes what has arrived from all partitions it owns (at most a batch), opens one transaction,
// applies the batch and commits: streams, the service's own rows, jobs, new events and the checkpoint that says
// how far it came are written together or not at all. There is no timer and no linger: batches form under load.
//
//	Kafka ─▶ session ─▶ queue of each claim ─▶ take ─▶ Handler.Apply ─▶ op_commit ─▶ mark the offset
//	          (epoch raised,                   (chain, duplicates,      (fenced by
//	           offset from Postgres)            parked keys)             epoch and offset)
//
// # What stops, what waits, what is parked
//
// An operator that cannot go on without guessing stops by name ([*HistoryLostError], [*TopicReplacedError],
// [*MissingEventsError]): it leaves its group, its Health fails, the table operator_stops says why, other
// operators go on. [Holes] says what is missing; [FillGap] fills it from the owner's store, [AcceptGap] goes on without;
// the operator then resumes without a restart.
//
// A record that cannot be applied is parked with its error, and later records of its key are parked behind it
// in order; records without a key, and those of topics that anyone may write, block nobody. [Replay] and [Discard]
// end that, [Try] says what a replay would come to: the owner of the partition does it, and its checkpoint does not
// move. What may work at another time (a lost connection, a lock, a stream that another writer changed) is retried
// for as long as it takes.
//
// # What follows from all partitions
//
// A handler that closes windows ([Closing]) has work that follows from what every partition has committed. The owner of
// partition 0 of the first topic does it, between two batches, in transactions that its checkpoint fences and that do not
// move it. Where nobody ticks idle partitions, the operator does ([Definition].Idle); where a partition has other events
// only, their time tells as much ([Definition].Clock).
//
// # Made anew
//
// What an operator keeps in tables of its own ([Definition].Tables), or in memory ([Recomputed]), follows from its topics
// alone. [Rebuild] makes it anew beside the running operator, compares, and switches over in one transaction.
//
// # Records without a chain
//
// Records of an owned topic carry their position in the owner's store and that of the one before. A record
// at or below the position that was applied is a duplicate and dropped; one whose predecessor was not applied
// shows a hole. Two kinds of topic know neither:
//
//   - Compacted topics. Compaction may take the first occurrence of an event and leave a duplicate behind a
//     later event, so a low position proves nothing, and none is dropped by it. A duplicate is applied again,
//     always followed by the newest event of its key; a handler that minds going back for a moment compares
//     Sequence. A record without a value, a tombstone, reaches handlers whose Types name [Tombstone].
//   - Topics that anyone may write. Sequences of strangers mean nothing and are ignored.
//
// Offsets are checkpointed on both, so a record takes effect once in any case.
package operator
