package shoppers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/internal/seed"
)

const (
	restockEvery = time.Second
	// looksPerRound is how many products are looked at each time beside those that our own shoppers emptied.
	looksPerRound = 10
	maxReceipt    = 1_000_000
	keeper        = "" // the shopkeeper among the shop's customers
)

// Refill is how many pieces to order of a product of which so many are available: as many as came with the first
// delivery when fewer than half of these are left, none of a scarce one. Products that are not in the first
// catalogue are never asked about.
func Refill(p seed.Product, available int64) int64 {
	if p.Scarce || available*2 >= p.Stock {
		return 0
	}
	return min(p.Stock-available, maxReceipt)
}

// restocker keeps the shelves full until ctx ends.
type restocker struct {
	shop      *shop
	run       string
	products  []seed.Product // without scarce ones
	sold      func(sku string) int64
	left      map[string]int64 // as seen last, less what was sold by then
	receipts  int
	turn      int
	restocked func(pieces int64)
	failed    func(sku string, err error)
}

func (r *restocker) loop(ctx context.Context) {
	tick := time.NewTicker(restockEvery)
	defer tick.Stop()
	for {
		for _, p := range r.due() {
			if err := r.look(ctx, p); err != nil && ctx.Err() == nil {
				r.failed(p.SKU, err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// due are the products that our shoppers may have emptied, and a few of the others in turn, because others buy too.
func (r *restocker) due() []seed.Product {
	var out []seed.Product
	inTurn := map[int]bool{}
	for range min(looksPerRound, len(r.products)) {
		inTurn[r.turn%len(r.products)] = true
		r.turn++
	}
	for i, p := range r.products {
		if seen, known := r.left[p.SKU]; inTurn[i] || (known && Refill(p, seen-r.sold(p.SKU)) > 0) {
			out = append(out, p)
		}
	}
	return out
}

func (r *restocker) look(ctx context.Context, p seed.Product) error {
	sold := r.sold(p.SKU)
	got, err := r.shop.send(ctx, keeper, func(ctx context.Context, as api.RequestEditorFn) (*http.Response, error) {
		return r.shop.client.GetStock(ctx, p.SKU, as)
	})
	var refused *RefusedError
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		return nil // not delivered for the first time yet
	}
	if err != nil {
		return err
	}
	stock, err := decode[api.Stock](got)
	if err != nil {
		return err
	}
	r.left[p.SKU] = stock.Available + sold
	pieces := Refill(p, stock.Available)
	if pieces == 0 {
		return nil
	}
	r.receipts++
	key := fmt.Sprintf("restock-%s-%d", r.run, r.receipts)
	_, err = r.shop.send(ctx, keeper, func(ctx context.Context, as api.RequestEditorFn) (*http.Response, error) {
		return r.shop.client.ReceiveStock(ctx, p.SKU, &api.ReceiveStockParams{IdempotencyKey: key}, api.Receipt{Quantity: pieces}, as)
	})
	if err == nil {
		r.left[p.SKU] += pieces
		r.restocked(pieces)
	}
	return err
}
