// Package stream is event time on top of the operator loop: keyed state in memory, saved as deltas in the very
// transaction that moves the offsets.
//
// The terms are those of the Dataflow model (Akidau et al., VLDB 2015) and of Apache Flink. The watermark of a
// partition is the highest event time seen in it minus the allowed disorder. An event behind it is late; one whose time
// is too far after that of its recording is quarantined and moves nothing. State is kept per key and partition until
// the watermark has passed the time up to which the key says it is needed.
//
//	              batch
//	memory ──read──▶ overlay ──commit confirmed──▶ merged into memory
//	                   │  └────rolled back───────▶ discarded
//	                   └─ delta row + watermark, in the transaction with the checkpoint
//
// Nothing is read from the database per event; a partition's state is read once, when it is claimed. The rows are a log
// that is cleaned as a log-structured store is: when more than half of it is dead, each batch carries the living keys of
// the oldest rows forward. So a state may be needed for seconds or for months.
//
// A rule is shown a state as of the watermark: expired, it is none, and what [Rule].Trim drops is dropped. Timers fire
// after the record that moves the watermark over them, in the order of their times and keys. So what a rule says follows
// from the order of a partition alone, whatever the batches, rollbacks, kills and restores.
//
// # Windows
//
// A batch adds its events up by pane, of which windows are made, and by key, and writes one row per partition and pane.
// Nothing of it stays in memory. When all partitions have come past the end of a window, whichever process they belong
// to, the owner of partition 0 of the first topic adds its rows up and says what it holds, once.
//
//	events ──▶ partial values, by partition, pane and key     │ in the batch's transaction
//	                     │
//	lowest of all committed watermarks ≥ end + lateness
//	                     ▼
//	            result, revision 1 ──▶ event, read model      │ in the closing's, fenced by a checkpoint
//
// Whether an event is late is a question of its own partition's watermark alone, so the answer does not depend on how
// partitions interleave. What is late or quarantined is counted, and kept by its place in the table stream_late.
//
// # Made anew
//
// What is kept follows from the topic alone, so operator.Rebuild makes it anew beside the running operator, replaces what
// was saved, and compares what was said. It must have the disorder that the running operator has. The result of a closed
// window that differs gets its next revision.
//
// docs/event-time.md tells the whole of it, with pictures and how to choose bounds.
package stream
