// Package archive moves whole parts of a store's table of events into files, and back.
//
// # The file
//
// An archive is gzip of JSON lines, so that zcat and jq read it: first a [Header], then one line per event in the order
// of positions, last a [Trailer]. Data and meta are strings that hold the JSON as it was published, byte for byte.
// Beside FILE is FILE.sha256, for sha256sum -c.
//
// # What may be archived
//
// Parts are archived oldest first, so what is archived is always everything up to one position ([eventstore.Store.Archived]).
// A part is archived when it is wholly in the past, the relay has published all of it ([*NotPublishedError]) and no
// stream with events in it was written to for a while, 90 days unless told otherwise ([*OpenStreamsError]): such a stream
// has ended. Streams for which that is never so, as those of customers and products, keep their store whole, unless
// their histories may be cut.
//
// # In which order
//
// The file is written, synced, and read back beside the table, row by row. Then one transaction notes the part in
// archived_parts, and in archived_streams how far each stream is archived; from now on readers refuse by name
// ([*eventstore.ArchivedError]). Then the part is detached concurrently, beside readers and writers, and dropped: no
// row is deleted, so there is nothing to vacuum. What a crash left unfinished, the next run finishes.
//
// # What is different afterwards
//
// Current states stay in streams, so commands, operators and lists go on. Histories, folds of states of another shape,
// reading by position from before the end of the archive (feira verify, fill-gap, publishing the store anew) end with
// [*eventstore.ArchivedError] until the files are brought back, the latest first. Before a release that changes the
// shape of states, bring back what its rebuild must read.
//
// # Figures
//
// From a store of ten million small events in twelve parts, on two cores that others kept busy (TestFaultTenMillionEvents
// in full): an append cost 112 CPU-µs at the beginning and 132 in the end, an event through the relay 8 and 13. A part of a
// million events took 56 s to archive, verified, and 20 s to bring back; an event is 50 bytes in the file, and 370 in the
// database that come free. The slowest append beside it took 1.2 s. Afterwards the table had no dead rows.
package archive
