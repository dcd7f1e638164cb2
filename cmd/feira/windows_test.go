package main_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/feira-shop/feira/api"
)

// window is how long the windows of these tests are.
const window = 10 * time.Second

// The demo is killed in the middle of a window, twice, and goes on. Once its windows have closed, the API's sums are those
// of a shop that was never killed: what the store of payments gives, cent for cent, and what a replay of the topic gives.
func TestDemoKilledInTheMiddleOfAWindowGivesTheSumsOfOneThatWasNot(t *testing.T) {
	t.Parallel()
	dir := newFolder(t)
	args := []string{"--shoppers=20", "--window=" + window.String()}
	var killed time.Time
	for kill := range 2 {
		demo := startDemo(t, dir, args...)
		analytics := demo.database(t, "analytics")
		eventually(t, "money in an open window", func() bool {
			return one[int64](t, analytics, "select count(*) from stream_partials where operator = 'analytics.spend'") > 0
		})
		middle := time.Now().Truncate(window).Add(window + window/2)
		select {
		case <-time.After(time.Until(middle)):
		case <-demo.ended:
			t.Fatal("the demo ended by itself")
		}
		killed = time.Now()
		open := one[int64](t, analytics, "select count(*) from stream_partials where operator = 'analytics.spend' and pane = $1", killed.Truncate(window).UnixMicro())
		analytics.Close()
		demo.kill()
		t.Logf("kill %d, %s after the window began; it had %d parts", kill+1, killed.Sub(killed.Truncate(window)).Round(time.Millisecond), open)
	}
	demo := startDemo(t, dir, args...)
	analytics, payments := demo.database(t, "analytics"), demo.database(t, "payments")
	closed := func() time.Time {
		return time.UnixMicro(one[int64](t, analytics, "select coalesce(max(closed_until), 0) from stream_windows where operator = 'analytics.spend'"))
	}
	eventually(t, "the window of the kill, and one more, to close", func() bool { return closed().After(killed.Add(2 * window)) })
	until := closed()
	shown, want := shownSpend(t, demo, until), paidSpend(t, analytics, payments, until)
	if len(want) < 20 || !maps.Equal(shown, want) {
		for _, key := range slices.Sorted(maps.Keys(want)) {
			if shown[key] != want[key] {
				t.Errorf("%s: the API shows %q, the payments give %q", key, shown[key], want[key])
			}
		}
		t.Errorf("%d sums are shown, the payments give %d", len(shown), len(want))
	}
	t.Logf("%d sums up to %s are equal; %d events were late", len(want), until.UTC().Format(time.TimeOnly),
		one[int64](t, analytics, "select count(*) from stream_late where operator = 'analytics.spend'"))
	for _, name := range []string{"analytics.spend", "analytics.top"} {
		replayed := demo.feira(t, "admin", "rebuild", name, "--dry-run").ok(t)
		has(t, replayed, "0 missing, 0 different", "nothing was changed")
	}
	lateEventsAreListed(t, demo, analytics)
	call(t, nil, "demo", "--listen=127.0.0.1:0", "--kafka-listen=127.0.0.1:0", "--data="+dir).fails(t, "another demo")
	if code, took := demo.stop(syscall.SIGINT); code != 0 {
		t.Errorf("exit code %d after %s", code, took)
	}
	call(t, nil, "demo", "--listen=127.0.0.1:0", "--kafka-listen=127.0.0.1:0", "--data="+dir, "--window=20s").fails(t, "10s", "--window", "--data")
}

// lateEventsAreListed looks at what the windows did not count, and at two events that were noted by hand.
func lateEventsAreListed(t *testing.T, demo *running, analytics *pgxpool.Pool) {
	t.Helper()
	late := func(operator string) result { return demo.feira(t, "admin", "late", operator) }
	has(t, late("analytics.clicks").ok(t), "nothing was late for analytics.clicks")
	before := one[int64](t, analytics, "select count(*) from stream_late where operator = 'analytics.spend'")
	exec1(t, analytics, `insert into stream_late (operator, topic, partition, "offset", reason, key, id, event_time, watermark, recorded_at, noted_at)
		values ('analytics.spend', 'payments', 1, 77, 'late', 'BRL ana', 'e1', 1711900000000000, 1711900090500000, null, now() + interval '1 hour')`)
	exec1(t, analytics, `insert into stream_late (operator, topic, partition, "offset", reason, key, id, event_time, watermark, recorded_at, noted_at)
		values ('analytics.spend', 'payments', 2, 78, 'quarantined', 'BRL bia', 'e2', 1711900000000000, 1711890000000000, 1711899700000000, now() + interval '1 hour')`)
	said := late("analytics.spend").ok(t)
	if n := strings.Count(said, "\n") - 1; int64(n) != min(50, before+2) {
		t.Errorf("%d rows are listed, want %d", n, before+2)
	}
	has(t, said, "payments/1/77", "BRL ana", "2024-03-31T15:46:40Z  1m30.5s", "payments/2/78", "quarantined", "5m0s")
	exec1(t, analytics, "delete from stream_late where id = 'e1'")
	exec1(t, analytics, "delete from stream_late where id = 'e2'")
	late("analytics").fails(t, "is no operator", "feira admin operators")
}

// shownSpend is what an operator is shown of closed windows that end up to then.
func shownSpend(t *testing.T, demo *running, until time.Time) map[string]string {
	t.Helper()
	token := demo.token(t, "--role=operator")
	sums := map[string]string{}
	query := url.Values{"limit": {"100"}, "from": {until.Add(-time.Hour).UTC().Format(time.RFC3339)}, "to": {until.UTC().Format(time.RFC3339)}}
	for {
		var page api.SpendPage
		if res := send(t, http.MethodGet, demo.env["FEIRA_URL"]+"/v1/analytics/account-spend?"+query.Encode(), token, "", nil, &page); res.StatusCode != http.StatusOK {
			t.Fatal(res.Status)
		}
		for _, s := range page.Data {
			if s.WindowEnd.After(until) {
				continue
			}
			if s.Open || s.Revision != 1 || s.WindowEnd.Sub(s.WindowStart) != window {
				t.Errorf("a window that should be closed: %+v", s)
			}
			sums[spendName(s.Account, s.Currency, s.WindowStart)] = fmt.Sprint(s.Payments, s.Captured.Amount, s.Refunds, s.Refunded.Amount)
		}
		if !page.HasMore {
			return sums
		}
		query.Set("after", page.NextCursor)
	}
}

func spendName(account, currency string, start time.Time) string {
	return start.UTC().Format(time.TimeOnly) + " " + account + " " + currency
}

// paidSpend adds up, from the store of payments, what was captured and refunded in each window that ends up to then. What
// came too late for its window counts in none.
func paidSpend(t *testing.T, analytics, payments *pgxpool.Pool, until time.Time) map[string]string {
	t.Helper()
	rows, err := analytics.Query(t.Context(), "select id from stream_late where operator = 'analytics.spend'")
	if err != nil {
		t.Fatal(err)
	}
	late, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	const sql = `
with moved as (
  select data ->> 'customer' as account, type like '%captured%' as taken, (meta ->> 'time')::timestamptz as at,
         case when type like '%captured%' then data -> 'amount' else data -> 'refunded' end as money
    from events
   where type in ('shop.feira.payment.captured.v1', 'shop.feira.payment.refunded.v1') and not (meta ->> 'id' = any ($1)))
select account, money ->> 'currency', to_timestamp(floor(extract(epoch from at) / $2) * $2) as start,
       count(*) filter (where taken), coalesce(sum((money ->> 'amount')::bigint) filter (where taken), 0)::bigint,
       count(*) filter (where not taken), coalesce(sum((money ->> 'amount')::bigint) filter (where not taken), 0)::bigint
  from moved group by 1, 2, 3 having to_timestamp(floor(extract(epoch from min(at)) / $2) * $2 + $2) <= $3`
	found, err := payments.Query(t.Context(), sql, late, window.Seconds(), until)
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	var account, currency string
	var start time.Time
	var taken, captured, back, refunded int64
	if _, err := pgx.ForEachRow(found, []any{&account, &currency, &start, &taken, &captured, &back, &refunded}, func() error {
		sums[spendName(account, currency, start)] = fmt.Sprint(taken, captured, back, refunded)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return sums
}
