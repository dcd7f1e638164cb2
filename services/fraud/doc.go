// Package fraud says of every authorised payment whether the order may go on.
//
// It keeps, in memory and per partition, the purchases of each card, amount and currency, and decides in
// microseconds. The state is saved as deltas in the transaction that moves the offsets, so a restart, a rebalance or
// a replay gives the same verdicts.
//
//	payment.authorized ──▶ older than purchases are kept? ──────────yes──▶ purchase.held (fraud)
//	                                │no
//	                                ├── less than 5 s from another one ───▶ purchase.held (duplicate_purchase)
//	                                └─────────────────────────────────────▶ purchase.cleared
//	payment.voided ──────▶ the purchase is forgotten
//
// Order by offset decides which of two is the duplicate, and event time (purchased_at, when the order was placed) how
// far apart they are. A payment whose card the provider did not name is compared with nothing and cleared. Every
// authorised payment gets exactly one verdict, in the stream verdict-<payment>.
package fraud
