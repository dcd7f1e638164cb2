package archive_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/eventstore/archive"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

func TestMain(m *testing.M) {
	pgtest.Main(m)
}

// patience bounds what a test waits for, on a loaded machine.
const patience = time.Minute

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// bed is a store with parts of 1,000 positions and a folder for archives.
type bed struct {
	*testing.T
	db    *pgtest.DB
	store *eventstore.Store
	dir   string
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{T: t, db: pgtest.New(t, eventstore.Migrations(), operator.Migrations()), dir: t.TempDir()}
	b.exec("drop table events_1")
	for reach := range 5 { // one by one: a part that is made when it is wanted already is larger
		b.exec("select es_make_parts(1000, $1)", reach*1000)
	}
	b.store = eventstore.New(b.db.Pool, eventstore.Options{Service: "counter", PartSize: 1000, Registry: events.NewRegistry()})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.store.Run(ctx) }()
	t.Cleanup(func() { cancel(); must(t, <-done) })
	return b
}

func (b *bed) exec(sql string, args ...any) {
	b.Helper()
	_, err := b.db.Pool.Exec(b.Context(), sql, args...)
	must(b, err)
}

func ask[V any](b *bed, sql string, args ...any) V {
	b.Helper()
	rows, err := b.db.Pool.Query(b.Context(), sql, args...)
	must(b, err)
	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[V])
	must(b, err)
	return v
}

// odd is JSON whose bytes nobody would write again as they are.
func odd(n int) string {
	return fmt.Sprintf("{ \"n\": %d.0,\t\"n\":%d, \"text\": \"<&>\\u00e9é😀\\n\" }\n", n, n)
}

// write appends one event each to streams, at the given version.
func (b *bed) write(version int64, streams ...string) {
	b.Helper()
	var all sync.WaitGroup
	for i, stream := range streams {
		all.Go(func() {
			meta, err := json.Marshal(events.Meta{ID: uuid.NewString(), Time: time.Now().UTC()})
			must(b, err)
			_, err = b.store.Append(context.Background(), eventstore.Append{
				Stream: stream, Expected: version, Shape: 1, State: []byte("1"),
				Events: []eventstore.Event{{ID: uuid.NewString(), Type: "shop.feira.test.counted.v1", Key: "k", Data: []byte(odd(i)), Meta: meta}},
			})
			if err != nil {
				b.Error(err)
			}
		})
	}
	all.Wait()
}

func streams(kind string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", kind, i)
	}
	return names
}

// filled is a bed with 3,500 events: the streams "old" end in the first two parts, "long" goes on to the last.
func filled(t *testing.T) *bed {
	t.Helper()
	b := newBed(t)
	b.write(0, streams("long", 10)...)
	b.write(0, streams("old", 990)...)
	b.write(1, streams("old", 990)...)
	b.write(0, streams("new", 1500)...)
	b.write(1, streams("long", 10)...)
	return b
}

func (b *bed) options() archive.Options {
	return archive.Options{Service: "counter", DSN: b.db.DSN, Who: "ana", Published: math.MaxInt64, Dir: b.dir, Quiet: time.Nanosecond}
}

func (b *bed) run(o archive.Options) []eventstore.Part {
	b.Helper()
	done, err := archive.Run(b.Context(), b.store, o)
	must(b, err)
	return done
}

// everything is a digest of all rows that can be read.
const everything = "select md5(string_agg(e::text, '|' order by position)) from events e"

func (b *bed) each(after int64) (n int, err error) {
	err = b.store.Each(b.Context(), after, func(events.Recorded) error { n++; return nil })
	return n, err
}
