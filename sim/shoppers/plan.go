package shoppers

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/internal/seed"
)

// Path is what is special about an order.
type Path string

// The ways of an order. All but Happy are unhappy ones.
const (
	Happy               Path = "happy"
	Declined            Path = "declined"
	InsufficientFunds   Path = "insufficient_funds"
	SoldOut             Path = "sold_out"
	DoubleClickReleased Path = "double_click_released" // the customer says that it was no accident
	DoubleClickLeft     Path = "double_click_left"     // nobody does
	TimeoutAfterCharge  Path = "timeout_after_charge"
	ProcessingError     Path = "processing_error"
	CaptureFails        Path = "capture_fails"
	CancelledAtOnce     Path = "cancelled_at_once"
	CancelledOncePaid   Path = "cancelled_once_paid"
	PartiallyRefunded   Path = "partially_refunded"
	unhappyOneIn             = 10
	repeatPercent            = 8
	waitPercent              = 10
	secondsOfPreferWait      = 5
)

// Unhappy are all unhappy paths.
var Unhappy = []Path{
	Declined, InsufficientFunds, SoldOut, DoubleClickReleased, DoubleClickLeft, TimeoutAfterCharge,
	ProcessingError, CaptureFails, CancelledAtOnce, CancelledOncePaid, PartiallyRefunded,
}

// behaviours are the provider's tokens that make a path happen; else the card is a good one.
var behaviours = map[Path]string{
	Declined: "tok_declined", InsufficientFunds: "tok_insufficient_funds", TimeoutAfterCharge: "tok_timeout_after_charge",
	ProcessingError: "tok_processing_error", CaptureFails: "tok_capture_fails",
}

// repeat is how a checkout is sent again with the same key.
type repeat int

const (
	once     repeat = iota
	again           // after the answer, as if it had been lost
	together        // at the same moment, as an impatient client does
)

// plan is all that is decided about one checkout before it is sent.
type plan struct {
	path     Path
	customer string
	lines    []api.CheckoutLine
	token    string               // without the suffix that makes the card a fresh one
	card     string               // the suffix, when the card is used more than once in a run
	series   [][]api.CheckoutLine // what a thief orders, one checkout after the other; nil: no thief
	repeat   repeat
	wait     bool          // with Prefer: wait
	gap      time.Duration // of a double click
	think    time.Duration // before the customer releases, cancels or wants money back
}

// planFor decides about checkout n of a run. It depends on its arguments alone.
func planFor(seedOfRun uint64, n int64, customers int, products []seed.Product) plan {
	random := rand.New(rand.NewPCG(seedOfRun, uint64(n))) //nolint:gosec // a simulation must be repeatable, not secret
	path, round := pathFor(seedOfRun, n)
	p := plan{
		path:     path,
		customer: fmt.Sprintf("shopper-%04d", random.IntN(customers)),
		token:    "tok_visa",
		lines:    basket(random, products),
		gap:      200*time.Millisecond + time.Duration(random.IntN(1300))*time.Millisecond,
		think:    200*time.Millisecond + time.Duration(random.IntN(1800))*time.Millisecond,
	}
	if random.IntN(4) == 0 {
		p.token = "tok_mastercard"
	}
	if token, special := behaviours[path]; special {
		p.token = token
	}
	if path == SoldOut {
		p.lines = tooMuch(random, round, products, p.lines)
	}
	switch dice := random.IntN(100); {
	case path == Happy && dice < repeatPercent/2:
		p.repeat = again
	case path == Happy && dice < repeatPercent:
		p.repeat = together
	case dice < repeatPercent+waitPercent:
		p.wait = true
	}
	return p
}

// brand is what a good card that comes back is each time.
func brand(card int64) string {
	if card%4 == 0 {
		return "tok_mastercard"
	}
	return "tok_visa"
}

// pathFor makes one order in each ten an unhappy one, at a random place, and goes through all unhappy paths in
// random order before any comes again. round counts how often all have been.
func pathFor(seedOfRun uint64, n int64) (path Path, round int64) {
	block := n / unhappyOneIn
	place := rand.New(rand.NewPCG(seedOfRun, ^uint64(block))) //nolint:gosec // see planFor
	if n%unhappyOneIn != place.Int64N(unhappyOneIn) {
		return Happy, 0
	}
	round = block / int64(len(Unhappy))
	order := rand.New(rand.NewPCG(^seedOfRun, uint64(round))).Perm(len(Unhappy)) //nolint:gosec // see planFor
	return Unhappy[order[block%int64(len(Unhappy))]], round
}

// basket is one to three products that are restocked, one to three pieces of each.
func basket(random *rand.Rand, products []seed.Product) []api.CheckoutLine {
	var lines []api.CheckoutLine
	wanted := 1 + random.IntN(3)
	for _, i := range random.Perm(len(products)) {
		if len(lines) == wanted {
			break
		}
		if !products[i].Scarce {
			lines = append(lines, api.CheckoutLine{Sku: products[i].SKU, Quantity: 1 + random.Int64N(3)})
		}
	}
	return lines
}

// tooMuch wants a scarce product: in one round more than ever was there, in the next a single piece, which is
// sold until none is left. Without scarce products it wants
// as much of another as a line may have.
func tooMuch(random *rand.Rand, round int64, products []seed.Product, otherwise []api.CheckoutLine) []api.CheckoutLine {
	for _, i := range random.Perm(len(products)) {
		p := products[i]
		switch {
		case p.Scarce && round%2 == 0:
			return []api.CheckoutLine{{Sku: p.SKU, Quantity: min(p.Stock+1, maxQuantity)}}
		case p.Scarce:
			return []api.CheckoutLine{{Sku: p.SKU, Quantity: 1}}
		}
	}
	otherwise[0].Quantity = maxQuantity
	return otherwise
}

// maxQuantity is how many pieces one line may have.
const maxQuantity = 10_000
