// Package jobs does the side effects of a service outside its database: charging a card, sending a mail.
//
// A job is inserted by the transaction that writes the event calling for it ([New], decider.Decider.Jobs) and
// done by River, with the idempotency key in its arguments. What comes out of it is a command of the aggregate
// ([Spec]): the events that follow, the next jobs and the completion of this one are a single transaction.
//
//	                insert (with the event)
//	                        │
//	┌───────────────────▶ available ──────────▶ running ────▶ completed (with the outcome's events)
//	│ no answer: backoff,                         │
//	│ breaker open: a moment,                     │
//	│ process stopped or dead: at once            │
//	└─────────────────────────────────────────────┘
//
// # What holds
//
//   - A job never expires. Without an answer it is tried again, after 200 ms at first, after a minute at last.
//   - Only the running attempt counts. Completing a job and giving it back both demand that the row still says
//     running with the attempt's own time: an attempt that was taken over meanwhile changes nothing any more.
//     River's own bookkeeping asks for less, so it is kept out of it, see [settled].
//   - A process that dies loses its running jobs to the others within about two seconds: each holds a session
//     advisory lock on its client id, and each looks every 2 s for running jobs whose owner holds none. A
//     process that loses the lock stops its workers until it has one again, under another id.
//   - An outcome that the decider refuses is an error in the program. The job is kept, tried again, counted
//     (outcome "refused") and logged as an error.
//
// A slow job never delays an operator; jobs of one aggregate follow each other when each is called for by the
// outcome of the one before.
package jobs
