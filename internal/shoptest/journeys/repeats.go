package journeys

import (
	"net/http"
	"sync"
	"testing"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/internal/shoptest"
)

func decided(o api.Order) bool {
	return o.FinancialStatus == api.FinancialStatusPaid || o.Status == api.OrderStatusCancelled
}

// sameTime sends n checkouts of one customer and key at once; the body of each is its own.
func sameTime(t *testing.T, ana *shoptest.Customer, key string, n int, body func(i int) api.Checkout) []*api.PlaceOrderResponse {
	t.Helper()
	answers := make([]*api.PlaceOrderResponse, n)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			<-start
			res, err := ana.PlaceOrderWithResponse(t.Context(), &api.PlaceOrderParams{IdempotencyKey: key}, body(i))
			if err != nil {
				t.Error(err)
				return
			}
			answers[i] = res
		})
	}
	close(start)
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return answers
}

// repeatedAtOnce: fifty times the same request is one order and fifty equal answers, one of which is the first.
func repeatedAtOnce(t *testing.T, s *shoptest.Shop) {
	t.Parallel()
	sku, ana, key := s.Product(t, 2_000, 100), s.Customer(t), s.Key()
	body := ana.Checkout(sku, 1, s.Card("tok_visa"))
	firsts := 0
	answers := sameTime(t, ana, key, 50, func(int) api.Checkout { return body })
	for _, a := range answers {
		if a.StatusCode() != http.StatusCreated || string(a.Body) != string(answers[0].Body) {
			t.Fatalf("%s %s, another got %s", a.Status(), a.Body, answers[0].Body)
		}
		if a.Headers201.IdempotentReplayed == nil {
			firsts++
		}
	}
	if firsts != 1 {
		t.Errorf("%d answers say that they are the first", firsts)
	}
	if n := len(orders(t, ana)); n != 1 {
		t.Errorf("there are %d orders", n)
	}
	bia := s.Customer(t) // the same key is somebody else's own
	other := bia.Send(t, key, bia.Checkout(sku, 1, s.Card("tok_visa")), 0)
	if other.JSON201 == nil || other.JSON201.Id == answers[0].JSON201.Id || other.Headers201.IdempotentReplayed != nil {
		t.Fatalf("the other customer got %s %s", other.Status(), other.Body)
	}
	ana.Await(t, *answers[0].JSON201, "decided", decided)
	bia.Await(t, *other.JSON201, "decided", decided)
	s.AwaitAvailable(t, sku, 98)
}

// changedAtOnce: of two bodies under one key, sent at once, one is the order and all of the other are refused.
func changedAtOnce(t *testing.T, s *shoptest.Shop) {
	t.Parallel()
	sku := s.Product(t, 2_000, 1_000)
	for range 10 {
		ana := s.Customer(t)
		bodies := []api.Checkout{ana.Checkout(sku, 1, s.Card("tok_visa")), ana.Checkout(sku, 2, s.Card("tok_visa"))}
		answers := sameTime(t, ana, s.Key(), 20, func(i int) api.Checkout { return bodies[min(1, i%10)^1] })
		placed := orders(t, ana)
		if len(placed) != 1 {
			t.Fatalf("there are %d orders", len(placed))
		}
		won := placed[0].Lines[0].Quantity
		for i, a := range answers {
			mine := bodies[min(1, i%10)^1].Lines[0].Quantity
			switch {
			case mine == won && (a.JSON201 == nil || a.JSON201.Id != placed[0].Id),
				mine != won && (a.ApplicationproblemJSON422 == nil || a.ApplicationproblemJSON422.Code != "idempotency_key_reused"):
				t.Errorf("%d pieces got %s %s, and %d were ordered", mine, a.Status(), a.Body, won)
			}
		}
		ana.Await(t, placed[0], "decided", decided)
	}
}

func orders(t *testing.T, c *shoptest.Customer) []api.Order {
	t.Helper()
	res, err := c.ListOrdersWithResponse(t.Context(), &api.ListOrdersParams{})
	if err != nil || res.JSON200 == nil {
		t.Fatalf("list the orders: %v %s", err, res.Body)
	}
	return res.JSON200.Data
}
