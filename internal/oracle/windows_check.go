package oracle

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/services/analytics"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/money"
)

// checkWindows compares windows, closed and open, with what they should hold.
func (e *examiner) checkWindows(ctx context.Context, b *books) error {
	if e.pools["analytics"] == nil {
		return nil
	}
	for _, check := range []func(context.Context, *books) error{e.checkSpend, e.checkTop, e.checkMinutes, e.checkReceived, e.checkClicks} {
		if err := check(ctx, b); err != nil {
			return fmt.Errorf("verify analytics: %w", err)
		}
	}
	return nil
}

func (e *examiner) checkSpend(ctx context.Context, b *books) error {
	w, found := b.windows, map[spendWindow]analytics.Spend{}
	// Open ones first: a window that closes in between is then in both.
	open, err := analytics.OpenSpend(ctx, e.pools["analytics"], w.cfg)
	if err != nil {
		return err
	}
	for _, r := range open {
		account, currency := analytics.AccountOf(r.Key)
		found[spendWindow{account, currency, r.Window.Start}] = r.Value
	}
	rows, err := e.pools["analytics"].Query(ctx, `select account, currency, window_start, window_end, payments, captured, refunds, refunded, revision from account_spend`)
	if err != nil {
		return err
	}
	var kept events.AccountSpendClosed
	var s analytics.Spend
	_, err = pgx.ForEachRow(rows, []any{&kept.Account, &kept.Currency, &kept.WindowStart, &kept.WindowEnd, &s.Payments, &s.Captured, &s.Refunds, &s.Refunded, &kept.Revision}, func() error {
		kept.WindowStart, kept.WindowEnd = kept.WindowStart.UTC(), kept.WindowEnd.UTC()
		kept.Payments, kept.Refunds = s.Payments, s.Refunds
		kept.Captured, kept.Refunded = money.New(s.Captured, kept.Currency), money.New(s.Refunded, kept.Currency)
		at := spendWindow{kept.Account, kept.Currency, kept.WindowStart}
		found[at] = s
		if said := w.spent[at]; said != kept {
			b.fault("analytics: the window %s is %+v, the last that was said of it is %+v", at, kept, said)
		}
		delete(w.spent, at)
		return nil
	})
	for at := range w.spent {
		b.fault("analytics: the window %s was said and is not kept", at)
	}
	compareWindows(b, found, w.spend, "the payments give")
	return err
}

func (e *examiner) checkTop(ctx context.Context, b *books) error {
	w, found, want := b.windows, map[time.Time][]analytics.Product{}, map[time.Time][]analytics.Product{}
	open, err := analytics.OpenTop(ctx, e.pools["analytics"], w.cfg)
	if err != nil {
		return err
	}
	for _, r := range open {
		found[r.Window.Start] = r.Value.Top()
	}
	rows, err := e.pools["analytics"].Query(ctx, `select window_start, window_end, products, revision from top_products`)
	if err != nil {
		return err
	}
	var start, end time.Time
	var products []byte
	var revision int
	_, err = pgx.ForEachRow(rows, []any{&start, &end, &products, &revision}, func() error {
		kept := analytics.ProductsRanked{WindowStart: start.UTC(), WindowEnd: end.UTC(), Revision: revision}
		if err := json.Unmarshal(products, &kept.Products); err != nil {
			return err
		}
		found[kept.WindowStart] = kept.Products
		if said := w.ranked[kept.WindowStart]; !reflect.DeepEqual(said, kept) {
			b.fault("analytics: the ranking from %s is %+v, the last that was said of it is %+v", kept.WindowStart.Format(time.RFC3339), kept, said)
		}
		delete(w.ranked, kept.WindowStart)
		return nil
	})
	for at := range w.ranked {
		b.fault("analytics: the ranking from %s was said and is not kept", at.Format(time.RFC3339))
	}
	for at, sales := range w.top {
		want[at] = sales.Top()
	}
	compareWindows(b, found, want, "the orders give")
	return err
}

// compareWindows names the windows that differ, are missing, or hold what never happened.
func compareWindows[K comparable, V any](b *books, found, want map[K]V, source string) {
	for at, w := range want {
		if got, there := found[at]; !there || !reflect.DeepEqual(got, w) {
			b.fault("analytics: the window %v holds %+v, %s %+v", at, got, source, w)
		}
		delete(found, at)
	}
	for at, got := range found {
		b.fault("analytics: the window %v holds %+v, %s nothing", at, got, source)
	}
}

func (e *examiner) checkMinutes(ctx context.Context, b *books) error {
	rows, err := e.pools["analytics"].Query(ctx, `select minute, orders from orders_per_minute`)
	if err != nil {
		return err
	}
	found := map[time.Time]int64{}
	var minute time.Time
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&minute, &n}, func() error { found[minute.UTC()] = n; return nil })
	compareWindows(b, found, b.windows.minutes, "the orders give")
	return err
}

// checkReceived compares how many events the operators met. Those that they have still to meet are on their way.
func (e *examiner) checkReceived(ctx context.Context, b *books) error {
	for _, operator := range []string{spendOperator, topOperator} {
		var received int64
		err := e.pools["analytics"].QueryRow(ctx, `select coalesce(sum(received), 0) from stream_watermarks where operator = $1`, operator).Scan(&received)
		if err != nil {
			return err
		}
		want := b.windows.received[operator]
		if received > want {
			b.fault("analytics: %s received %d events, there are %d", operator, received, want)
		}
		b.behind += max(0, want-received)
	}
	return nil
}
