// Package payments takes the money for orders: it authorises when an order is placed, captures when it is
// confirmed, and gives back what there is when it is cancelled.
//
// Stream payment-<order>: one order has one payment.
//
//	                  Authorized             Capture              Captured
//	(none)─▶authorizing────────▶authorized────────▶capturing────────────▶captured ⇄ refund in flight
//	   │        │   │               │                  │                     │
//	   │        │   │Declined       │Cancel            │CaptureRefused       │all of it refunded
//	   │  Cancel│   ▼               │                  ▼                     ▼
//	   │        │ declined          │              capture_failed         refunded
//	   │        ▼                   ▼                  │Cancel
//	   │      voiding ◀─────────────┴──────────────────┘
//	   │        │Voided
//	   │Cancel, ▼
//	   └─────▶voided
//	    placed
//
// What holds, in any order of commands and answers:
//   - Captured money is either kept or refunded, and never is more refunded than was captured.
//   - What was captured is never voided, what was voided is never captured. Declined, voided and refunded are final.
//   - A cancelled payment ends voided, refunded or declined, once the provider has answered. A cancellation is
//     remembered whenever it comes: before the order itself, while the authorisation or the capture is in flight.
//   - A void goes by the idempotency key of the authorisation, so that it also prevents one that has not arrived.
//   - Refunds of one payment are made one after the other.
//   - The refund of a cancellation is asked for once. If the provider refuses it, the payment stays captured until a person
//     asks for another, which a cancelled payment takes like any other.
//
// The provider is asked by jobs only, each with an idempotency key made of the payment's id and the action.
// Whatever is published of one payment carries its card once that is known, so it stays on one partition, in order.
package payments
