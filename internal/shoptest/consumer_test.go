package shoptest_test

import (
	"context"
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/feira-shop/feira/internal/shoptest"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/pg/pgtest"
	"github.com/feira-shop/feira/shared/service"
)

// tally is a service that nobody thought of when the shop was built: it counts how often each order was placed.
var tally = service.Definition{
	Name: "tally",
	Schema: fstest.MapFS{"migrations/00001_tally.sql": {Data: []byte(`-- +goose Up
create table tally (order_id text primary key, seen int not null);
-- +goose Down
drop table tally;`)}},
	Operators: []operator.Definition{{
		Name: "tally.count", Topics: []events.Topic{events.Orders}, Start: operator.Beginning,
		Types:   []string{events.OrderPlaced{}.EventType()},
		Handler: func(*eventstore.Store) operator.Handler { return counting{} },
	}},
}

type counting struct{}

func (counting) Apply(_ context.Context, tx *eventstore.Tx, batch []operator.Record) error {
	var orders []string
	for _, r := range batch {
		if e, ok := r.Event.(events.OrderPlaced); ok {
			orders = append(orders, e.Order)
		}
	}
	tx.Later(`insert into tally (order_id, seen) select o, count(*) from unnest($1::text[]) o group by o
		on conflict (order_id) do update set seen = tally.seen + excluded.seen`, orders)
	return nil
}

// addedLater: a consumer that comes when there is history gets all of it, once, also when it is stopped and started.
func addedLater(t *testing.T, s *shoptest.Shop) {
	db := pgtest.New(t)
	if err := tally.Migrate(t.Context(), db.DSN); err != nil {
		t.Fatal(err)
	}
	history := s.Events(t, "orders")
	if len(history) < 100 {
		t.Fatalf("orders recorded only %d events so far", len(history))
	}
	counted := func() {
		t.Helper()
		shoptest.Eventually(t, "tally has counted every order", func(ctx context.Context) error {
			var placed, known, seen int
			for _, r := range s.Events(t, "orders") {
				if _, ok := r.Event.(events.OrderPlaced); ok {
					placed++
				}
			}
			err := db.Pool.QueryRow(ctx, "select count(*), coalesce(sum(seen), 0) from tally").Scan(&known, &seen)
			if err == nil && (known != placed || seen != placed) {
				err = fmt.Errorf("%d orders were placed; it knows %d and has seen %d", placed, known, seen)
			}
			return err
		})
	}
	sku, ana := s.Product(t, 1_000, 10), s.Customer(t)
	for range 2 {
		running, err := service.Start(t.Context(), tally, service.Config{DSN: db.DSN, Kafka: s.Kafka, Member: "tally", Log: s.Log.Logger()})
		if err != nil {
			t.Fatal(err)
		}
		counted()
		ana.Buy(t, sku, 1, s.Card("tok_visa"))
		counted()
		running.Stop(context.Background())
		ana.Buy(t, sku, 1, s.Card("tok_visa")) // to be counted after the next start
	}
}
