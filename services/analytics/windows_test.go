package analytics

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feira-shop/feira/services/analytics/api"
	"github.com/feira-shop/feira/shared/events"
)

// base is a full hour of yesterday: whatever a test says of it was recorded long after it happened.
func base() time.Time { return time.Now().UTC().Truncate(time.Hour).Add(-26 * time.Hour) }

// An account's money in two windows and two currencies: shown while they are open, said when they close, and not changed
// by what comes too late.
func TestSpendOfAccountsByWindow(t *testing.T) {
	t.Parallel()
	b := newBed(t, Config{Lateness: time.Minute, Disorder: time.Minute})
	at, card := base(), cards()
	clock := at.Format("15:")
	// Ana's cards are on several partitions; what happens is not said in its order.
	b.captured(at.Add(4*time.Minute), "ana", card[0], 1000, "BRL")
	b.captured(at, "ana", card[1], 250, "BRL")
	b.refunded(at.Add(3*time.Minute+59*time.Second), "ana", card[0], 100, "BRL")
	b.captured(at.Add(5*time.Minute), "ana", card[2], 7, "BRL")
	b.captured(at.Add(time.Second), "ana", card[2], 5, "USD") // behind the one before, but its window is open
	b.captured(at.Add(time.Second), "bia", card[3], 99, "BRL")
	open := []string{
		"BRL " + clock + "00–" + clock + "05: 1250 for 2, back 100 for 1, revision 0",
		"USD " + clock + "00–" + clock + "05: 5 for 1, back 0 for 0, revision 0",
		"BRL " + clock + "05–" + clock + "10: 7 for 1, back 0 for 0, revision 0",
	}
	b.eventually("what is open is shown", func() bool { return slices.Equal(b.spendIs("ana", "ana", at), open) })

	b.pass(at.Add(7 * time.Minute)) // disorder and lateness later
	closed := []string{strings.Replace(open[0], "revision 0", "revision 1", 1), strings.Replace(open[1], "revision 0", "revision 1", 1), open[2]}
	b.eventually("the first window closes", func() bool { return slices.Equal(b.spendIs("operator", "ana", at), closed) })

	b.captured(at.Add(4*time.Minute), "ana", card[0], 1000000, "BRL")
	b.pass(at.Add(12 * time.Minute))
	closed[2] = strings.Replace(open[2], "revision 0", "revision 1", 1)
	b.eventually("the second window closes", func() bool { return slices.Equal(b.spendIs("ana", "ana", at), closed) })
	var late int
	b.must(b.db.Pool.QueryRow(t.Context(), "select count(*) from stream_late where operator = 'analytics.spend' and reason = 'late'").Scan(&late))
	if late != 1 {
		t.Errorf("%d late events, want the one", late)
	}
	b.told(at, "ana", "BRL", events.AccountSpendClosed{Payments: 2, Refunds: 1}, 1250, 100)
	b.seen(at)
}

// told holds what was published of a window to what it should be.
func (b *bed) told(start time.Time, account, currency string, want events.AccountSpendClosed, captured, refunded int64) {
	b.t.Helper()
	var data []byte
	b.must(b.db.Pool.QueryRow(b.t.Context(), "select data from events where stream = $1 and version = 1", SpendStream(account, currency, start)).Scan(&data))
	e, err := events.NewRegistry().Decode(want.EventType(), data)
	b.must(err)
	got := e.(events.AccountSpendClosed)
	if got.Account != account || got.Currency != currency || !got.WindowStart.Equal(start) || !got.WindowEnd.Equal(start.Add(5*time.Minute)) ||
		got.Payments != want.Payments || got.Refunds != want.Refunds || got.Captured.Amount != captured || got.Refunded.Amount != refunded || got.Revision != 1 {
		b.t.Errorf("it said %s", data)
	}
}

// seen checks who sees which accounts.
func (b *bed) seen(at time.Time) {
	b.t.Helper()
	query := "/v1/analytics/account-spend?from=" + at.Format(time.RFC3339) + "&to=" + at.Add(time.Hour).Format(time.RFC3339)
	if w := b.call("bia", http.MethodGet, query+"&account=ana", ""); w.Code != http.StatusNotFound {
		b.t.Errorf("another customer's account answers %d %s", w.Code, w.Body)
	}
	for _, s := range read[api.SpendPage](b, "bia", query).Data {
		if s.Account != "bia" {
			b.t.Errorf("bia sees %+v", s)
		}
	}
	// Page by page an operator sees every window once, in order.
	var all []string
	for after := ""; ; {
		page := read[api.SpendPage](b, "operator", query+"&limit=2"+after)
		for _, s := range page.Data {
			all = append(all, s.WindowStart.Format(time.RFC3339)+" "+s.Account+" "+s.Currency)
		}
		if !page.HasMore {
			break
		}
		after = "&after=" + page.NextCursor
	}
	if !slices.IsSorted(all) || len(slices.Compact(slices.Clone(all))) != len(all) || len(all) < 6 {
		b.t.Errorf("an operator sees %v", all)
	}
}

// What sold most in the hour: a ranking every five minutes, the one that is due shown while it is open.
func TestTopProductsOfASlidingHour(t *testing.T) {
	t.Parallel()
	b := newBed(t, Config{Lateness: time.Minute, Disorder: time.Minute})
	at := base()
	sold := func(after time.Duration, order string, lines ...events.Quantity) {
		b.say(b.orders, at.Add(after), events.OrderConfirmed{Order: order, Lines: lines})
	}
	sold(0, "o1", events.Quantity{SKU: "TEA", Quantity: 2}, events.Quantity{SKU: "MUG", Quantity: 2})
	sold(4*time.Minute, "o2", events.Quantity{SKU: "MUG", Quantity: 1}, events.Quantity{SKU: "MUG", Quantity: 1})
	sold(7*time.Minute, "o3", events.Quantity{SKU: "CAFE", Quantity: 9})
	period := "?from=" + at.Add(-2*time.Hour).Format(time.RFC3339) + "&to=" + at.Add(3*time.Hour).Format(time.RFC3339)
	rankings := func() map[string]string {
		shown := map[string]string{}
		for _, r := range read[api.TopProductsPage](b, "ana", "/v1/analytics/top-products"+period+"&limit=100").Data {
			text := fmt.Sprint("revision ", r.Revision)
			for _, p := range r.Products {
				if p.Sku != "TIME" {
					text += fmt.Sprintf(", %d %s in %d", p.Quantity, p.Sku, p.Orders)
				}
			}
			shown[r.WindowEnd.Sub(at).String()] = text
		}
		return shown
	}
	b.eventually("what is open is shown", func() bool { return rankings()["1h0m0s"] == "revision 0, 9 CAFE in 1, 4 MUG in 2, 2 TEA in 1" })
	b.pass(at.Add(62 * time.Minute))
	want := map[string]string{
		"5m0s": "revision 1, 4 MUG in 2, 2 TEA in 1", "10m0s": "revision 1, 9 CAFE in 1, 4 MUG in 2, 2 TEA in 1",
		"1h0m0s": "revision 1, 9 CAFE in 1, 4 MUG in 2, 2 TEA in 1", "1h5m0s": "revision 0, 9 CAFE in 1", "1h10m0s": "revision 0",
	}
	b.eventually("the windows of the hour close", func() bool {
		have := rankings()
		for end, text := range want {
			if have[end] != text {
				return false
			}
		}
		return true
	})
	var kept int
	b.must(b.db.Pool.QueryRow(t.Context(), "select count(*) from events where type = $1", ProductsRanked{}.EventType()).Scan(&kept))
	if kept != 12 {
		t.Errorf("%d rankings were said, want one for each window that holds anything: 12", kept)
	}
	first := read[api.TopProductsPage](b, "ana", "/v1/analytics/top-products"+period+"&limit=1")
	second := read[api.TopProductsPage](b, "ana", "/v1/analytics/top-products"+period+"&limit=1&after="+first.NextCursor)
	if !first.HasMore || !first.Data[0].WindowStart.After(second.Data[0].WindowStart) {
		t.Errorf("the pages are %+v and %+v", first, second)
	}
}

// Windows of another length do not add up with those that are there.
func TestTheLengthOfWindowsStays(t *testing.T) {
	t.Parallel()
	b := newBed(t, Config{})
	if err := sameLengths(t.Context(), b.running.Runtime, Config{}.WithDefaults()); err != nil {
		t.Errorf("the same length: %v", err)
	}
	var other *LengthError
	err := sameLengths(t.Context(), b.running.Runtime, Config{Window: 10 * time.Second}.WithDefaults())
	if !errors.As(err, &other) || other.Have == other.Asked {
		t.Errorf("another length: %v", err)
	}
}

// Two processes start on an empty database at the same moment: the second waits for the first and reads what it noted.
func TestTheLengthOfWindowsIsNotedByTwoAtOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t, Config{})
	_, err := b.db.Pool.Exec(t.Context(), "delete from window_lengths")
	b.must(err)
	tx, err := b.db.Pool.Begin(t.Context())
	b.must(err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = tx.Exec(t.Context(), "insert into window_lengths values ($1, $2)", spendName, int64(defaultWindow.Seconds()))
	b.must(err)
	second := make(chan error, 1)
	go func() { second <- sameLengths(t.Context(), b.running.Runtime, Config{}.WithDefaults()) }()
	b.eventually("the second to wait for the first", func() bool {
		var n int
		b.must(b.db.Pool.QueryRow(t.Context(), `select count(*) from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock' and query like '%insert into window_lengths%'`).Scan(&n))
		return n == 1
	})
	b.must(tx.Commit(t.Context()))
	if err := <-second; err != nil {
		t.Errorf("the second to start: %v", err)
	}
}
