// Package eventstore is the append-only store of one service, which is also its outbox.
//
// Position order is commit order: every transaction that inserts events takes one advisory lock, the store lock,
// just before and keeps it until its commit. A reader of "position > cursor" therefore misses nothing.
//
// [Store.Append] is the group commit: requests of concurrent callers share a transaction, one conflict does not hurt
// the others, a row that somebody else holds sends its request to a side lane, and an outcome that got lost with its
// connection is learned by writing the same events again. [Store.Begin] and [Store.Within] are transactions that also
// write rows of the service; operators and commands over several streams use them.
//
// # Parts
//
// The table of events is made of parts, ranges of [PartSize] positions. [Store.Run] sees to it that they reach at least
// one part's size ahead: it looks every 5 s, and whenever this process has written a quarter of a part. A part is made
// empty and then attached, which no writer or reader waits for. Should there be none for a position, nothing is
// written, the part is made at once and the append tried again; it is not taken for a fault of the events.
//
// Unique (stream, version) is an index of each part; across parts it follows from the locked row of streams and
// es_check. Old parts can be archived (package archive). Reading what is archived ends with [*ArchivedError].
//
// # The order of locks
//
// Everybody who appends locks in this order, or deadlocks with those who do:
//
//  1. streams, sorted; missing ones are inserted at version 0 first (es_load, es_streams)
//  2. the service's own rows and jobs, by key
//  3. checkpoints, by topic and partition
//  4. the store lock and the insert of events (es_events)
//  5. commit, and nothing between
//
// # The functions in the database
//
// All requests of a transaction are one value of the composite type es_appends, made by this package.
//
//   - es_streams(a es_appends, skip boolean) → (status smallint[], actual bigint[]): step 1, and the jobs of step 2
//   - es_require(a, status, actual): raises FE002 or FE003 unless all were accepted
//   - es_events(a, status): es_check, and step 4
//   - es_check(a, status): raises unique_violation unless the events of each accepted request are just the versions
//     between its expected and its new one
//   - es_lock_key() → bigint: of the store lock, for those who must know that no event is stamped and not committed
//   - es_append(a, skip): es_streams and es_events; says of each request what became of it (the group commit)
//   - es_commit(a): es_streams, es_require, es_events
//   - es_make_parts(size, reach): makes parts until they go at least size positions beyond reach (null: the last drawn)
//   - es_parts(), es_archived(), es_changed_at(stream, version): what there is
//
// A function for [Tx.Commit] that does more takes its own parameters first and the appends last:
//
//	create function op_commit(operator text, …, a es_appends) returns void language plpgsql as $$
//	declare s record;
//	begin
//	  s := es_streams(a, false);
//	  perform es_require(a, s.status, s.actual);
//	  -- checkpoints; raise FE001 when fenced
//	  perform es_events(a, s.status);
//	end $$;
package eventstore
