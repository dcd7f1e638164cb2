package shoppers

import (
	"bytes"
	"encoding/csv"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/internal/seed"
)

// The share of orders is about the one that was asked for, every way of fraud comes, and it all follows from the seed.
func TestThievesHaveTheirShare(t *testing.T) {
	t.Parallel()
	products := seed.Products()
	const customers, checkouts = 100, 20_000
	for _, share := range []float64{0.1, 0.3, 0.5} {
		orders, stolen, ways, own, feasts := 0, 0, map[Path]int{}, 0, 0
		for n := range int64(checkouts) {
			before := planFor(1, n, customers, products)
			p := among(before, share, 1, n, customers, products)
			if again := among(planFor(1, n, customers, products), share, 1, n, customers, products); !reflect.DeepEqual(p, again) {
				t.Fatalf("plan %d: %+v and %+v", n, p, again)
			}
			if slices.Contains(Fraudulent, p.path) {
				ways[p.path]++
				stolen += len(p.series)
				orders += len(p.series)
				continue
			}
			orders++
			if p.card != "" {
				own++
				if p.path != Happy || p.card != "own_"+strings.TrimPrefix(p.customer, "shopper-") {
					t.Errorf("order %d, %s, of %s is paid with %s", n, p.path, p.customer, p.card)
				}
			}
			if slices.ContainsFunc(p.lines, func(l api.CheckoutLine) bool { return p.path == Happy && l.Quantity > 3 }) {
				feasts++
			}
		}
		if got := float64(stolen) / float64(orders); got < 0.85*share || got > 1.15*share {
			t.Errorf("%.3f of the orders are fraud, want %.3f", got, share)
		}
		if len(ways) != len(Fraudulent) || own == 0 || feasts == 0 {
			t.Errorf("ways %v, %d with cards of their own, %d feasts", ways, own, feasts)
		}
	}
}

// What thieves do is what the rules are for: many small payments, or high ones.
func TestWaysOfFraud(t *testing.T) {
	t.Parallel()
	products, price := seed.Products(), map[string]int64{}
	for _, p := range products {
		price[p.SKU] = p.Price.Amount
		if p.Scarce {
			price[p.SKU] = -1 // sold out soon, and then nobody learns whether the card works
		}
	}
	victims := 0
	for n := range int64(2000) {
		p := among(planFor(3, n, 100, products), 0.5, 3, n, 100, products)
		if p.series == nil {
			continue
		}
		if strings.HasPrefix(p.card, "own_") {
			victims++
		} else if p.path == StolenCard {
			t.Errorf("a stolen card is %s", p.card)
		}
		if n := len(p.series); n < takes[p.path][0] || n > takes[p.path][1] {
			t.Errorf("%s: %d orders", p.path, n)
		}
		for _, lines := range p.series {
			sum := price[lines[0].Sku] * lines[0].Quantity
			if len(lines) != 1 || price[lines[0].Sku] < 0 || p.path == CardTesting && sum > cheap || p.path != CardTesting && sum < 15*cheap {
				t.Errorf("%s: %+v for %d", p.path, lines, sum)
			}
		}
	}
	if victims == 0 {
		t.Error("no card was stolen")
	}
}

// Every order that the shop took has its label.
func TestOrdersAreLabelled(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	shop, s := ran(t, 150, false, func(o *Options) { o.Thieves, o.Labels = 0.4, &file })
	rows, err := csv.NewReader(&file).ReadAll()
	if err != nil || strings.Join(rows[0], ",") != "order,label" {
		t.Fatalf("%v, %v", rows, err)
	}
	labels := map[string]int64{}
	for _, row := range rows[1:] {
		labels[row[1]]++
		if shop.orders[row[0]] == nil {
			t.Errorf("the label of an order that is none: %v", row)
		}
	}
	got := s.Snapshot()
	if int64(len(rows)-1) != got.Placed || labels[honest] == 0 {
		t.Errorf("%d labels for %d orders: %v", len(rows)-1, got.Placed, labels)
	}
	for _, way := range Fraudulent {
		if labels[string(way)] != got.Paths[way] {
			t.Errorf("%d labels of %s, %d orders", labels[string(way)], way, got.Paths[way])
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("the disk is full") }

func TestMissingLabelsAreReported(t *testing.T) {
	t.Parallel()
	o := options(newFakeShop(t, func(*fakeShop) {}))
	o.Labels = full{}
	s := newShoppers(t, o)
	s.Stop()
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "disk is full") {
		t.Errorf("got %v", err)
	}
}
