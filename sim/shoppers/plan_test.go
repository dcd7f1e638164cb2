package shoppers

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/internal/seed"
)

// TestEveryPathComesSoon holds for any seed: one order in ten is unhappy, and 110 orders have each unhappy path once.
func TestEveryPathComesSoon(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		run := rapid.Uint64().Draw(t, "seed")
		seen := map[Path]int{}
		for n := range int64(110) {
			path, round := pathFor(run, n)
			if seen[path]++; round != 0 {
				t.Fatalf("round %d at order %d", round, n)
			}
			if n == 9 && seen[Happy] != 9 {
				t.Fatalf("%d of the first ten orders are happy, want 9", seen[Happy])
			}
		}
		for _, path := range Unhappy {
			if seen[path] != 1 {
				t.Fatalf("%s came %d times: %v", path, seen[path], seen)
			}
		}
	})
}

func TestPlansFollowFromTheSeed(t *testing.T) {
	t.Parallel()
	products := seed.Products()
	scarce, stock := map[string]bool{}, map[string]int64{}
	for _, p := range products {
		scarce[p.SKU], stock[p.SKU] = p.Scarce, p.Stock
	}
	differ, beyond, single := 0, 0, 0
	for n := range int64(1000) {
		p, same, other := planFor(1, n, 50, products), planFor(1, n, 50, products), planFor(2, n, 50, products)
		if !reflect.DeepEqual(p, same) {
			t.Fatalf("plan %d: %+v and %+v", n, p, same)
		}
		if !reflect.DeepEqual(p, other) {
			differ++
		}
		for _, l := range p.lines {
			if scarce[l.Sku] != (p.path == SoldOut) || l.Quantity < 1 {
				t.Errorf("a %s order has %+v", p.path, l)
			}
			if p.path == SoldOut && l.Quantity > stock[l.Sku] {
				beyond++
			} else if p.path == SoldOut {
				single++
			}
		}
		if p.repeat != once && (p.path != Happy || p.wait) {
			t.Errorf("plan %d repeats: %+v", n, p)
		}
	}
	if differ < 900 || beyond == 0 || single == 0 {
		t.Errorf("%d plans differ between seeds; scarce: %d beyond what is there, %d of one piece", differ, beyond, single)
	}
}

func TestRefill(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		stock, available, want int64
		scarce                 bool
	}{
		{100, 100, 0, false}, {100, 50, 0, false}, {100, 49, 51, false}, {100, 0, 100, false},
		{100, 0, 0, true}, {1, 0, 1, false}, {5_000_000, 1, maxReceipt, false},
	} {
		if got := Refill(seed.Product{Stock: tc.stock, Scarce: tc.scarce}, tc.available); got != tc.want {
			t.Errorf("%+v: %d", tc, got)
		}
	}
}

func TestSettled(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status api.OrderStatus
		money  api.FinancialStatus
		wish   wish
		want   bool
	}{
		{"placed", "pending", nothing, false}, {"on_hold", "authorized", nothing, false},
		{"confirmed", "authorized", nothing, false}, {"confirmed", "paid", nothing, true},
		{"cancelled", "pending", nothing, false}, {"cancelled", "authorized", nothing, false},
		{"cancelled", "paid", nothing, false}, {"cancelled", "voided", nothing, true},
		{"cancelled", "refunded", cancellation, true}, {"cancelled", "failed", nothing, true},
		{"confirmed", "paid", cancellation, false}, {"shipped", "paid", cancellation, true},
		{"confirmed", "paid", refund, false}, {"confirmed", "partially_refunded", refund, true},
		{"returned", "refunded", nothing, true},
	} {
		if got := settled(api.Order{Status: tc.status, FinancialStatus: tc.money}, tc.wish); got != tc.want {
			t.Errorf("%+v: %t", tc, got)
		}
	}
}
