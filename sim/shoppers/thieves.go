package shoppers

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/internal/seed"
)

// The ways of fraud.
const (
	CardTesting Path = "card_testing" // many small payments, fast: does the card still work?
	StolenCard  Path = "stolen_card"  // suddenly high amounts on a card that somebody else uses
	NewCard     Path = "new_card"     // high amounts on a card that was never seen
)

// Fraudulent are all ways of fraud.
var Fraudulent = []Path{CardTesting, StolenCard, NewCard}

// Payments of one thief, at least and at most. Cards are tested with many, so fewer thieves do it.
var (
	takes  = map[Path][2]int{CardTesting: {8, 20}, StolenCard: {1, 4}, NewCard: {1, 2}}
	chosen = []Path{CardTesting, StolenCard, StolenCard, StolenCard, NewCard, NewCard, NewCard}
)

// perThief is what one thief orders on average.
func perThief() float64 {
	sum := 0.0
	for _, way := range chosen {
		sum += float64(takes[way][0]+takes[way][1]) / 2
	}
	return sum / float64(len(chosen))
}

const (
	cheap = 1_500 // minor units: what a card is tested with costs no more
	// Of shoppers who are no thieves, while there are some.
	ownCardPercent = 85 // pay with a card that they have used before
	feastPercent   = 1  // order for a feast, so that a high amount alone proves nothing
)

// among makes some checkouts those of thieves, so that their share of all orders is about the given one, and has the
// others use cards of their own again and again. It depends on its arguments alone.
func among(p plan, share float64, seedOfRun uint64, n int64, customers int, products []seed.Product) plan {
	random := rand.New(rand.NewPCG(seedOfRun^0x7468696566, uint64(n))) //nolint:gosec // see planFor
	each := perThief()
	if random.Float64() < share/(each-(each-1)*share) {
		return theft(random, n, customers, products)
	}
	if p.path != Happy {
		return p
	}
	if random.IntN(100) < feastPercent {
		for i := range p.lines {
			p.lines[i].Quantity *= 3 + random.Int64N(3)
		}
	}
	if random.IntN(100) < ownCardPercent {
		p.token, p.card = "tok_visa", cardOf(p.customer)
	}
	return p
}

// cardOf names the card that a customer uses again and again.
func cardOf(customer string) string { return "own_" + customer[len("shopper-"):] }

// theft is what a thief does. Some test stolen cards, some cards that nobody here has used.
func theft(random *rand.Rand, n int64, customers int, products []seed.Product) plan {
	way := chosen[random.IntN(len(chosen))]
	p := plan{
		path: way, customer: fmt.Sprintf("shopper-%04d", random.IntN(customers)), token: "tok_visa", card: fmt.Sprintf("new_%d", n),
		gap: 200*time.Millisecond + time.Duration(random.IntN(1500))*time.Millisecond,
	}
	if way == StolenCard || way == CardTesting && random.IntN(2) == 0 {
		p.card = cardOf(fmt.Sprintf("shopper-%04d", random.IntN(customers)))
	}
	for range takes[way][0] + random.IntN(takes[way][1]-takes[way][0]+1) {
		lines := loot(random, products)
		if way == CardTesting {
			lines = trifle(random, products)
		}
		p.series = append(p.series, lines)
	}
	return p
}

// trifle is one piece of something cheap.
func trifle(random *rand.Rand, products []seed.Product) []api.CheckoutLine {
	goods := restocked(products)
	i := random.IntN(1 + max(0, slices.IndexFunc(goods, func(p seed.Product) bool { return p.Price.Amount > cheap })-1))
	return []api.CheckoutLine{{Sku: goods[i].SKU, Quantity: 1}}
}

// loot is some pieces of one of the dearest things.
func loot(random *rand.Rand, products []seed.Product) []api.CheckoutLine {
	goods := restocked(products)
	dear := max(1, len(goods)/5)
	return []api.CheckoutLine{{Sku: goods[len(goods)-1-random.IntN(dear)].SKU, Quantity: 8 + random.Int64N(32)}}
}

// restocked are the products that do not run out, the cheapest first.
func restocked(products []seed.Product) []seed.Product {
	goods := slices.DeleteFunc(slices.Clone(products), func(p seed.Product) bool { return p.Scarce })
	slices.SortFunc(goods, func(a, b seed.Product) int {
		return cmp.Or(cmp.Compare(a.Price.Amount, b.Price.Amount), cmp.Compare(a.SKU, b.SKU))
	})
	return goods
}
