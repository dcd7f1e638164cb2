package shoptest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/internal/shoptest"
	"github.com/feira-shop/feira/internal/shoptest/journeys"
)

// trace is what a settled shop holds of the orders that the oracle's test tampers with.
type trace struct {
	sku     string
	paid    api.Order // and nothing else
	refused api.Order // out of stock
	double  api.Order // a duplicate, ended by its hold
	owner   string    // of all of them
}

func leaveTrace(t *testing.T, s *shoptest.Shop) trace {
	t.Helper()
	p := journeys.DoubleClick(t, s)
	ana, sku := p.Ana, p.SKU
	tr := trace{sku: sku, owner: ana.ID}
	tr.paid = ana.AwaitMoney(t, p.First, api.FinancialStatusPaid)
	refused := ana.Buy(t, sku, 50, s.Card("tok_visa"))
	tr.refused = ana.AwaitMoney(t, refused, api.FinancialStatusVoided)
	tr.double = ana.AwaitMoney(t, p.Second, api.FinancialStatusVoided)
	ana.AwaitPoints(t, 59)
	return tr
}

// tampering changes one thing behind the shop's back.
type tampering struct {
	name     string
	database string
	table    string // whose rows are put back afterwards
	where    string // names these rows
	sql      string
	want     []string // the beginnings of all differences that must be named
}

func tamperings(tr trace) []tampering {
	order, payment := tr.paid.Id, tr.paid.Payment.Id
	of := func(column, value string) string { return fmt.Sprintf("%s = '%s'", column, value) }
	account := "loyalty-" + tr.owner
	return []tampering{
		{"a piece more on the shelf", "inventory", "stock", of("sku", tr.sku), "update stock set on_hand = on_hand + 1",
			[]string{"inventory: the shelf of " + tr.sku}},
		{"a reservation forgotten", "inventory", "stock", of("sku", tr.sku), "update stock set reserved = reserved - 1",
			[]string{"inventory: the shelf of " + tr.sku}},
		{"a shelf gone", "inventory", "stock", of("sku", tr.sku), "delete from stock",
			[]string{"inventory: the shelf of " + tr.sku}},
		{"another status of an order", "orders", "streams", of("stream", "order-"+order), `update streams set state = jsonb_set(state::jsonb, '{status}', '"cancelled"')`,
			[]string{"orders: the state of order-" + order}},
		{"another version of an order", "orders", "streams", of("stream", "order-"+order), "update streams set version = version + 1",
			[]string{"orders: stream order-" + order}},
		{"another price in the replica", "orders", "products", of("sku", tr.sku), "update products set price_amount = 1",
			[]string{"orders: product " + tr.sku}},
		{"another price in the catalogue", "catalog", "products", of("sku", tr.sku), "update products set price_amount = 1",
			[]string{"catalog: product " + tr.sku}},
		{"a product missing in the replica", "orders", "products", of("sku", tr.sku), "delete from products",
			[]string{"orders: product " + tr.sku}},
		{"another description in the catalogue", "catalog", "products", of("sku", tr.sku), "update products set description = ''",
			[]string{"catalog: product " + tr.sku}},
		{"a product that was never added", "catalog", "products", of("sku", "GHOST"), "insert into products values ('GHOST', 1, 'x', 'x', 1, 'BRL', true, now())",
			[]string{"catalog: product GHOST"}},
		{"a capture unknown to the provider", Provider, "authorizations", of("reference", payment), "update authorizations set status = 'authorized', captured = 0",
			[]string{"provider: the entries of", "provider: payment " + payment}},
		{"a refund that nobody asked for", Provider, "authorizations", of("reference", payment), "update authorizations set refunded = 1",
			[]string{"provider: the entries of", "provider: payment " + payment}},
		{"money held for a cancelled order", Provider, "authorizations", of("reference", tr.double.Payment.Id), "update authorizations set status = 'authorized'",
			[]string{"provider: the entries of", "provider: payment " + tr.double.Payment.Id}},
		{"an authorisation that nobody asked for", Provider, "authorizations", "id = 'auth_x'", `insert into authorizations
			select 'auth_x', 'x', reference, status, decline_code, card_fingerprint, card_brand, card_last_four, behaviour, amount, currency, captured, refunded, disputed, created_at
			from authorizations where ` + of("reference", payment), []string{"provider: the entries of", "provider: authorisation auth_x"}},
		{"a capture booked twice", Provider, "entries", of("id", "entry_x"), `insert into entries
			select 'entry_x', authorization_id, kind, amount, 'x', recorded_at from entries where kind = 'capture'`,
			[]string{"provider: the entries of"}},
		{"points given away", "loyalty", "streams", of("stream", account), `update streams set state = jsonb_set(state::jsonb, '{orders,` + order + `,earned}', '1000')`,
			[]string{"loyalty: the state of " + account}},
		{"points never earned", "loyalty", "events", of("stream", account), "delete from events",
			[]string{"loyalty: stream " + account, "loyalty: the account of " + tr.owner}},
		{"a state lost", "fraud", "streams", of("stream", "verdict-"+payment), "delete from streams",
			[]string{"fraud: stream verdict-" + payment}},
		{"another verdict", "fraud", "events", of("stream", "verdict-"+tr.double.Payment.Id), `update events set data = jsonb_set(data::jsonb, '{duplicate_of_payment}', '"x"')`,
			[]string{"fraud: the verdict on payment " + tr.double.Payment.Id}},
		{"no verdict", "fraud", "events", of("stream", "verdict-"+payment), "delete from events",
			[]string{"fraud: payment " + payment, "fraud: stream verdict-" + payment, "orders: order " + order + " notes shop.feira.order.fraud_cleared.v1"}},
		{"a reservation undone without a word", "inventory", "events", of("stream", "reservation-"+order), "delete from events",
			[]string{"inventory: stream reservation-" + order, "inventory: the shelf of " + tr.sku, "orders: order " + order + " notes shop.feira.order.stock_reserved.v1"}},
		{"a capture that payments never told", "payments", "events", of("stream", "payment-"+order) + " and type like '%payment.captured.v1'", "delete from events",
			[]string{"analytics: analytics.spend received", "analytics: the window", "loyalty: the account of " + tr.owner, "orders: order " + order + " notes shop.feira.order.paid.v1", "payments: stream payment-" + order}},
		{"another total", "orders", "events", of("stream", "order-"+order) + " and version = 1", `update events set data = jsonb_set(data::jsonb, '{total,amount}', '1')`,
			[]string{"orders: order " + order + " does not add up", "orders: the state of order-" + order, "payments: order " + order + " is paid with"}},
		{"a cent more in a window", "analytics", "account_spend", of("account", tr.owner), "update account_spend set captured = captured + 1",
			[]string{"analytics: the window", "analytics: the window"}},
		{"a window of money gone", "analytics", "account_spend", of("account", tr.owner), "delete from account_spend",
			[]string{"analytics: the window", "analytics: the window"}},
		{"a window that never was", "analytics", "account_spend", of("account", "ghost"), "insert into account_spend values ('ghost', 'BRL', now(), now(), 1, 1, 0, 0, 1)",
			[]string{"analytics: the window", "analytics: the window"}},
		{"another ranking", "analytics", "top_products", "window_start = (select min(window_start) from top_products)", `update top_products set products = '[]'`,
			[]string{"analytics: the ranking", "analytics: the window"}},
		{"an order more in a minute", "analytics", "orders_per_minute", "minute = (select min(minute) from orders_per_minute)", "update orders_per_minute set orders = orders + 1",
			[]string{"analytics: the window"}},
		{"a click that nobody made", "analytics", "clicks_per_minute", of("action", "ghost"), "insert into clicks_per_minute values ('ghost', now(), 1)",
			[]string{"analytics: the window"}},
		{"an event left out as late that came in time", "analytics", "stream_late", of("id", "ghost"), `insert into stream_late
			select operator, topic, partition, 999999, 'late', 'ghost', 'ghost', 1000000000000000, 0, 0 from stream_watermarks where operator = 'analytics.spend' limit 1`,
			[]string{"analytics: analytics.spend has event ghost as late"}},
		{"an event that nobody knows", "orders", "events", of("stream", "order-"+order) + " and version = 1", `update events set type = 'shop.feira.order.eaten.v1'`,
			[]string{"analytics: the window", "orders: the event at position", "orders: the state of order-" + order, "orders: order " + order + " is known to others and was never placed"}},
	}
}

// Provider is short for the name of the provider's database.
const Provider = shoptest.Provider

// TestOracle changes one thing after the other in a settled shop: the oracle names exactly what follows from it, and
// nothing when it is as it was.
func TestOracle(t *testing.T) {
	t.Parallel()
	s := shoptest.Start(t, shoptest.Options{Hold: hold})
	tr := leaveTrace(t, s)
	shoptest.Eventually(t, "what the owner paid is closed", func(ctx context.Context) error {
		var closed, open int
		err := s.Pool("analytics").QueryRow(ctx, `select count(*) filter (where account = $1),
			(select count(*) from stream_partials where operator = 'analytics.spend') from account_spend`, tr.owner).Scan(&closed, &open)
		if closed == 0 || open > 0 {
			return fmt.Errorf("%d closed, parts of %d open, %w", closed, open, err)
		}
		return err
	})
	if found := examined(t, s, time.Minute, 100); len(found) > 0 {
		t.Fatalf("untouched: %q", found)
	}
	for _, c := range tamperings(tr) {
		t.Run(c.name, func(t *testing.T) {
			restore := tamper(t, s, c)
			found := examined(t, s, 0, 2)
			restore()
			left := slices.Clone(found)
			for _, want := range c.want {
				i := slices.IndexFunc(left, func(f string) bool { return strings.HasPrefix(f, want) })
				if i < 0 {
					t.Errorf("%q is not named", want)
					continue
				}
				left = slices.Delete(left, i, i+1)
			}
			if len(left) > 0 || t.Failed() {
				t.Errorf("named:\n%s", strings.Join(found, "\n"))
			}
		})
	}
}

func examined(t *testing.T, s *shoptest.Shop, settle time.Duration, passes int) []string {
	t.Helper()
	report, err := s.Examine(t.Context(), settle, passes)
	if err != nil {
		t.Fatal(err)
	}
	return report.Differences
}

// keys are the primary keys of the tables that are tampered with.
var keys = map[string]string{
	"account_spend": "account, window_start, currency", "top_products": "window_start", "orders_per_minute": "minute",
	"clicks_per_minute": "minute, action", "stream_late": `operator, topic, partition, "offset"`, "stock": "sku", "products": "sku", "streams": "stream", "events": "position", "authorizations": "id", "entries": "id",
}

// tamper runs the statement on the named rows only, and returns how to put them back as they were.
func tamper(t *testing.T, s *shoptest.Shop, c tampering) (restore func()) {
	t.Helper()
	pool, key := s.Pool(c.database), keys[c.table]
	const columnsSQL = `select string_agg(quote_ident(column_name), ', '), string_agg(format('%1$I = excluded.%1$I', column_name), ', ') filter (where column_name <> $2)
		from information_schema.columns where table_schema = 'public' and table_name = $1 and is_generated = 'NEVER'`
	var columns, changes, rows string
	if err := pool.QueryRow(t.Context(), columnsSQL, c.table, key).Scan(&columns, &changes); err != nil {
		t.Fatal(err)
	}
	save := fmt.Sprintf("select coalesce(json_agg(row_to_json(t)), '[]')::text from %s t where %s", c.table, c.where)
	if err := pool.QueryRow(t.Context(), save).Scan(&rows); err != nil {
		t.Fatal(err)
	}
	sql := c.sql
	if !strings.HasPrefix(sql, "insert") {
		sql += " where " + c.where
	}
	if tag, err := pool.Exec(t.Context(), sql); err != nil || tag.RowsAffected() == 0 {
		t.Fatalf("%d rows changed, %v", tag.RowsAffected(), err)
	}
	return func() {
		t.Helper()
		saved := fmt.Sprintf("json_populate_recordset(null::%s, $1::json)", c.table)
		added := fmt.Sprintf("delete from %s where %s and (%s) not in (select %s from %s)", c.table, c.where, key, key, saved)
		back := fmt.Sprintf("insert into %s (%s) overriding system value select %s from %s on conflict (%s) do update set %s",
			c.table, columns, columns, saved, key, changes)
		for _, sql := range []string{added, back} {
			if _, err := pool.Exec(t.Context(), sql, rows); err != nil {
				t.Fatalf("put back what was changed: %v", err)
			}
		}
	}
}
