// Package inventory knows what is on the shelves and sets it aside for orders: all lines of an order or none.
//
// Stream reservation-<order>:
//
//	(none) ──Reserve, all there──▶ reserved ──Release──▶ released
//	   │ ├────Reserve, one short─▶ refused
//	   └──────Release────────────▶ closed: cancelled first, so a Reserve that comes later is answered with nothing
//
// Stream receipt-<id>: one delivery, counted once.
//
// The table stock has one row per product. An operator locks the rows of a whole batch at once and decides in
// memory, so a product that everybody wants costs no more than many that are wanted once. Invariant, also a
// constraint of the table: 0 ≤ reserved ≤ on hand.
package inventory
