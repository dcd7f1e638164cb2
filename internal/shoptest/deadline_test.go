package shoptest_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/internal/shoptest"
	"github.com/feira-shop/feira/internal/shoptest/journeys"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/jobs"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/sim/provider"
)

const pay = "payments.pay" // the operator of payments

// pausePayments has payments take nothing in and do nothing, as feira admin pause does.
func pausePayments(t *testing.T, s *shoptest.Shop) {
	t.Helper()
	pauseJobs(t, s)
	if err := operator.Pause(t.Context(), s.Pool("payments"), pay, "a test"); err != nil {
		t.Fatal(err)
	}
	shoptest.Eventually(t, pay+" is paused", func(context.Context) error {
		if s.Metric(t, "feira_operator_paused", "operator", pay) != 1 {
			return fmt.Errorf("it is not")
		}
		return nil
	})
}

func pauseJobs(t *testing.T, s *shoptest.Shop) {
	t.Helper()
	if err := jobs.Pause(t.Context(), s.Pool("payments")); err != nil {
		t.Fatal(err)
	}
}

func resumePayments(t *testing.T, s *shoptest.Shop) {
	t.Helper()
	if err := operator.Resume(t.Context(), s.Pool("payments"), pay, "a test"); err != nil {
		t.Fatal(err)
	}
	if err := jobs.Resume(t.Context(), s.Pool("payments")); err != nil {
		t.Fatal(err)
	}
}

func checkpoints(t *testing.T, s *shoptest.Shop) []operator.Partition {
	t.Helper()
	all, err := operator.List(t.Context(), s.Pool("payments"))
	if err != nil || len(all) != 1 {
		t.Fatalf("%d operators, %v", len(all), err)
	}
	return all[0].Partitions
}

func placeSome(t *testing.T, s *shoptest.Shop, ana *shoptest.Customer, sku string, n int) []api.Order {
	t.Helper()
	placed := make([]api.Order, n)
	for i := range placed {
		placed[i] = ana.Place(t, s.Key(), ana.Checkout(sku, 1, s.Card("tok_visa")))
	}
	return placed
}

// TestDeadline: while payments does nothing, orders end by their deadline; when it goes on, it takes nobody's money.
func TestDeadline(t *testing.T) {
	t.Parallel()
	s := shoptest.Start(t, shoptest.Options{Deadline: 1500 * time.Millisecond})
	sku, ana := s.Product(t, 2_000, 20), s.Customer(t)
	pauseJobs(t, s) // payments hears of these, and cannot ask the provider
	orders := placeSome(t, s, ana, sku, 3)
	shoptest.Eventually(t, "payments has heard of them", func(context.Context) error {
		if n := len(s.Events(t, "payments")); n < len(orders) {
			return fmt.Errorf("it has %d events", n)
		}
		return nil
	})
	pausePayments(t, s) // and not even of these
	orders = append(orders, placeSome(t, s, ana, sku, 3)...)
	for i, o := range orders {
		orders[i] = ana.Await(t, o, "cancelled", func(o api.Order) bool { return o.Status == api.OrderStatusCancelled })
		if o := orders[i]; o.Reason != events.ReasonDeadline || o.FinancialStatus != api.FinancialStatusVoided {
			t.Errorf("the order is %+v", o)
		}
	}
	s.AwaitAvailable(t, sku, 20)
	resumePayments(t, s)
	shoptest.Eventually(t, "every payment is given up", func(ctx context.Context) error {
		report, err := s.Examine(ctx, 0, 1)
		if err == nil && len(report.Open) > 0 {
			err = fmt.Errorf("%d orders are open", len(report.Open))
		}
		return err
	})
	if err := provider.Ledger(t.Context(), s.Pool(shoptest.Provider), func(a provider.Authorization) error {
		if a.Status != provider.Voided || a.Captured != 0 {
			t.Errorf("the provider has %+v", a)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	s.AwaitAvailable(t, sku, 20)
	ana.AwaitPoints(t, 0)
}

// TestPause: with time enough, payments goes on exactly at its checkpoint and every waiting order is confirmed.
func TestPause(t *testing.T) {
	t.Parallel()
	s := shoptest.Start(t, shoptest.Options{Deadline: 10 * time.Minute})
	sku, ana := s.Product(t, 2_000, 100), s.Customer(t)
	for _, o := range placeSome(t, s, ana, sku, 3) {
		ana.AwaitMoney(t, o, api.FinancialStatusPaid)
	}
	allApplied(t, s)
	pausePayments(t, s)
	at, known := checkpoints(t, s), len(s.Events(t, "payments"))
	orders := placeSome(t, s, ana, sku, 20)
	for _, o := range orders {
		ana.Await(t, o, "noted as reserved", func(o api.Order) bool { return o.Version == 2 })
	}
	if now := checkpoints(t, s); !reflect.DeepEqual(now, at) || len(s.Events(t, "payments")) != known {
		t.Errorf("while paused the checkpoints went from %+v to %+v", at, now)
	}
	applied := s.Metric(t, "feira_operator_events_processed_total", "operator", pay)
	resumePayments(t, s)
	for _, o := range orders {
		if o = ana.AwaitMoney(t, o, api.FinancialStatusPaid); o.Status != api.OrderStatusConfirmed {
			t.Errorf("order %s is %s", o.Id, o.Status)
		}
		journeys.Ledger(t, s, o, provider.Captured, o.Total.Amount, 0)
	}
	allApplied(t, s)
	// Each order was placed and confirmed after the checkpoint: so many events, each once, and none from before.
	if n := s.Metric(t, "feira_operator_events_processed_total", "operator", pay) - applied; n != float64(2*len(orders)) {
		t.Errorf("%v events were applied after the pause, want %d", n, 2*len(orders))
	}
	if n := s.Metric(t, "feira_operator_duplicates_dropped_total", "operator", pay); n != 0 {
		t.Errorf("%v events came again", n)
	}
	for i, p := range checkpoints(t, s) {
		if p.Epoch != at[i].Epoch {
			t.Errorf("partition %d changed hands from epoch %d to %d", p.Partition, at[i].Epoch, p.Epoch)
		}
	}
}

// allApplied waits until payments has committed all that orders published.
func allApplied(t *testing.T, s *shoptest.Shop) {
	t.Helper()
	shoptest.Eventually(t, pay+" has caught up", func(context.Context) error {
		recorded := s.Events(t, "orders")
		var applied int64
		for _, p := range checkpoints(t, s) {
			applied = max(applied, p.SourcePosition)
		}
		if last := recorded[len(recorded)-1].Sequence; applied < last {
			return fmt.Errorf("it is at position %d of %d", applied, last)
		}
		return nil
	})
}
