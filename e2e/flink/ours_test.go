//go:build e2e

package flink

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/feira-shop/feira/services/analytics"
	"github.com/feira-shop/feira/services/fraud"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/pg"
	"github.com/feira-shop/feira/shared/pg/pgtest"
	"github.com/feira-shop/feira/shared/relay"
	"github.com/feira-shop/feira/shared/service"
)

// ours are the shop's services, on a Postgres that writes to disk as one in production does.
type ours struct {
	kafka  string
	server *pg.Server
	until  map[int32]int64 // end of topic payments
}

func newOurs(t *testing.T, address string) *ours {
	t.Helper()
	dir, err := os.MkdirTemp("", "feira-flink-")
	if err == nil {
		err = os.Chmod(dir, 0o755) // Postgres, which refuses root, must be able to enter
	}
	if err != nil {
		t.Fatal(err)
	}
	server, err := pg.Start(t.Context(), pg.Options{Dir: filepath.Join(dir, "postgres"), Temporary: true, Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
		_ = os.RemoveAll(dir)
	})
	o := &ours{kafka: address, server: server}
	if o.until, err = ends(t.Context(), address, events.Payments.Name, true); err != nil {
		t.Fatal(err)
	}
	return o
}

// analytics counts spend and nothing else.
func (o *ours) analytics(t *testing.T, a answer) cost {
	t.Helper()
	d := analytics.Service(analytics.Config{Window: window, Disorder: disorder})
	d.Operators = slices.DeleteFunc(d.Operators, func(def operator.Definition) bool { return def.Name != "analytics.spend" })
	closed := begins.Add(span + time.Hour).UnixMicro()
	return o.run(t, d, "analytics.spend", events.AccountSpendClosed{},
		fmt.Sprintf("select exists (select from stream_windows where operator = 'analytics.spend' and closed_until >= %d)", closed),
		func(data []byte) error {
			var e events.AccountSpendClosed
			if err := json.Unmarshal(data, &e); err != nil {
				return err
			}
			if e.Revision != 1 || e.Captured.Currency != e.Currency || e.Refunded.Currency != e.Currency {
				return fmt.Errorf("not said once and for all, or in another currency: %s", data)
			}
			return a.window(spendRow{e.Account, e.Currency, e.WindowStart, e.WindowEnd, e.Payments, e.Captured.Amount, e.Refunds, e.Refunded.Amount})
		})
}

// fraud judges cards by all of its rules; here the one counts that Flink has.
func (o *ours) fraud(t *testing.T, a answer) cost {
	t.Helper()
	return o.run(t, fraud.Service(fraud.Config{Disorder: disorder}), "fraud.cards", events.PurchaseHeld{}, "select true", func(data []byte) error {
		var e events.PurchaseHeld
		if err := json.Unmarshal(data, &e); err != nil || e.DuplicateOfPayment == "" {
			return err
		}
		return a.duplicate(e.Payment, e.DuplicateOfPayment)
	})
}

// patience bounds a service's run over the history; it is no measure of speed.
const patience = 20 * time.Minute

// run starts a service, with its relay, on a database of its own, and stops it when the operator has read the topic, done
// is true and everything is published. each is called with the data of every event of the kind.
func (o *ours) run(t *testing.T, d service.Definition, name string, kind events.Event, done string, each func([]byte) error) cost {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := o.server.CreateDatabase(ctx, d.Name); err != nil {
		t.Fatal(err)
	}
	dsn := o.server.DSN(d.Name)
	if err := d.Migrate(ctx, dsn); err != nil {
		t.Fatal(err)
	}
	pool, err := pg.Open(ctx, dsn, pg.PoolOptions{Name: "flink-test"})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	began := time.Now()
	own, server := pgtest.CPU(t, pool)
	running, err := service.Start(ctx, d, service.Config{DSN: dsn, Kafka: kafka.Config{Brokers: []string{o.kafka}}, Member: "flink-test"})
	if err != nil {
		t.Fatal(err)
	}
	for finished := false; !finished; {
		select {
		case <-ctx.Done():
			t.Fatalf("%s is not done after %s", d.Name, patience)
		case <-time.After(200 * time.Millisecond):
		}
		if finished, err = o.finished(ctx, pool, d, name, done); err != nil {
			t.Fatal(err)
		}
	}
	running.Stop(ctx)
	wall := time.Since(began)
	ownAfter, serverAfter := pgtest.CPU(t, pool)
	rows, err := pool.Query(ctx, "select data from events where type = $1", kind.EventType())
	if err != nil {
		t.Fatal(err)
	}
	var data []byte
	if _, err := pgx.ForEachRow(rows, []any{&data}, func() error { return each(data) }); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %.1f CPU-s, and %.1f of Postgres", d.Name, (ownAfter - own).Seconds(), (serverAfter - server).Seconds())
	return cost{ownAfter - own + serverAfter - server, wall}
}

// finished tells whether there is nothing left to do.
func (o *ours) finished(ctx context.Context, pool *pgxpool.Pool, d service.Definition, name, done string) (bool, error) {
	for partition, end := range o.until {
		var next int64
		err := pool.QueryRow(ctx, "select coalesce((select next_offset from checkpoints where operator = $1 and topic = $2 and partition = $3), -1)",
			name, events.Payments.Name, partition).Scan(&next)
		if err != nil || next < end {
			return false, err
		}
	}
	var yes bool
	if err := pool.QueryRow(ctx, done).Scan(&yes); err != nil || !yes {
		return false, err
	}
	published, err := relay.StatusOf(ctx, pool, d.Publishes)
	return published.Waiting == 0, err
}
