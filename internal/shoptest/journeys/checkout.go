package journeys

import (
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/internal/shoptest"
	"github.com/feira-shop/feira/shared/events"
)

// Checkout is the checkout that the demo prints, pasted once, twice, and with another quantity. It comes before [Together]: five
// seconds are promised to a shop with some customers, not to one that has hundreds of requests at once on two cores.
func Checkout(t *testing.T, s *shoptest.Shop) {
	t.Helper()
	sku, ana, key := s.Product(t, 12_345, 10), s.Customer(t), s.Key()
	body := ana.Checkout(sku, 2, s.Card("tok_visa"))
	first := ana.Send(t, key, body, 5)
	if first.JSON201 == nil || first.JSON201.Status != api.OrderStatusConfirmed {
		t.Fatalf("the first answer is %s %s, want a confirmed order", first.Status(), first.Body)
	}
	o := *first.JSON201
	if h := first.Headers201; h.Location != "/v1/orders/"+o.Id || h.ETag != *shoptest.ETag(o.Version) || h.IdempotentReplayed != nil || *h.PreferenceApplied != "wait=5" {
		t.Errorf("the headers are %v", first.HTTPResponse.Header)
	}
	if o.Total != shoptest.BRL(24_690) || o.Shipping != shoptest.BRL(0) || o.Payment.Brand != "visa" {
		t.Errorf("the order is %s", first.Body)
	}
	again := ana.Send(t, key, body, 5)
	if again.JSON201 == nil || again.JSON201.Id != o.Id || again.Headers201.IdempotentReplayed == nil || *again.Headers201.IdempotentReplayed != "true" {
		t.Errorf("the second answer is %s %v %s", again.Status(), again.HTTPResponse.Header, again.Body)
	}
	body.Lines[0].Quantity = 3
	other := ana.Send(t, key, body, 5)
	if p := other.ApplicationproblemJSON422; p == nil || p.Code != "idempotency_key_reused" || p.Param != "Idempotency-Key" {
		t.Errorf("with another quantity the answer is %s %s", other.Status(), other.Body)
	}
	ana.AwaitMoney(t, o, api.FinancialStatusPaid)
	ana.AwaitPoints(t, 246)
	s.AwaitAvailable(t, sku, 8)
	if stock := s.Stock(t, sku); stock.OnHand != 10 || stock.Reserved != 2 {
		t.Errorf("the stock is %+v", stock)
	}
}

// checkoutAsPlaced: a repeat that does not wait gets the order as it was when it was placed, byte by byte.
func checkoutAsPlaced(t *testing.T, s *shoptest.Shop) {
	t.Parallel()
	sku, ana, key := s.Product(t, 1_000, 10), s.Customer(t), s.Key()
	body := ana.Checkout(sku, 1, s.Card("tok_visa"))
	first := ana.Send(t, key, body, 0)
	if first.JSON201 == nil || first.JSON201.Status != api.OrderStatusPlaced || first.JSON201.Version != 1 {
		t.Fatalf("the answer is %s %s, want the order as placed", first.Status(), first.Body)
	}
	ana.AwaitMoney(t, *first.JSON201, api.FinancialStatusPaid)
	again := ana.Send(t, key, body, 0)
	if string(again.Body) != string(first.Body) || again.Headers201.IdempotentReplayed == nil {
		t.Errorf("the repeat got %s, the first %s", again.Body, first.Body)
	}
}

// checkoutIsQuick: on a machine that does other things too, the best of some tries says what the shop can do.
func checkoutIsQuick(t *testing.T, s *shoptest.Shop) {
	t.Parallel()
	sku, ana := s.Product(t, 1_000, 100), s.Customer(t)
	best := time.Hour
	for range 20 {
		began := time.Now()
		res := ana.Send(t, s.Key(), ana.Checkout(sku, 1, s.Card("tok_visa")), 5)
		if took := time.Since(began); res.JSON201 != nil && res.JSON201.Status == api.OrderStatusConfirmed {
			best = min(best, took)
		}
		if best < time.Second {
			break
		}
	}
	if t.Logf("confirmed within %s", best); best >= time.Second {
		t.Errorf("the quickest order was confirmed after %s, want less than a second", best)
	}
}

func types(list ...events.Event) []string {
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = e.EventType()
	}
	return names
}

// history: an order's events tell all of it, and give it as it was at any version and time.
func history(t *testing.T, s *shoptest.Shop) {
	t.Parallel()
	sku, ana := s.Product(t, 5_000, 10), s.Customer(t)
	o := ana.AwaitMoney(t, ana.Buy(t, sku, 1, s.Card("tok_visa")), api.FinancialStatusPaid)
	all := told(t, ana, o.Id, api.GetOrderEventsParams{})
	var names []string
	for i, e := range all.Events {
		names = append(names, e.Type)
		if e.Version != int64(i+1) {
			t.Errorf("event %d has version %d", i, e.Version)
		}
	}
	placed, noted, rest := names[:1], slices.Sorted(slices.Values(names[1:4])), names[4:]
	if !slices.Equal(placed, types(events.OrderPlaced{})) ||
		!slices.Equal(noted, slices.Sorted(slices.Values(types(events.OrderStockReserved{}, events.OrderPaymentAuthorized{}, events.OrderFraudCleared{})))) ||
		!slices.Equal(rest, types(events.OrderConfirmed{}, events.OrderPaid{})) {
		t.Errorf("the history is %v", names)
	}
	if !reflect.DeepEqual(all.Order, o) {
		t.Errorf("the history gives %+v, the order is %+v", all.Order, o)
	}
	first := told(t, ana, o.Id, api.GetOrderEventsParams{Version: new(int64(1))})
	if first.Order.Status != api.OrderStatusPlaced || first.Order.Version != 1 || len(first.Events) != 1 {
		t.Errorf("as of version 1 it was %+v", first)
	}
	fifth := told(t, ana, o.Id, api.GetOrderEventsParams{Version: new(int64(5))})
	then := told(t, ana, o.Id, api.GetOrderEventsParams{At: &fifth.Order.UpdatedAt})
	if !reflect.DeepEqual(then, fifth) || then.Order.Status != api.OrderStatusConfirmed {
		t.Errorf("at the time of version 5 it was %+v, want %+v", then, fifth)
	}
	before := o.PlacedAt.Add(-time.Second)
	for _, p := range []api.GetOrderEventsParams{{Version: new(int64(99))}, {At: &before}} {
		res, err := ana.GetOrderEventsWithResponse(t.Context(), o.Id, &p)
		if err != nil || res.StatusCode() != http.StatusNotFound {
			t.Errorf("of what never was: %v %s", err, res.Body)
		}
	}
}

func told(t *testing.T, c *shoptest.Customer, order string, p api.GetOrderEventsParams) api.OrderHistory {
	t.Helper()
	res, err := c.GetOrderEventsWithResponse(t.Context(), order, &p)
	if err != nil {
		t.Fatal(err)
	}
	if res.JSON200 == nil {
		t.Fatalf("history of %s: %s %s", order, res.Status(), res.Body)
	}
	return *res.JSON200
}

// live: who follows an order sees its events as they happen, and goes on where the connection broke.
func live(t *testing.T, s *shoptest.Shop) {
	t.Parallel()
	sku, ana := s.Product(t, 5_000, 10), s.Customer(t)
	order := ana.Place(t, s.Key(), ana.Checkout(sku, 1, s.Card("tok_visa"))).Id
	next := ana.Follow(t, order, "")
	version := 0
	until := func(next func() shoptest.Told, e events.Event) {
		t.Helper()
		for {
			got := next()
			if version++; got.ID != strconv.Itoa(version) || got.Event.Version != int64(version) || got.Name != got.Event.Type {
				t.Fatalf("event %d is %+v", version, got)
			}
			if got.Name == e.EventType() {
				return
			}
		}
	}
	until(next, events.OrderPaid{})
	refund(t, ana, order, 1_000, http.StatusAccepted) // with the stream open
	until(next, events.OrderRefunded{})
	version -= 2
	until(ana.Follow(t, order, strconv.Itoa(version)), events.OrderRefunded{})
}

// conditions: a version that a client has seen is the condition of its reads and changes.
func conditions(t *testing.T, s *shoptest.Shop) {
	t.Parallel()
	sku, ana := s.Product(t, 5_000, 10), s.Customer(t)
	o := ana.AwaitMoney(t, ana.Buy(t, sku, 1, s.Card("tok_visa")), api.FinancialStatusPaid)
	poll := func(version int64, wait int) *api.GetOrderResponse {
		res, err := ana.GetOrderWithResponse(t.Context(), o.Id, &api.GetOrderParams{IfNoneMatch: shoptest.ETag(version), Prefer: shoptest.Wait(wait)})
		if err != nil {
			t.Error(err)
			return &api.GetOrderResponse{HTTPResponse: &http.Response{}}
		}
		return res
	}
	if res := poll(o.Version, 1); res.StatusCode() != http.StatusNotModified || res.HTTPResponse.Header.Get("ETag") != *shoptest.ETag(o.Version) {
		t.Errorf("an unchanged order answers %s %v", res.Status(), res.HTTPResponse.Header)
	}
	cancel := func(version int64) *api.CancelOrderResponse {
		res, err := ana.CancelOrderWithResponse(t.Context(), o.Id, &api.CancelOrderParams{IdempotencyKey: s.Key(), IfMatch: shoptest.ETag(version)}, api.Cancellation{})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	stale := cancel(o.Version - 1)
	if p := stale.ApplicationproblemJSON412; p == nil || p.Param != "If-Match" {
		t.Errorf("a stale If-Match answers %s %s", stale.Status(), stale.Body)
	}
	changed := make(chan *api.GetOrderResponse, 1)
	go func() { changed <- poll(o.Version, 10) }()
	if res := cancel(o.Version); res.JSON202 == nil || res.JSON202.Status != api.OrderStatusCancelled {
		t.Errorf("a right If-Match answers %s %s", res.Status(), res.Body)
	}
	if res := <-changed; res.JSON200 == nil || res.JSON200.Version <= o.Version {
		t.Errorf("the long poll of a changed order answers %s %s", res.Status(), res.Body)
	}
}
