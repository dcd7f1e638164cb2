package archive_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/eventstore/archive"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

func TestMain(m *testing.M) {
	// One ticker of the metrics library under sarama lives as long as the process.
	pgtest.Main(m, goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"))
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
	b.exec("select es_make_parts(1000)")
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

// Old parts go to files and come back as they were. Meanwhile whoever needs them is told so, and all else goes on.
func TestArchiveAndBack(t *testing.T) {
	t.Parallel()
	b := filled(t)
	before := ask[string](b, everything)
	old := b.options()
	old.Before = 2001
	old.DryRun = true
	if planned := b.run(old); len(planned) != 2 || ask[string](b, everything) != before {
		t.Fatalf("a dry run would archive %+v", planned)
	}
	old.DryRun = false
	done := b.run(old)
	if len(done) != 2 || done[0].Low != 1 || done[1].High != 2001 || done[0].Events+done[1].Events != 2000 {
		t.Fatalf("archived: %+v", done)
	}

	var gone *eventstore.ArchivedError
	if n, err := b.each(1999); !errors.As(err, &gone) || n > 0 || gone.Last != 2000 {
		t.Errorf("reading on from position 1999 gave %d events and %v", n, err)
	}
	if n, err := b.each(2000); n != 1500 || err != nil {
		t.Errorf("reading on from position 2000 gave %d events and %v", n, err)
	}
	for stream, version := range map[string]int64{"old-5": 2, "long-5": 1} {
		_, err := b.store.History(t.Context(), stream, eventstore.Until{})
		if !errors.As(err, &gone) || gone.Stream != stream || gone.Version != version {
			t.Errorf("the history of %s: %v", stream, err)
		}
		_, err = b.store.History(t.Context(), stream, eventstore.Until{Version: 1})
		if !errors.As(err, &gone) {
			t.Errorf("the history of %s up to version 1: %v", stream, err)
		}
		err = b.store.Within(t.Context(), func(ctx context.Context, tx *eventstore.Tx) error {
			if _, err := tx.Load(ctx, []string{stream}); err != nil {
				return err
			}
			_, err := tx.History(ctx, stream)
			return err
		})
		if !errors.As(err, &gone) {
			t.Errorf("the history of %s inside a transaction: %v", stream, err)
		}
	}
	for stream, n := range map[string]int{"new-1400": 1, "never": 0} {
		if history, err := b.store.History(t.Context(), stream, eventstore.Until{}); err != nil || len(history) != n {
			t.Errorf("the history of %s: %d events, %v", stream, len(history), err)
		}
	}
	if at := ask[*time.Time](b, "select es_changed_at('old-5', 2)"); at == nil {
		t.Error("nobody knows any more when old-5 changed")
	}
	b.write(2, "old-5", "long-5") // states are there, so streams go on
	if at := ask[*time.Time](b, "select es_changed_at('old-5', 3)"); at == nil || time.Since(*at) > patience {
		t.Errorf("old-5 changed at %v", at)
	}
	if n := ask[int](b, "select coalesce(sum(n_dead_tup), 0)::int from pg_stat_user_tables where relname like 'events%'"); n != 0 {
		t.Errorf("%d dead rows", n)
	}
	after := ask[string](b, "select md5(string_agg(e::text, '|' order by position)) from events e where position > 2000")

	parts, err := b.store.Parts(t.Context())
	must(t, err)
	if p := parts[0]; !p.Archived() || p.Attached || p.File != filepath.Join(b.dir, "counter-events-000000000001-000000001000.jsonl.gz") || p.Who != "ana" {
		t.Errorf("the first part is %+v", p)
	}
	if p := parts[2]; p.Archived() || !p.Attached || p.Events != 1000 || p.First == nil || p.LastPosition != 3000 {
		t.Errorf("the third part is %+v", p)
	}

	var order *archive.OrderError
	if _, err := archive.Restore(t.Context(), b.db.DSN, parts[0].File, "bia"); !errors.As(err, &order) || order.Latest != parts[1].File {
		t.Errorf("the earlier part first: %v", err)
	}
	_, err = archive.Restore(t.Context(), b.db.DSN, parts[1].File, "bia")
	must(t, err)
	if _, err := b.store.History(t.Context(), "long-5", eventstore.Until{}); !errors.As(err, &gone) || gone.Version != 1 {
		t.Errorf("the history of long-5 with the first part gone: %v", err)
	}
	if n, err := b.each(1000); n != 2502 || err != nil {
		t.Errorf("reading on from position 1000 gave %d events and %v", n, err)
	}
	_, err = archive.Restore(t.Context(), b.db.DSN, parts[0].File, "bia")
	must(t, err)
	history, err := b.store.History(t.Context(), "old-5", eventstore.Until{})
	must(t, err)
	if len(history) != 3 || !bytes.Equal(history[0].Data, []byte(odd(5))) {
		t.Errorf("the history of old-5 is %d events, the first %q", len(history), history[0].Data)
	}
	if n := ask[int](b, "select (select count(*) from archived_streams) + (select count(*) from archived_parts)"); n != 0 {
		t.Errorf("%d rows still say that something is archived", n)
	}
	if now := ask[string](b, "select md5(string_agg(e::text, '|' order by position)) from events e where position <= 3500"); now != before {
		t.Error("what came back is not what was there")
	}
	if now := ask[string](b, "select md5(string_agg(e::text, '|' order by position)) from events e where position > 2000"); now != after {
		t.Error("later events changed")
	}
	audit, err := operator.AuditOf(t.Context(), b.db.Pool, "counter.events", 10)
	must(t, err)
	if len(audit) != 4 || audit[3].Action != "archive" || audit[3].Who != "ana" || audit[0].Action != "unarchive" || audit[0].Who != "bia" {
		t.Errorf("the audit: %+v", audit)
	}
}

// What may not be archived is refused by name, and nothing is changed.
func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	b := filled(t)
	before := ask[string](b, everything)
	o := b.options()
	o.Published = 1700
	var unpublished *archive.NotPublishedError
	if done, err := archive.Run(t.Context(), b.store, o); !errors.As(err, &unpublished) || unpublished.Low != 1001 || len(done) != 1 {
		t.Errorf("an unpublished part: %+v, %v", done, err)
	}
	_, err := archive.Restore(t.Context(), b.db.DSN, filepath.Join(b.dir, "counter-events-000000000001-000000001000.jsonl.gz"), "ana")
	must(t, err)

	o = b.options()
	o.Quiet = time.Hour
	var open *archive.OpenStreamsError
	if done, err := archive.Run(t.Context(), b.store, o); !errors.As(err, &open) || open.Streams != 1000 || open.Low != 1 || len(done) != 0 {
		t.Errorf("streams that are written to: %+v, %v", done, err)
	}
	o.Quiet, o.OlderThan = time.Nanosecond, time.Hour
	if done := b.run(o); len(done) != 0 {
		t.Errorf("archived though too young: %+v", done)
	}
	o.OlderThan, o.Before = 0, 1000
	if done := b.run(o); len(done) != 0 {
		t.Errorf("archived though not wholly before position 1000: %+v", done)
	}
	if ask[string](b, everything) != before {
		t.Error("events have changed")
	}
	o.Before, o.Quiet, o.Cut, o.DryRun = 0, time.Hour, true, true
	if done := b.run(o); len(done) != 3 {
		t.Errorf("with histories cut, %d parts would be archived; the last one has nothing behind it", len(done))
	}
}

// A file that is not what it was is noticed, before it is trusted.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	b := filled(t)
	o := b.options()
	o.Before = 1001
	path := b.run(o)[0].File
	whole, err := os.ReadFile(path)
	must(t, err)
	before := ask[string](b, everything)
	for name, data := range map[string][]byte{
		"cut off": whole[:len(whole)/2], "empty": nil, "one byte": append(append([]byte{}, whole[:len(whole)-300]...), append([]byte{whole[len(whole)-300] + 1}, whole[len(whole)-299:]...)...),
		"more": append(append([]byte{}, whole...), whole...), "no archive": []byte("{}"),
	} {
		must(t, os.WriteFile(path, data, 0o600))
		var wrong *archive.FileError
		if _, err := archive.Restore(t.Context(), b.db.DSN, path, "ana"); !errors.As(err, &wrong) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if ask[string](b, everything) != before {
		t.Error("events have changed")
	}
	must(t, os.WriteFile(path, whole, 0o600))
	_, err = archive.Restore(t.Context(), b.db.DSN, path, "ana")
	must(t, err)
	var wrong *archive.FileError
	if _, err := archive.Restore(t.Context(), b.db.DSN, path, "ana"); !errors.As(err, &wrong) {
		t.Errorf("brought back twice: %v", err)
	}
	if done := b.run(o); len(done) != 1 { // the file of before is there, and is the same
		t.Errorf("archived again: %+v", done)
	}
	_, err = archive.Restore(t.Context(), b.db.DSN, path, "ana")
	must(t, err)
	b.exec("update events set key = 'other' where position = 500")
	if _, err := archive.Run(t.Context(), b.store, o); !errors.As(err, &wrong) {
		t.Errorf("another part's file is in the way: %v", err)
	}
}

// Archiving that was interrupted while it waited for a reader is finished by the next run; in between readers are told,
// and a second archiver is kept out.
func TestInterruptedArchive(t *testing.T) {
	t.Parallel()
	b := filled(t)
	o := b.options()
	o.Before = 1001
	conn, err := pgx.Connect(t.Context(), b.db.DSN)
	must(t, err)
	defer func() { _ = conn.Close(context.Background()) }()
	_, err = conn.Exec(t.Context(), "begin; select from events limit 1") // a reader of before
	must(t, err)
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := archive.Run(ctx, b.store, o)
		ended <- err
	}()
	for deadline := time.Now().Add(patience); ask[int](b, "select count(*) from es_parts() where detaching") == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it never waited for the reader")
		}
	}
	var busy *archive.BusyError
	if _, err := archive.Run(t.Context(), b.store, o); !errors.As(err, &busy) {
		t.Errorf("a second archiver: %v", err)
	}
	interrupt()
	if err := <-ended; err == nil {
		t.Fatal("it was not interrupted")
	}
	var gone *eventstore.ArchivedError
	if _, err := b.each(0); !errors.As(err, &gone) {
		t.Errorf("half archived, reading gave %v", err)
	}
	b.write(0, "meanwhile")
	_, err = conn.Exec(t.Context(), "commit")
	must(t, err)
	path := filepath.Join(b.dir, "counter-events-000000000001-000000001000.jsonl.gz")
	var unfinished *archive.UnfinishedError
	if _, err := archive.Restore(t.Context(), b.db.DSN, path, "ana"); !errors.As(err, &unfinished) {
		t.Errorf("half archived, brought back: %v", err)
	}
	if done := b.run(o); len(done) != 0 {
		t.Errorf("finishing archived %+v", done)
	}
	if ask[bool](b, "select to_regclass('events_1') is not null") {
		t.Error("the part is still there")
	}
	_, err = archive.Restore(t.Context(), b.db.DSN, path, "ana")
	must(t, err)
	if n, err := b.each(0); n != 3501 || err != nil {
		t.Errorf("reading gave %d events and %v", n, err)
	}
}
