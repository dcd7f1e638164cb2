// Package fraud says of every authorised payment whether the order may go on.
//
// It keeps, in memory and per partition, a profile of each card, and decides in microseconds by rules and by a trained
// model. The state is saved as deltas in the transaction that moves the offsets, so a restart, a rebalance or a replay
// gives the same verdicts.
//
//	payment.authorized ──▶ older than purchases are kept? ──────────yes──▶ purchase.held (fraud)
//	        │                       │no
//	        ▼                       ▼
//	     profile ──▶ measures ──▶ rules, each with a weight ──hold_at or more, or hard──▶ purchase.held (fraud)
//	  (as it was)       │           ▲       └──a double click and nothing else──▶ purchase.held (duplicate_purchase)
//	                    └─▶ model ──┘       └─────────────────────────────────▶ purchase.cleared
//	payment.voided ──────▶ the purchase is forgotten, but for the card's habits
//
// Order by offset decides which of two is the duplicate, and event time (purchased_at, when the order was placed) how
// far apart they are. A payment whose card the provider did not name is compared with nothing and cleared. Every
// authorised payment gets exactly one verdict, in the stream verdict-<payment>.
//
// profile.go, buckets.go, amounts.go, measures.go, rules.go and judge.go are pure; thresholds.go and model.go read what
// is judged with; policies.go follows their files. train/ holds the trainer.
package fraud
