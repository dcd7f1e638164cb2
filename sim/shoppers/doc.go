// Package shoppers simulates customers who order over the public API, and the shopkeeper who restocks.
//
// About one order in ten takes an unhappy path ([Path]): a refused card, a sold-out product, a double click, a
// provider that charges and times out, a cancellation, a refund. Each path comes once in every eleven unhappy
// orders, so a short run has all of them. What is chosen follows from the seed and the order's place in the run
// alone (plan.go, pure); cards and idempotency keys are fresh in every run.
//
// Some may be thieves ([Options].Thieves), who test cards, use stolen ones, or spend much on new ones ([Fraudulent],
// thieves.go, pure). Which orders are theirs is told to whoever wants to train a model ([Options].Labels).
//
// Shoppers outlive the shop: a request that gets no answer is repeated with the same key until it has one. They
// follow each order until it is settled, and check on the way that a repeated request gets the same answer.
package shoppers
