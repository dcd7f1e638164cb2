//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/internal/shoptest"
	"github.com/feira-shop/feira/internal/shoptest/journeys"
)

// back starts processes again and waits until they are ready.
func (s *stack) back(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		must(t, s.parts[name].start())
	}
	for _, name := range names {
		must(t, s.parts[name].ready(t.Context()))
	}
}

// checkpoint is the sum of an operator's offsets.
func (s *stack) checkpoint(t *testing.T, service string) (sum int64) {
	t.Helper()
	must(t, s.shop.Pool(service).QueryRow(t.Context(), "select coalesce(sum(next_offset), 0)::bigint from checkpoints where next_offset >= 0").Scan(&sum))
	return sum
}

// metric of a part of the shop.
func (s *stack) metric(t *testing.T, name, metric string) float64 {
	t.Helper()
	v, err := s.parts[name].metric(t.Context(), metric)
	must(t, err)
	return v
}

// TestConsumersAway: inventory is stopped and loyalty killed while customers order. Back again, they go on exactly where
// they were: each new event is applied, once, and none from before.
func TestConsumersAway(t *testing.T) {
	const n = 20
	s := open(t)
	journeys.Published(t, s.shop)
	sku, ana := s.shop.Product(t, 30_000, 2*n), s.shop.Customer(t)
	order := func() api.Order {
		return ana.Place(t, s.shop.Key(), ana.Checkout(sku, 1, s.shop.Card("tok_visa")))
	}
	paid := func(orders []api.Order) {
		t.Helper()
		for _, o := range orders {
			if o = ana.AwaitMoney(t, o, api.FinancialStatusPaid); o.Status != api.OrderStatusConfirmed {
				t.Errorf("order %s is %s", o.Id, o.Status)
			}
		}
	}
	paid([]api.Order{order()})
	ana.AwaitPoints(t, 300)
	journeys.Published(t, s.shop)

	must(t, s.parts["inventory"].stop())
	must(t, s.parts["loyalty"].kill())
	inventory, loyalty := s.checkpoint(t, "inventory"), s.checkpoint(t, "loyalty")
	orders := make([]api.Order, n)
	for i := range orders {
		orders[i] = order()
	}
	for i, o := range orders {
		orders[i] = ana.Await(t, o, "noted as authorised and cleared", func(o api.Order) bool { return o.Version >= 3 })
	}
	if o := orders[0]; o.Status != api.OrderStatusPlaced {
		t.Errorf("without inventory the order is %s", o.Status)
	}
	s.back(t, "inventory")
	paid(orders)
	if points := s.checkpoint(t, "loyalty"); points != loyalty {
		t.Errorf("loyalty, which is away, went from %d to %d", loyalty, points)
	}
	s.back(t, "loyalty")
	ana.AwaitPoints(t, 300*(n+1))
	s.shop.AwaitAvailable(t, sku, n-1)

	// Of what inventory hears, each order was placed; of what loyalty hears, each was captured.
	for name, before := range map[string]int64{"inventory": inventory, "loyalty": loyalty} {
		shoptest.Eventually(t, name+" has applied what it missed", func(context.Context) error {
			applied, dropped := s.metric(t, name, "feira_operator_events_processed_total"), s.metric(t, name, "feira_operator_duplicates_dropped_total")
			if applied != n || dropped != 0 {
				return fmt.Errorf("it applied %v events, want %d, and dropped %v", applied, n, dropped)
			}
			return nil
		})
		if now := s.checkpoint(t, name); now < before+n {
			t.Errorf("the checkpoint of %s went from %d to %d", name, before, now)
		}
	}
}

// TestDeadline: while payments is away, orders end by their deadline; back again, it takes nobody's money.
func TestDeadline(t *testing.T) {
	s := open(t)
	orders := s.parts["orders"]
	for i, v := range orders.env {
		if v == "FEIRA_DEADLINE="+deadline {
			orders.env = append(append(append([]string{}, orders.env[:i]...), "FEIRA_DEADLINE=2s"), orders.env[i+1:]...)
		}
	}
	t.Cleanup(func() { // before the books are examined
		must(t, orders.stop())
		orders.env = s.env
		must(t, orders.start())
		must(t, orders.ready(context.Background()))
	})
	must(t, orders.stop())
	must(t, s.parts["payments"].stop())
	must(t, orders.start())
	must(t, orders.ready(t.Context()))
	sku, ana := s.shop.Product(t, 2_000, 10), s.shop.Customer(t)
	placed := ana.Place(t, s.shop.Key(), ana.Checkout(sku, 1, s.shop.Card("tok_visa")))
	o := ana.Await(t, placed, "cancelled", func(o api.Order) bool { return o.Status == api.OrderStatusCancelled })
	if o.Reason != "deadline" || o.FinancialStatus != api.FinancialStatusVoided {
		t.Errorf("the order is %+v", o)
	}
	s.shop.AwaitAvailable(t, sku, 10)
	s.back(t, "payments")
	journeys.Published(t, s.shop)
	for _, a := range s.shop.Ledger(t, o.Payment.Id) {
		if a.Captured != 0 {
			t.Errorf("the provider has %+v", a)
		}
	}
}
