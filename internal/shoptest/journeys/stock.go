package journeys

import (
	"sync"
	"testing"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/internal/shoptest"
	"github.com/feira-shop/feira/services/inventory"
	"github.com/feira-shop/feira/shared/events"
)

// lastPieces: two hundred want one of ten pieces, all at once.
func lastPieces(t *testing.T, s *shoptest.Shop) {
	t.Parallel()
	const pieces, buyers = 10, 200
	sku := s.Product(t, 3_000, pieces)
	orders := make([]api.Order, buyers)
	var all sync.WaitGroup
	for i := range orders {
		ana, card := s.Customer(t), s.Card("tok_visa")
		all.Go(func() {
			res, err := ana.PlaceOrderWithResponse(t.Context(), &api.PlaceOrderParams{IdempotencyKey: s.Key(), Prefer: shoptest.Wait(10)}, ana.Checkout(sku, 1, card))
			if err != nil || res.JSON201 == nil {
				t.Errorf("buyer %d: %v", i, err)
				return
			}
			orders[i] = *res.JSON201
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	ended := map[string]int{}
	keeper := s.Operator(t)
	for _, o := range orders {
		o = keeper.Await(t, o, "settled", func(o api.Order) bool {
			return o.FinancialStatus == api.FinancialStatusPaid || o.Status == api.OrderStatusCancelled && o.FinancialStatus == api.FinancialStatusVoided
		})
		ended[string(o.Status)+" "+o.Reason]++
	}
	if ended["confirmed "] != pieces || ended["cancelled "+events.ReasonOutOfStock] != buyers-pieces {
		t.Errorf("the orders ended as %v", ended)
	}
	if stock := s.Stock(t, sku); stock.Available != 0 || stock.Reserved != pieces {
		t.Errorf("the stock is %+v", stock)
	}
	shelves := inventory.Shelves{}
	for _, r := range s.Events(t, "inventory") {
		inventory.Apply(shelves, r.Event)
		if shelves[sku].Available() < 0 {
			t.Errorf("after position %d the shelf is %+v", r.Sequence, shelves[sku])
		}
	}
}
