//go:build e2e

package e2e

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/internal/shoptest/journeys"
	"github.com/feira-shop/feira/shared/events"
)

// TestReplay: a group that comes when there is history gets all of it, each event once, and can tell the story of any
// order from the topic alone. When it comes again it gets only what is new.
func TestReplay(t *testing.T) {
	s := open(t)
	ana := s.shop.Customer(t)
	buy := func() api.Order {
		t.Helper()
		return ana.AwaitMoney(t, ana.Buy(t, "CAFE-500G", 1, s.shop.Card("tok_visa")), api.FinancialStatusPaid)
	}
	told := func(records []*kgo.Record, order string) (types []string) {
		for _, r := range records {
			if string(r.Key) == order {
				types = append(types, header(r, events.HeaderType))
			}
		}
		return types
	}
	first := buy()
	journeys.Published(t, s.shop)
	history := firsts(t, s.consume(t, replayGroup, events.Orders.Name))
	if stored := s.stored(t, "orders"); len(history) != stored {
		t.Errorf("the topic tells %d events, the store has %d", len(history), stored)
	}
	story := told(history, first.Id)
	for _, e := range []events.Event{ // created, stock set aside, payment approved, judged, confirmed, paid
		events.OrderPlaced{}, events.OrderStockReserved{}, events.OrderPaymentAuthorized{}, events.OrderFraudCleared{}, events.OrderConfirmed{}, events.OrderPaid{},
	} {
		if !slices.Contains(story, e.EventType()) {
			t.Errorf("the story lacks %s", e.EventType())
		}
	}
	known := func(order string) (types []string) { // stock and money come in any order
		res, err := ana.GetOrderEventsWithResponse(t.Context(), order, &api.GetOrderEventsParams{})
		must(t, err)
		for _, e := range res.JSON200.Events {
			types = append(types, e.Type)
		}
		return types
	}
	if want := known(first.Id); !slices.Equal(story, want) {
		t.Errorf("the topic tells %q, the API %q", story, want)
	}
	t.Logf("%d events of %d orders; one of them: %q", len(history), len(keys(history)), story)

	second := buy()
	journeys.Published(t, s.shop)
	news := s.consume(t, replayGroup, events.Orders.Name)
	if got := told(news, second.Id); !slices.Equal(got, known(second.Id)) || len(told(news, first.Id)) > 0 {
		t.Errorf("the second time it got %q of the new order and %q of the old one", got, told(news, first.Id))
	}
}

func keys(records []*kgo.Record) map[string]bool {
	all := map[string]bool{}
	for _, r := range records {
		all[string(r.Key)] = true
	}
	return all
}

// stored is how many events of a service are for its topic.
func (s *stack) stored(t *testing.T, service string) int {
	t.Helper()
	n := 0
	for _, r := range s.shop.Events(t, service) {
		if _, shared := events.TopicOf(r.Type); shared {
			n++
		}
	}
	return n
}
