package archive_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/eventstore/archive"
	"github.com/feira-shop/feira/shared/faulttest"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/kafka/kafkatest"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/pg"
	"github.com/feira-shop/feira/shared/relay"
)

const (
	longs     = 20  // streams with an event in each part
	writers   = 16  // who append at once while it is measured
	perStream = 5   // events of the other streams
	samples   = 3   // measurements of a kind at one size of the store
	perPage   = 40  // CPU-µs that a page may cost that a load finds outside of the server's memory
	perPart   = 25  // CPU-µs that a history may cost more for each part, all of which are asked for it
	ticks     = 4e4 // µs: the server's processor time comes in ticks of 10 ms, and is read at both ends
	growth    = 1.8 // times what it costs at the beginning: most of that is for what others do on the machine
)

// big is a store that grows to a size, and its broker.
type big struct {
	*testing.T
	run    *faulttest.Run
	size   int64 // of a part
	events int64 // to be reached
	pool   *pgxpool.Pool
	dsn    string
	store  *eventstore.Store
	broker *kafka.Embedded

	streams atomic.Int64 // made so far
	said    int64        // events that the relay was measured with
}

// TestFaultTenMillionEvents fills a store of ten parts. What an append, the relay and a load cost does not grow, a
// history costs little more for each part; half of it is archived beside writers, and nothing has to be vacuumed.
func TestFaultTenMillionEvents(t *testing.T) {
	run := faulttest.Begin(t, faulttest.Plan{
		Name: "ten million events", Does: "A store grows to ten full parts; half of them are archived beside writers, and one comes back. " +
			"Appends, relay and loads cost what they cost in an empty store, histories little more for each part; the table has no dead rows, every stream is whole or says that it is not.",
	})
	b := grow(t, run)
	b.fill(2) // the first streams
	begun := b.measure("begun")
	b.fill(b.events / 2)
	b.measure("half full")
	b.fill(b.events)
	full := b.measure("full")
	if n, parts := b.history("long-1"), one[int](b, "select count(distinct tableoid) from events where stream = 'long-1'"); n < 10 || parts < 8 { // at a boundary two may share one
		t.Errorf("a long stream has %d events in %d parts", n, parts)
	}
	for what, before := range begun {
		limit := before*growth + ticks/float64(b.sample())
		switch what {
		case "history":
			limit += perPart * float64(one[int](b, "select count(*) from es_parts()"))
		case "load":
			limit += perPage * b.pagesRead()
		}
		if after := full[what]; after > limit {
			t.Errorf("%s cost %.1f µs in a store that is begun and %.1f µs in a full one", what, before, after)
		}
	}
	done := b.archive()
	b.measure("archived")
	b.restore(done)
	run.Count("events", int(one[int64](b, "select last_value from events_position_seq")))
}

// grow starts a server on the disk, where ten million events have room.
func grow(t *testing.T, run *faulttest.Run) *big {
	t.Helper()
	b := &big{T: t, run: run, events: int64(run.Times(60_000, 10_000_000))}
	b.size = b.events / 10
	dir, err := os.MkdirTemp("", "eventstore-big-")
	must(t, err)
	must(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	server, err := pg.Start(t.Context(), pg.Options{Dir: dir, NoSync: true, Temporary: true})
	must(t, err)
	t.Cleanup(func() { must(t, server.Stop()) })
	must(t, server.CreateDatabase(t.Context(), "big"))
	b.dsn = server.DSN("big")
	must(t, pg.Migrate(t.Context(), b.dsn, eventstore.Migrations(), relay.Migrations(), operator.Migrations()))
	b.pool, err = pg.Open(t.Context(), b.dsn, pg.PoolOptions{Name: "big", MaxConns: 4})
	must(t, err)
	t.Cleanup(b.pool.Close)
	b.exec("drop table events_1")
	b.exec("select es_make_parts($1)", b.size)
	b.store = eventstore.New(b.pool, eventstore.Options{Service: "loyalty", PartSize: b.size})
	b.loop(b.store.Run)
	b.broker = kafkatest.New(t, events.Loyalty)
	return b
}

// loop runs something until the test ends, or stop is called.
func (b *big) loop(f func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); must(b, <-done) })
	b.Cleanup(stop)
	return stop
}

func (b *big) exec(sql string, args ...any) {
	b.Helper()
	_, err := b.pool.Exec(context.Background(), sql, args...)
	must(b, err)
}

func one[V any](b *big, sql string, args ...any) (v V) {
	b.Helper()
	must(b, b.pool.QueryRow(context.Background(), sql, args...).Scan(&v))
	return v
}

const earned = "shop.feira.points.earned.v1"

// fillSQL appends through the function of the group commit: $1 streams of $2 events each, numbered from $3 on, and, as
// the last requests, one event each of $4 long streams that are at version $5.
const fillSQL = `
with r as (
  select row_number() over (order by n)::int req, 'points-' || n stream, 0::bigint expected, $2::bigint new from generate_series($3::bigint, $3 + $1 - 1) n
  union all
  select $1::int + n, 'long-' || n, $5::bigint, $5 + 1 from generate_series(1, $4::int) n
), e as (
  select r.req, r.stream, v version, format('{"customer":"%s","order":"%s","points":%s}', r.stream, r.stream, v) data,
    format('{"id":"%s","time":"2026-01-02T03:04:05.123456Z","correlation":"%s","causation":"%s"}', gen_random_uuid(), r.stream, r.stream) meta
  from r, generate_series(r.expected + 1, r.new) v
)
select sum((s = 1)::int)::int from es_append((
  select row(rs.streams, rs.expected, rs.new, rs.shape, rs.state, rs.id, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}',
    es.req, es.stream, es.version, es.type, es.key, es.data, es.meta)::es_appends
  from (select array_agg(stream order by req) streams, array_agg(expected order by req) expected, array_agg(new order by req) new,
      array_agg(1 order by req) shape, array_agg(new::text order by req) state, array_agg(''::text order by req) id from r) rs,
    (select array_agg(req order by req, version) req, array_agg(stream order by req, version) stream, array_agg(version order by req, version) version,
      array_agg('` + earned + `'::text order by req) type, array_agg(stream order by req, version) key,
      array_agg(data order by req, version) data, array_agg(meta order by req, version) meta from e) es
), false) a, unnest(a.status) s`

// fill brings the store to so many events; each long stream gets one more in each part.
func (b *big) fill(to int64) {
	b.Helper()
	began, from := time.Now(), one[int64](b, "select last_value from events_position_seq")
	chunk := min(2000, b.size/perStream/2)
	for at := from; at < to; at = one[int64](b, "select last_value from events_position_seq") {
		lines := 0
		version := at / b.size
		if one[int64](b, "select coalesce(max(version), 0) from streams where stream = 'long-1'") <= version {
			lines = longs
		}
		first := b.streams.Add(chunk) - chunk
		if n := one[int64](b, fillSQL, chunk, perStream, first, lines, version); n != chunk+int64(lines) {
			b.Fatalf("at position %d only %d of %d requests were accepted", at, n, chunk+int64(lines))
		}
		b.exec("select es_make_parts($1)", b.size)
	}
	b.run.Found("fill", fmt.Sprintf("%.0f events/s", float64(to-from)/time.Since(began).Seconds()))
	b.exec("analyze")
}

// archive archives the first five parts while others append.
func (b *big) archive() []eventstore.Part {
	b.Helper()
	b.exec("update relay_cursor set position = (select max(position) from events)")
	before := one[int64](b, "select pg_database_size(current_database())")
	var slowest atomic.Int64
	stop := b.loop(func(ctx context.Context) error {
		for ctx.Err() == nil {
			began := time.Now()
			b.once()
			slowest.Store(max(slowest.Load(), int64(time.Since(began))))
		}
		return nil
	})
	began := time.Now()
	done, err := archive.Run(b.Context(), b.store, archive.Options{
		Service: "loyalty", DSN: b.dsn, Who: "test", Published: one[int64](b, "select position from relay_cursor"),
		Dir: b.TempDir(), Before: 5*b.size + 1, Cut: true,
	})
	took := time.Since(began)
	stop()
	must(b, err)
	var rows, bytes int64
	for _, p := range done {
		rows, bytes = rows+p.Events, bytes+p.Bytes
	}
	if len(done) != 5 || rows == 0 {
		b.Fatalf("archived %d parts with %d events", len(done), rows)
	}
	b.run.Count("parts archived", len(done))
	b.run.Found("archive of a part", fmt.Sprintf("%.1f s, %.0f bytes per event", took.Seconds()/float64(len(done)), float64(bytes)/float64(rows)))
	b.run.Found("slowest append beside it", time.Duration(slowest.Load()).Round(time.Millisecond).String())
	b.run.Found("given back by the database", fmt.Sprintf("%.0f bytes per event", float64(before-one[int64](b, "select pg_database_size(current_database())"))/float64(rows)))
	b.oracle(done)
	return done
}

// oracle compares every stream with its events and with what is archived of it, and looks for rows that are dead.
func (b *big) oracle(done []eventstore.Part) {
	b.Helper()
	conn, err := pg.Connect(b.Context(), b.dsn, "oracle", map[string]string{"statement_timeout": "0", "transaction_timeout": "0", "enable_seqscan": "on", "work_mem": "256MB"})
	must(b, err)
	defer func() { _ = conn.Close(context.Background()) }()
	var wrong, streams, dead, deleted int64
	must(b, conn.QueryRow(b.Context(), `select count(*) filter (where s.version <> coalesce(e.n, 0) + coalesce(a.version, 0) or e.first <> coalesce(a.version, 0) + 1), count(*)
		from streams s left join (select stream, count(*) n, min(version) first from events group by stream) e using (stream)
		left join archived_streams a using (stream)`).Scan(&wrong, &streams))
	if wrong > 0 {
		b.Errorf("%d of %d streams are not whole", wrong, streams)
	}
	b.run.Count("streams compared", int(streams))
	must(b, conn.QueryRow(b.Context(), `select sum(n_dead_tup), sum(n_tup_del + n_tup_upd) from pg_stat_user_tables
		where coalesce(pg_partition_root(relid), relid) = 'events'::regclass`).Scan(&dead, &deleted))
	if dead > 0 || deleted > 0 {
		b.Errorf("the table of events has %d dead rows, and %d were changed", dead, deleted)
	}
	b.run.Found("dead rows in events", fmt.Sprint(dead))
	last := int64(0)
	if len(done) > 0 {
		last = done[len(done)-1].LastPosition
	}
	var gone *eventstore.ArchivedError
	if err := b.store.Each(b.Context(), 0, func(events.Recorded) error { return errors.New("read") }); last > 0 && (!errors.As(err, &gone) || gone.Last != last) {
		b.Errorf("reading from the beginning: %v", err)
	}
}

// restore brings the last archived part back.
func (b *big) restore(done []eventstore.Part) {
	b.Helper()
	p, began := done[len(done)-1], time.Now()
	back, err := archive.Restore(b.Context(), b.dsn, p.File, "test")
	must(b, err)
	b.run.Found("bringing a part back", fmt.Sprintf("%.1f s", time.Since(began).Seconds()))
	if n := one[int64](b, "select count(*) from events where position >= $1 and position < $2", p.Low, p.High); n != p.Events || back.Events != n {
		b.Errorf("%d events came back of %d", n, p.Events)
	}
	b.oracle(done[:len(done)-1])
}
