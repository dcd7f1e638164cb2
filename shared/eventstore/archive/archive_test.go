package archive_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/eventstore/archive"
	"github.com/feira-shop/feira/shared/operator"
)

// Old parts go to files and come back as they were. Meanwhile whoever needs them is told so, and all else goes on.
func TestArchiveAndBack(t *testing.T) {
	t.Parallel()
	b := filled(t)
	before := ask[string](b, everything)
	old := b.options()
	old.Before, old.DryRun = 2001, true
	if planned := b.run(old); len(planned) != 2 || ask[string](b, everything) != before {
		t.Fatalf("a dry run would archive %+v", planned)
	}
	old.DryRun = false
	done := b.run(old)
	if len(done) != 2 || done[0].Low != 1 || done[1].High != 2001 || done[0].Events+done[1].Events != 2000 {
		t.Fatalf("archived: %+v", done)
	}
	b.whatIsGoneIsNamed()
	b.theRestGoesOn()
	b.partsTell()
	later := ask[string](b, laterThan+"2000")
	b.comesBack(done)
	if now := ask[string](b, "select md5(string_agg(e::text, '|' order by position)) from events e where position <= 3500"); now != before {
		t.Error("what came back is not what was there")
	}
	if ask[string](b, laterThan+"2000") != later {
		t.Error("later events changed")
	}
	audit, err := operator.AuditOf(t.Context(), b.db.Pool, "counter.events", 10)
	must(t, err)
	if len(audit) != 4 || audit[3].Action != "archive" || audit[3].Who != "ana" || audit[0].Action != "unarchive" || audit[0].Who != "bia" {
		t.Errorf("the audit: %+v", audit)
	}
}

// laterThan is a digest of the rows after a position.
const laterThan = "select md5(string_agg(e::text, '|' order by position)) from events e where position > "

func (b *bed) whatIsGoneIsNamed() {
	b.Helper()
	var gone *eventstore.ArchivedError
	if n, err := b.each(1999); !errors.As(err, &gone) || n > 0 || gone.Last != 2000 {
		b.Errorf("reading on from position 1999 gave %d events and %v", n, err)
	}
	err := b.store.EventsOf(b.Context(), 1999, []string{"any"}, func(events.Recorded) error { return nil })
	if !errors.As(err, &gone) || gone.After != 1999 {
		b.Errorf("reading on by type from position 1999: %v", err)
	}
	for stream, version := range map[string]int64{"old-5": 2, "long-5": 1} {
		_, err := b.store.History(b.Context(), stream, eventstore.Until{})
		if !errors.As(err, &gone) || gone.Stream != stream || gone.Version != version {
			b.Errorf("the history of %s: %v", stream, err)
		}
		if _, err = b.store.History(b.Context(), stream, eventstore.Until{Version: 1}); !errors.As(err, &gone) {
			b.Errorf("the history of %s up to version 1: %v", stream, err)
		}
		err = b.store.Within(b.Context(), func(ctx context.Context, tx *eventstore.Tx) error {
			_, err := tx.Load(ctx, []string{stream})
			if err == nil {
				_, err = tx.History(ctx, stream)
			}
			return err
		})
		if !errors.As(err, &gone) {
			b.Errorf("the history of %s inside a transaction: %v", stream, err)
		}
	}
}

func (b *bed) theRestGoesOn() {
	b.Helper()
	if n, err := b.each(2000); n != 1500 || err != nil {
		b.Errorf("reading on from position 2000 gave %d events and %v", n, err)
	}
	for stream, n := range map[string]int{"new-1400": 1, "never": 0} {
		if history, err := b.store.History(b.Context(), stream, eventstore.Until{}); err != nil || len(history) != n {
			b.Errorf("the history of %s: %d events, %v", stream, len(history), err)
		}
	}
	if at := ask[*time.Time](b, "select es_changed_at('old-5', 2)"); at == nil {
		b.Error("nobody knows any more when old-5 changed")
	}
	b.write(2, "old-5", "long-5") // states are there, so streams go on
	if at := ask[*time.Time](b, "select es_changed_at('old-5', 3)"); at == nil || time.Since(*at) > patience {
		b.Errorf("old-5 changed at %v", at)
	}
	if n := ask[int](b, "select coalesce(sum(n_dead_tup), 0)::int from pg_stat_user_tables where relname like 'events%'"); n != 0 {
		b.Errorf("%d dead rows", n)
	}
}

func (b *bed) partsTell() {
	b.Helper()
	parts, err := b.store.Parts(b.Context())
	must(b, err)
	if p := parts[0]; !p.Archived() || p.Attached || p.File != filepath.Join(b.dir, "counter-events-000000000001-000000001000.jsonl.gz") || p.Who != "ana" {
		b.Errorf("the first part is %+v", p)
	}
	if p := parts[2]; p.Archived() || !p.Attached || p.Events != 1000 || p.First == nil || p.LastPosition != 3000 {
		b.Errorf("the third part is %+v", p)
	}
}

// comesBack brings two parts back, the latest first.
func (b *bed) comesBack(parts []eventstore.Part) {
	b.Helper()
	var order *archive.OrderError
	if _, err := archive.Restore(b.Context(), b.db.DSN, parts[0].File, "bia"); !errors.As(err, &order) || order.Latest != parts[1].File {
		b.Errorf("the earlier part first: %v", err)
	}
	_, err := archive.Restore(b.Context(), b.db.DSN, parts[1].File, "bia")
	must(b, err)
	var gone *eventstore.ArchivedError
	if _, err := b.store.History(b.Context(), "long-5", eventstore.Until{}); !errors.As(err, &gone) || gone.Version != 1 {
		b.Errorf("the history of long-5 with the first part gone: %v", err)
	}
	if n, err := b.each(1000); n != 2502 || err != nil {
		b.Errorf("reading on from position 1000 gave %d events and %v", n, err)
	}
	_, err = archive.Restore(b.Context(), b.db.DSN, parts[0].File, "bia")
	must(b, err)
	history, err := b.store.History(b.Context(), "old-5", eventstore.Until{})
	must(b, err)
	if len(history) != 3 || !bytes.Equal(history[0].Data, []byte(odd(5))) {
		b.Errorf("the history of old-5 is %d events, the first %q", len(history), history[0].Data)
	}
	if n := ask[int](b, "select (select count(*) from archived_streams) + (select count(*) from archived_parts)"); n != 0 {
		b.Errorf("%d rows still say that something is archived", n)
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
