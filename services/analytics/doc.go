// Package analytics counts what happens in the shop, by the time at which it happened.
//
//	eventos-usuario ──▶ clicks ─▶ clicks per action and minute ─┐
//	orders ───────────▶ orders ─▶ orders placed per minute ─────┴▶ conversion
//
// Both are plain projections by event time: a click or an order of any age counts in its own minute. eventos-usuario is
// written by programs that know nothing of the shop; what is no click is parked and stops nobody.
package analytics
