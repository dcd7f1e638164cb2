// Package orders takes checkouts and brings each order to its end.
//
// The Order is event sourced, and it is the process manager: nobody commands the other services, they react to what
// happened, and the order takes note of what they say.
//
//	                     ┌────────── held ◀── fraud: held ──┐
//	                     │ released                          │
//	(none) ──Place──▶ placed ──stock, payment and fraud in──▶ confirmed ──captured──▶ confirmed, paid
//	                     │                                   │
//	                     └── refused, declined, deadline, ───┴── capture failed, customer ──▶ cancelled
//	                         customer
//
// Stream order-<id>. Only order.cancelled triggers compensation, and whoever owns the thing does it. What arrives after
// a cancellation is noted without changing the outcome. Where the refund of a cancellation failed, an operator may ask for
// it again.
//
// The id follows from customer and Idempotency-Key, so a repeated checkout needs no table to be recognised. Prices come
// from the service's own replica of the catalogue, never from the client. A timer looks every second at an index of due
// times: the deadline of an order, or the end of its hold.
package orders
