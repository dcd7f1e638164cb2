// Package oracle recomputes, from the event stores alone, what every table of the shop should hold, and names every
// difference: states of streams, stock, points, prices, verdicts, windows and minutes of analytics, and the payment
// provider's ledger. Clicks are in no store; they are counted from their topic for as long as it holds all of them.
//
// A pass reads the stores one after the other, so in a busy shop it sees causes without their effects and effects
// without their causes. What is only on its way is gone in a later pass: a difference counts when it is there in each
// of several. Orders that others have still to answer are not differences; they are counted as open.
package oracle
