package payments

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/faulttest"
	"github.com/feira-shop/feira/sim/provider"
)

// Many orders go through every way at once, with a provider that loses every tenth answer, and the books are compared:
// what payments believes is what the provider did.
func TestFaultMoneyRaces(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{
		Number: 10, Name: "Money races at the provider",
		Does: "Payments of every kind with cancellations and refunds at any moment, of whose answers one in ten is lost after the money moved; the provider's books are those of payments, and it never has to refuse a refund as too much.",
	})
	s := newShop(t, time.Second)
	s.cut.Store(10)
	r, orders := run.Dice(), run.Times(150, 1500)
	tokens := []string{"tok_visa", "tok_mastercard", "tok_declined", "tok_processing_error", "tok_capture_fails"}
	open := map[string][]events.Event{} // what is yet to be heard of each order, in order
	for i := range orders {
		id := fmt.Sprintf("o%03d", i)
		open[id] = []events.Event{order(id, fmt.Sprintf("%s_%d", tokens[r.IntN(len(tokens))], i))}
	}
	for len(open) > 0 {
		for id, todo := range open {
			if r.IntN(3) == 0 {
				continue
			}
			s.hear(todo...)
			if next := s.follow(r, id, todo); next != nil {
				open[id] = next
			} else {
				delete(open, id)
			}
		}
	}
	s.cut.Store(0)
	s.quiet()
	s.compare()
	run.Count("orders", orders)
	run.Count("answers lost", int(s.lost.Load()))
}

// follow says what an order does after what was heard of it; nil: nothing more.
func (s *shop) follow(r *rand.Rand, id string, heard []events.Event) []events.Event {
	now, err := decider.Load(s.t.Context(), s.store, aggregate(), StreamOf(id))
	must(s.t, err)
	switch p := now.State; {
	case reflect.TypeOf(heard[0]) == reflect.TypeFor[events.OrderCancelled]():
		return nil
	case r.IntN(6) == 0, p.Status == CaptureFailed, p.Status == Refused:
		return []events.Event{orderCancelled(id)}
	case p.Status == Reserved:
		return []events.Event{confirmed(id)}
	case p.Status == Taken && len(p.Commands) < 3:
		command := fmt.Sprint("r", len(p.Commands))
		return []events.Event{refundRequested(id, command, r.Int64N(4000)), refundRequested(id, command, 1)}
	case p.Status == Taken, p.Status == GivenBack:
		return nil
	}
	return heard // it waits for the provider; hearing a thing again changes nothing
}

func (s *shop) compare() {
	s.t.Helper()
	ledger := s.ledger()
	ends := map[Status]int{}
	for _, k := range s.streams() {
		now, err := decider.Load(s.t.Context(), s.store, aggregate(), k)
		must(s.t, err)
		p := now.State
		ends[p.Status]++
		a := ledger[p.Purchase.Payment]
		if p.Refunded != a.Refunded || p.Kept() != a.Captured-a.Refunded {
			s.t.Errorf("%s: refunded %d, kept %d; the provider says %+v", k, p.Refunded, p.Kept(), a)
		}
		if p.Cancelled && !slices.Contains(final, p.Status) {
			s.t.Errorf("%s is cancelled, but %s", k, p.Status)
		}
		if p.Status == GivenUp && (a.Captured > 0 || a.ID != "" && a.Status != provider.Voided && a.Status != provider.Declined) {
			s.t.Errorf("%s is voided; the provider says %+v", k, a)
		}
		if p.InFlight != nil || len(p.Queue) > 0 {
			s.t.Errorf("%s still has refunds to make: %+v", k, p)
		}
	}
	s.t.Logf("ends: %v", ends)
	for _, status := range final {
		if ends[status] == 0 {
			s.t.Errorf("no order ended %s: the test does not reach it", status)
		}
	}
}

func (s *shop) streams() []string {
	rows, err := s.db.Pool.Query(s.t.Context(), "select stream from streams order by stream")
	must(s.t, err)
	defer rows.Close()
	var all []string
	for rows.Next() {
		var name string
		must(s.t, rows.Scan(&name))
		all = append(all, name)
	}
	must(s.t, rows.Err())
	return all
}
