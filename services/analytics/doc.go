// Package analytics counts what happens in the shop, by the time at which it happened.
//
//	payments ─────────▶ spend ─▶ windows of 5 minutes per account and currency ─▶ account_spend.closed
//	orders ───────────▶ top ───▶ ranking of products in a sliding hour, every 5 minutes
//	      └───────────▶ orders ▶ orders placed per minute ──────┬▶ conversion
//	eventos-usuario ──▶ clicks ▶ clicks per action and minute ──┘
//	POST /v1/clicks ──▶ collect ▶ eventos-usuario
//
// Spend and top are windows of event time: while a window is open its partial sums are shown as such; it closes when the
// watermarks have passed its end, its result is an event of the stream spend-<start>-<currency>-<account> or top-<start>,
// and a correction is the next version of that stream. An event that comes when its window has closed is kept as late and
// counts nowhere.
//
// Clicks and orders are plain projections by event time: one of any age counts in its own minute. eventos-usuario is
// written by programs that know nothing of the shop; what is no click is parked and stops nobody.
package analytics
