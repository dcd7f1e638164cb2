// Package service runs a service from its declaration: one [Definition], and the same start and stop for the demo,
// feira run, containers and tests.
//
// Start: store, seed, relay, jobs, operators, loops. Stop, in the reverse order and each with a limit: loops and
// operators finish or give up what they have in hand, jobs hand back their attempts, the relay gives up its lead, the
// store finishes what is in flight, the connections close. HTTP is drained by the caller before that.
package service
