package shoptest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/feira-shop/feira/api"
)

// Product adds a product to the shop, in BRL, with so many pieces in stock, and returns its SKU once it can be ordered.
func (s *Shop) Product(tb testing.TB, centavos, stock int64) string {
	tb.Helper()
	sku, keeper := s.unique("TEST-"), s.Operator(tb)
	put, err := keeper.PutProductWithResponse(tb.Context(), sku, &api.PutProductParams{}, api.ProductInput{
		Name: "Product " + sku, Description: "Made for a test.", Price: BRL(centavos), Active: true,
	})
	must(tb, "add a product", err)
	if put.JSON201 == nil {
		tb.Fatalf("add a product: %s %s", put.Status(), put.Body)
	}
	got, err := keeper.ReceiveStockWithResponse(tb.Context(), sku, &api.ReceiveStockParams{IdempotencyKey: s.Key()}, api.Receipt{Quantity: stock})
	must(tb, "receive stock", err)
	if got.JSON201 == nil {
		tb.Fatalf("receive stock: %s %s", got.Status(), got.Body)
	}
	Eventually(tb, "orders knows "+sku, func(ctx context.Context) error {
		var known bool
		err := s.Pool("orders").QueryRow(ctx, "select true from products where sku = $1", sku).Scan(&known)
		return err
	})
	return sku
}

// Stock reads a product's stock.
func (s *Shop) Stock(tb testing.TB, sku string) api.Stock {
	tb.Helper()
	res, err := s.Operator(tb).GetStockWithResponse(tb.Context(), sku)
	must(tb, "read the stock", err)
	if res.JSON200 == nil {
		tb.Fatalf("read the stock of %s: %s %s", sku, res.Status(), res.Body)
	}
	return *res.JSON200
}

// AwaitAvailable waits until so many pieces of a product are available.
func (s *Shop) AwaitAvailable(tb testing.TB, sku string, want int64) {
	tb.Helper()
	Eventually(tb, fmt.Sprintf("%d of %s are available", want, sku), func(context.Context) error {
		if got := s.Stock(tb, sku); got.Available != want {
			return fmt.Errorf("the stock is %+v", got)
		}
		return nil
	})
}

// Points reads what a customer has earned.
func (c *Customer) Points(tb testing.TB) api.LoyaltyAccount {
	tb.Helper()
	res, err := c.GetLoyaltyWithResponse(tb.Context(), c.ID)
	must(tb, "read the points", err)
	if res.JSON200 == nil {
		tb.Fatalf("read the points: %s %s", res.Status(), res.Body)
	}
	return *res.JSON200
}

// AwaitPoints waits until a customer has so many points.
func (c *Customer) AwaitPoints(tb testing.TB, want int64) {
	tb.Helper()
	Eventually(tb, fmt.Sprintf("%s has %d points", c.ID, want), func(context.Context) error {
		if got := c.Points(tb); got.Points != want {
			return fmt.Errorf("the account is %+v", got)
		}
		return nil
	})
}

// Eventually asks again and again until check has nothing to complain about.
func Eventually(tb testing.TB, what string, check func(ctx context.Context) error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			tb.Fatalf("in vain waited until %s: %v", what, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
