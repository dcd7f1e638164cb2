package relay

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/kafka/kafkatest"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(helperDSN) != "" {
		runHelper()
		return
	}
	pgtest.Main(m)
}

// patience bounds what tests wait for, on a loaded machine.
const patience = time.Minute

const (
	placed   = "shop.feira.order.placed.v1"
	captured = "shop.feira.payment.captured.v1" // of another topic
	private  = "shop.feira.test.private.v1"
)

// env is a store and a broker.
type env struct {
	t      testing.TB
	db     *pgtest.DB
	broker *kafka.Embedded
	topic  events.Topic
}

func newEnv(tb testing.TB, topic events.Topic) *env {
	tb.Helper()
	return &env{t: tb, db: pgtest.New(tb, eventstore.Migrations(), Migrations()), broker: kafkatest.New(tb, topic), topic: topic}
}

func (e *env) options() Options {
	return Options{DSN: e.db.DSN, Kafka: e.broker.Config("relay"), Topic: e.topic, Log: slog.New(slog.NewTextHandler(e.t.Output(), nil))}
}

// quick is a timing for tests that wait for what takes seconds otherwise.
func quick() timing {
	q := defaults
	q.poll, q.elect, q.retry, q.confirm = 20*time.Millisecond, 20*time.Millisecond, 10*time.Millisecond, 100*time.Millisecond
	return q
}

// start runs a relay until the test ends; stop ends it before.
func (e *env) start(change ...func(*Relay)) (r *Relay, stop func()) {
	e.t.Helper()
	r = New(e.options())
	r.timing = quick()
	for _, c := range change {
		c(r)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			e.t.Errorf("the relay ended with %v", err)
		}
	}
	e.t.Cleanup(stop)
	return r, stop
}

// append writes events as the store does: under its lock, so that positions are in the order of commits.
func (e *env) append(typ string, keys ...string) {
	e.t.Helper()
	if err := e.tryAppend(typ, keys...); err != nil {
		e.t.Fatal(err)
	}
}

func (e *env) tryAppend(typ string, keys ...string) error {
	tx, err := e.db.Pool.Begin(context.Background())
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(context.Background(), "select pg_advisory_xact_lock(es_lock_key())"); err != nil {
		return err
	}
	if _, err := tx.Exec(context.Background(), insertSQL, typ, keys); err != nil {
		return err
	}
	return tx.Commit(context.Background())
}

const insertSQL = `insert into events (stream, version, type, key, data, meta)
select 'order-' || gen_random_uuid(), 1, $1, k, json_build_object('key', k),
       json_build_object('id', gen_random_uuid(), 'time', '2026-01-02T03:04:05Z', 'correlation', 'c-1')
from unnest($2::text[]) with ordinality u(k, n) order by n`

// keys are n keys, a few events each.
func keys(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("key-%d", i*i%97)
	}
	return out
}

func (e *env) scan(into any, sql string, args ...any) {
	e.t.Helper()
	if err := e.db.Pool.QueryRow(context.Background(), sql, args...).Scan(into); err != nil {
		e.t.Fatalf("%s: %v", sql, err)
	}
}

func (e *env) exec(sql string, args ...any) {
	e.t.Helper()
	if _, err := e.db.Pool.Exec(context.Background(), sql, args...); err != nil {
		e.t.Fatalf("%s: %v", sql, err)
	}
}

func (e *env) cursor() (position int64) {
	e.t.Helper()
	e.scan(&position, "select coalesce(max(position), 0) from relay_cursor")
	return position
}

// drained waits until the cursor is at the last event.
func (e *env) drained() {
	e.t.Helper()
	e.until("the cursor is at the last event", func() bool {
		var last int64
		e.scan(&last, "select coalesce(max(position), 0) from events")
		return e.cursor() == last
	})
}

func (e *env) until(what string, ok func() bool) {
	e.t.Helper()
	e.within(patience, what, ok)
}

func (e *env) within(d time.Duration, what string, ok func() bool) {
	e.t.Helper()
	for deadline := time.Now().Add(d); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			e.t.Fatalf("waited %s in vain until %s", d, what)
		}
	}
}

// onProduce calls do while the n-th produce request from now on arrives.
func (e *env) onProduce(n int, do func()) {
	c := e.broker.Cluster()
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		if n--; n == 0 {
			c.DropControl()
			do()
		}
		return nil, nil, false
	})
}

// log reads a partition, with another client than the one under test.
func (e *env) log(partition int32) []events.Recorded {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	end := e.broker.Cluster().PartitionInfo(e.topic.Name, partition).HighWatermark
	client, err := kgo.NewClient(kgo.SeedBrokers(e.broker.Brokers()...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
		e.topic.Name: {partition: kgo.NewOffset().AtStart()},
	}))
	if err != nil {
		e.t.Fatal(err)
	}
	defer client.Close()
	var all []events.Recorded
	for int64(len(all)) < end {
		fetched := client.PollFetches(ctx)
		if err := fetched.Err(); err != nil {
			e.t.Fatal(err)
		}
		fetched.EachRecord(func(r *kgo.Record) {
			rec, err := events.FromHeaders(r.Key, r.Value, func(yield func(k, v []byte) bool) {
				for _, h := range r.Headers {
					if !yield([]byte(h.Key), h.Value) {
						return
					}
				}
			})
			if err != nil {
				e.t.Errorf("%s/%d offset %d: %v", e.topic.Name, partition, r.Offset, err)
			}
			all = append(all, rec)
		})
	}
	return all
}

// ends are the end offsets of the partitions.
func (e *env) ends() (sum int64) {
	for _, p := range e.broker.Cluster().PartitionInfos(e.topic.Name) {
		sum += p.HighWatermark
	}
	return sum
}

// check compares the log with the store: every event of the topic is there under its id, the first occurrences of
// each partition are in position order, and each names the one before it. It returns how many were repeated.
func (e *env) check() (repeated int) {
	e.t.Helper()
	want := map[int64]string{}
	rows, err := e.db.Pool.Query(context.Background(), "select position, meta->>'id' from events where type = $1", placed)
	if err != nil {
		e.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var position int64
		var id string
		if err := rows.Scan(&position, &id); err != nil {
			e.t.Fatal(err)
		}
		want[position] = id
	}
	for n := range e.topic.Partitions {
		last := int64(0)
		for _, r := range e.log(n) {
			switch {
			case r.Type == events.TickType:
				continue
			case r.Sequence <= last:
				repeated++
				continue
			case !e.topic.Compacted && (!r.HasPrevious || r.Previous != last):
				e.t.Errorf("partition %d: position %d names %d as the one before, it is %d", n, r.Sequence, r.Previous, last)
			case want[r.Sequence] != r.ID:
				e.t.Errorf("partition %d: position %d has id %s, in the store %q", n, r.Sequence, r.ID, want[r.Sequence])
			}
			last = r.Sequence
			delete(want, r.Sequence)
		}
	}
	if len(want) > 0 {
		e.t.Errorf("%d events are missing in the log", len(want))
	}
	return repeated
}
