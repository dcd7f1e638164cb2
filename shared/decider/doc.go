// Package decider runs pure decisions: as an operator that hears events, and for commands from outside.
//
// A [Decider] is two pure functions. Decide answers a command with the events that follow from it in the
// present state, or with an error. Evolve says how an event changes the state. They know nothing of Kafka, SQL,
// HTTP or clocks, and are tested as sentences with package decidertest.
//
//	event ──route──▶ (stream, command) ─┐
//	                                    ├─▶ load state ─▶ Decide ─▶ events ─▶ Evolve ─▶ append events + state + jobs
//	HTTP, job, timer ───────────────────┘
//
// [Operator] does that for a batch of events in one transaction: all streams are loaded at once, and several
// commands of one stream are chained in memory into one append. [Handle] does it for one command, through the
// store's group commit, and decides again when another writer was faster.
//
// # Rules for deciders
//
// A command that was already carried out yields no events: facts are repeated by replays and by other services.
// Evolve returns a new state and leaves the old one as it is, maps and slices included. The state is kept as
// JSON, so what matters in it is exported. decidertest.Laws checks all three.
package decider
