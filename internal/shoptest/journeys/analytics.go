package journeys

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/internal/shoptest"
	"github.com/feira-shop/feira/shared/events"
)

// clicks: what a customer does counts by the time that it says, and in the conversion of its minute.
func clicks(t *testing.T, s *shoptest.Shop) {
	t.Parallel()
	const often = 25
	ana := s.Customer(t)
	action, at := "ver-"+ana.ID, time.Date(2024, 3, 31, 15, 46, 40, 0, time.UTC)
	for i := range often {
		click := events.UserActed{User: ana.ID, Action: action, Timestamp: events.UnixTimeOf(at.Add(time.Duration(i) * time.Second))}
		if res, err := ana.RecordClickWithResponse(t.Context(), click); err != nil || res.StatusCode() != http.StatusAccepted {
			t.Fatalf("click: %s %s, %v", res.Status(), res.Body, err)
		}
	}
	shoptest.Eventually(t, "all clicks count", func(ctx context.Context) error {
		res, err := ana.ListClicksWithResponse(ctx, &api.ListClicksParams{Acao: &action})
		if err != nil || res.JSON200 == nil || res.JSON200.Total != often || len(res.JSON200.Data) != 2 {
			return fmt.Errorf("%s, %w", res.Body, err)
		}
		return nil
	})
	from, to := at.Truncate(time.Minute), at.Truncate(time.Minute).Add(time.Minute)
	res, err := ana.ListConversionWithResponse(t.Context(), &api.ListConversionParams{Acao: &action, From: &from, To: &to})
	if err != nil || res.JSON200 == nil || len(res.JSON200.Data) != 1 || res.JSON200.Data[0].Clicks != 20 || *res.JSON200.Data[0].Rate != 0 {
		t.Errorf("the conversion of the minute is %s, %v", res.Body, err)
	}
}

// spend: what an account pays and gets back is shown while its window is open, and stays when it has closed.
func spend(t *testing.T, s *shoptest.Shop) {
	t.Parallel()
	ana := s.Customer(t)
	sku := s.Product(t, 3_000, 50)
	o := ana.AwaitMoney(t, ana.Buy(t, sku, 2, s.Card("tok_visa")), api.FinancialStatusPaid)
	amount := shoptest.BRL(1_000)
	res, err := ana.RefundOrderWithResponse(t.Context(), o.Id, &api.RefundOrderParams{IdempotencyKey: s.Key()}, api.Refund{Amount: amount, Reason: "broken"})
	if err != nil || res.JSON202 == nil {
		t.Fatalf("refund: %s, %v", res.Body, err)
	}
	ana.AwaitMoney(t, o, api.FinancialStatusPartiallyRefunded)
	shoptest.Eventually(t, "its windows are closed and hold what was paid and refunded", func(ctx context.Context) error {
		page, err := spendOf(ctx, ana)
		if err != nil {
			return err
		}
		sum := api.Spend{}
		for _, w := range page {
			sum.Payments, sum.Refunds, sum.Open = sum.Payments+w.Payments, sum.Refunds+w.Refunds, sum.Open || w.Open
			sum.Captured.Amount, sum.Refunded.Amount = sum.Captured.Amount+w.Captured.Amount, sum.Refunded.Amount+w.Refunded.Amount
		}
		if want := (api.Spend{Payments: 1, Refunds: 1, Captured: o.Total, Refunded: amount}); sum.Open || sum.Payments != want.Payments ||
			sum.Refunds != want.Refunds || sum.Captured.Amount != want.Captured.Amount || sum.Refunded.Amount != want.Refunded.Amount {
			return fmt.Errorf("the windows add up to %+v", sum)
		}
		return nil
	})
	eve := s.Customer(t)
	if theirs, err := eve.ListAccountSpendWithResponse(t.Context(), &api.ListAccountSpendParams{Account: &ana.ID}); err != nil || theirs.StatusCode() != http.StatusNotFound {
		t.Errorf("another customer's account: %s, %v", theirs.Body, err)
	}
	if page, err := spendOf(t.Context(), eve); err != nil || len(page) > 0 {
		t.Errorf("somebody who bought nothing has %+v, %v", page, err)
	}
	limit := 100
	top, err := ana.ListTopProductsWithResponse(t.Context(), &api.ListTopProductsParams{Limit: &limit})
	if err != nil || top.JSON200 == nil || !slices.ContainsFunc(top.JSON200.Data, func(r api.TopProducts) bool { return len(r.Products) > 0 }) {
		t.Errorf("the products that sold most: %s, %v", top.Body, err)
	}
}

func spendOf(ctx context.Context, c *shoptest.Customer) ([]api.Spend, error) {
	res, err := c.ListAccountSpendWithResponse(ctx, &api.ListAccountSpendParams{})
	if err != nil {
		return nil, err
	}
	if res.JSON200 == nil {
		return nil, fmt.Errorf("account spend: %s", res.Body)
	}
	return res.JSON200.Data, nil
}
