package relay

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

func ticking() events.Topic {
	topic := events.Orders
	topic.Ticks = true
	return topic
}

func quickTicks(r *Relay) {
	r.timing.firstTick, r.timing.nextTick = 200*time.Millisecond, 100*time.Millisecond
}

func (e *env) ticks(partition int32) (ticks []events.Recorded) {
	for _, r := range e.log(partition) {
		if r.Type == events.TickType {
			ticks = append(ticks, r)
		}
	}
	return ticks
}

func TestIdlePartitionsGetTicks(t *testing.T) {
	t.Parallel()
	e := newEnv(t, ticking())
	e.append(placed, "some key")
	r, stop := e.start(quickTicks)
	e.until("each partition has ticks", func() bool { return value(r.metrics.ticks) >= 18 })
	stop()
	e.check()
	for n := range e.topic.Partitions {
		ticks := e.ticks(n)
		if len(ticks) < 2 {
			t.Errorf("partition %d has %d ticks", n, len(ticks))
			continue
		}
		for i, tick := range ticks {
			if tick.Source != "/feira/orders" || string(tick.Data) != "{}" || tick.Sequence != 0 || tick.HasPrevious || tick.Key != "" || tick.ID == "" {
				t.Errorf("got %+v", tick)
			}
			if i > 0 && !tick.Time.After(ticks[i-1].Time) {
				t.Errorf("partition %d: tick at %s after one at %s", n, tick.Time, ticks[i-1].Time)
			}
		}
	}

	// A restart compares nothing: the ticks were noted.
	ends := map[int32]int64{}
	rows, err := e.db.Pool.Query(t.Context(), "select partition, next_offset from relay_partitions")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var n int32
		var next int64
		if err := rows.Scan(&n, &next); err != nil {
			t.Fatal(err)
		}
		ends[n] = next
	}
	for n := range e.topic.Partitions {
		if want := e.broker.Cluster().PartitionInfo(e.topic.Name, n).HighWatermark; ends[n] != want {
			t.Errorf("partition %d ends at %d, noted %d", n, want, ends[n])
		}
	}
}

func TestTopicsWithoutTicksGetNone(t *testing.T) {
	t.Parallel()
	e := newEnv(t, events.Inventory)
	r, _ := e.start(quickTicks)
	e.until("it goes round", func() bool { return value(r.metrics.rounds) > 20 })
	if e.ends() != 0 {
		t.Errorf("%d records in an idle topic", e.ends())
	}
}

// relay_now waits for the lock that the store names, not for a copy of its key.
func TestTicksTakeTheStoresOwnLock(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations(), Migrations())
	if _, err := db.Pool.Exec(t.Context(), "create or replace function es_lock_key() returns bigint language sql immutable as 'select 42::bigint'"); err != nil {
		t.Fatal(err)
	}
	holder, err := db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback(context.Background()) }()
	if _, err := holder.Exec(t.Context(), "select pg_advisory_xact_lock(42)"); err != nil {
		t.Fatal(err)
	}
	_, err = db.Pool.Exec(t.Context(), "set lock_timeout = '100ms'; select relay_now()")
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "55P03" { // lock_not_available
		t.Errorf("relay_now did not wait: %v", err)
	}
}

// An event that is stamped and not committed is older than the moment of the read that does not see it. No tick may
// pass it.
func TestNoTickPassesAnUncommittedEvent(t *testing.T) {
	t.Parallel()
	e := newEnv(t, ticking())
	r, _ := e.start(quickTicks)
	for range 5 {
		tx, err := e.db.Pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), "select pg_advisory_xact_lock(es_lock_key())"); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), insertSQL, placed, []string{"k"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(400 * time.Millisecond) // longer than the silence after which a tick is due
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		e.drained()
	}
	ticks := value(r.metrics.ticks)
	e.until("there were ticks", func() bool { return value(r.metrics.ticks) > ticks })
	for n := range e.topic.Partitions {
		var upTo time.Time
		for _, rec := range e.log(n) {
			if rec.Type == events.TickType {
				upTo = rec.Time
			} else if rec.RecordedAt.Before(upTo) {
				t.Errorf("partition %d: a tick said %s, then comes an event recorded at %s", n, upTo, rec.RecordedAt)
			}
		}
	}
}

// A relay that was down must not make its backlog late: ticks keep behind what is not sent.
func TestTicksKeepBehindTheBacklog(t *testing.T) {
	t.Parallel()
	e := newEnv(t, ticking())
	many := make([]string, 4*maxEvents)
	for i := range many {
		many[i] = "busy"
	}
	e.append(placed, many...)
	e.append(placed, keys(maxEvents)...) // partitions that were idle before
	e.exec("update events set recorded_at = recorded_at - interval '1 hour' + position * interval '10 milliseconds'")
	l := e.elect()
	defer func() { _ = l.close(context.Background()) }()
	quickTicks(l.relay)
	for more := true; more; {
		for i := range l.partitions { // all are silent at each round
			l.partitions[i].record, l.partitions[i].tick = time.Time{}, time.Time{}
		}
		var err error
		if more, err = l.round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	e.check()
	if value(l.relay.metrics.ticks) == 0 {
		t.Error("there were no ticks")
	}
	for n := range e.topic.Partitions {
		var upTo time.Time
		for _, rec := range e.log(n) {
			if rec.Type == events.TickType {
				upTo = rec.Time
			} else if rec.RecordedAt.Before(upTo) {
				t.Fatalf("partition %d: a tick said %s, then comes an event recorded at %s", n, upTo, rec.RecordedAt)
			}
		}
	}
}
