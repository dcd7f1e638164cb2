// Package provider is a small payment provider to try the shop against: a server of its own, with its own
// durable store, spoken to over HTTP as a real provider is.
//
//	            ┌── declined
//	(request) ──┤
//	            └── authorized ──capture──▶ captured ──refund──▶ captured, refunded ≤ captured
//	                     └──────void──────▶ voided
//
// What it does with a card is written in the token ([behaviour]): tok_visa_ana1 is approved, tok_declined_ana1
// refused, tok_timeout_after_charge_ana1 charged and answered too late.
//
// Every answer is stored under the request's Idempotency-Key in the transaction that changes the ledger, so a
// request may be repeated at any moment, also after the server was killed: it takes effect once and has one
// answer. The rules (behaviour.go, ledger.go, rules.go) are pure; store.go and server.go carry them out.
package provider
