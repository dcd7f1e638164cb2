// Package loyalty gives customers points for what they paid and takes them back with a refund.
//
// Stream loyalty-<customer>. Invariant: for each order 0 ≤ points kept ≤ points earned.
//
//	(none) ──Earn──▶ earned ──Reverse(part)──▶ reduced ──Reverse(rest)──▶ gone
//
// One point for every real that was captured. After a refund the same share of the points is kept, rounded down.
package loyalty
