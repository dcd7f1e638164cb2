package eventstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/pg"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

// shape describes the table of events and all that hangs on it, but not how many parts there are.
const shape = `
select string_agg(line, e'\n' order by line) from (
  select format('%s.%s %s %s %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity) line
  from pg_attribute a join pg_class c on c.oid = a.attrelid where c.relname in ('events', 'events_1') and a.attnum > 0
  union all
  select format('%s: default of column %s: %s', adrelid::regclass, adnum, pg_get_expr(adbin, adrelid)) from pg_attrdef
  where adrelid in ('events'::regclass, 'events_1'::regclass)
  union all
  select format('%s: %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) from pg_constraint
  where conrelid in ('events'::regclass, 'events_1'::regclass) and contype <> 'n'
  union all
  select format('%s: %s, child of %s', indrelid::regclass, indexrelid::regclass,
    (select inhparent::regclass from pg_inherits where inhrelid = indexrelid))
  from pg_index where indrelid in ('events'::regclass, 'events_1'::regclass)
  union all
  select format('sequence cache %s, start at %s', seqcache, seqstart) from pg_sequence where seqrelid = 'events_position_seq'::regclass
) l`

// before is the store as it was before it had parts.
func before(t *testing.T) pg.Set {
	t.Helper()
	set := eventstore.Migrations()
	file, err := set.FS.Open("00001_store.sql")
	must(t, err)
	defer file.Close()
	info, err := file.Stat()
	must(t, err)
	text := make([]byte, info.Size())
	_, err = file.Read(text)
	must(t, err)
	return pg.Set{Name: set.Name, FS: fstest.MapFS{"00001_store.sql": {Data: text}}}
}

// A plain table becomes the first part while appends go on: its rows stay where they are, the positions go on, and it
// ends in the same shape as a fresh one.
func TestAPlainTableBecomesTheFirstPart(t *testing.T) {
	t.Parallel()
	db, fresh := pgtest.New(t, before(t)), pgtest.New(t, eventstore.Migrations())
	exec(t, db.Pool, "select setval('events_position_seq', 500000)")
	pool := open(t, db.DSN, 4)
	s := start(t, pool) // the process of before it was migrated, which this one is but for its warnings
	const streams = 8
	stop := make(chan struct{})
	var writing sync.WaitGroup
	begun := make(chan struct{}, streams)
	written := make([]int64, streams)
	for i := range streams {
		writing.Go(func() {
			for {
				if _, err := s.Append(context.Background(), counted(t, fmt.Sprintf("counter-%d", i), written[i])); err != nil {
					t.Error(err)
					return
				}
				if written[i]++; written[i] == 20 {
					begun <- struct{}{}
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for range streams {
		<-begun
	}
	file := one[int64](t, db.Pool, "select pg_relation_filenode('events')::bigint")
	// As an attempt leaves it that was interrupted.
	exec(t, db.Pool, "alter table events add constraint events_first_part check (position >= 1 and position < 700000) not valid")
	must(t, pg.Migrate(t.Context(), db.DSN, eventstore.Migrations()))
	at := one[int64](t, db.Pool, "select max(position) from events")
	until(t, "appends go on behind it", func() bool {
		return one[int64](t, db.Pool, "select max(position) from events") > at+100
	})
	close(stop)
	writing.Wait()
	if after := one[int64](t, db.Pool, "select pg_relation_filenode('events_1')::bigint"); after != file {
		t.Errorf("the rows were written anew: the file was %d and is %d", file, after)
	}
	if low := one[string](t, db.Pool, "select low || ' ' || high from es_parts() limit 1"); low != "1 2000001" {
		t.Errorf("the first part is %s", low)
	}
	for i, n := range written {
		stored := one[int64](t, db.Pool, "select count(*) from events where stream = $1", fmt.Sprintf("counter-%d", i))
		if stored != n || n < 20 {
			t.Errorf("counter-%d has %d events, %d were written", i, stored, n)
		}
	}
	if was, is := one[string](t, fresh.Pool, shape), one[string](t, db.Pool, shape); was != is {
		t.Errorf("a fresh store:\n%s\nthis one:\n%s", was, is)
	}
}

// Without a part for its position an append waits, by whichever way it comes; nothing is lost, refused or doubled.
func TestAppendsWaitForAPart(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	smallParts(t, db.Pool, 100)
	s := eventstore.New(open(t, db.DSN, 4), eventstore.Options{Service: "counter", PartSize: 100})
	release := hold(t, db.DSN, "select pg_advisory_xact_lock(es_lock_key() + 1)") // nobody makes parts
	run(t, s)
	exec(t, db.Pool, "select setval('events_position_seq', 100)")

	tx, err := s.Begin(t.Context()) // as an operator does
	must(t, err)
	tx.Append(counted(t, "counter-operator", 0))
	err = tx.Commit(t.Context(), "es_commit")
	var pe *pgconn.PgError
	if !errors.As(err, &pe) || pe.Code != "23514" || eventstore.Deterministic(err) || errors.Is(err, eventstore.ErrUnknown) {
		t.Errorf("without a part: %v, taken for a fault of the data: %t", err, eventstore.Deterministic(err))
	}
	waits := []pending{
		appendLater(s, context.Background(), counted(t, "counter-1", 0)),
		appendLater(s, context.Background(), counted(t, "counter-2", 0)),
	}
	for _, p := range waits {
		p.stillWaits(t)
	}
	release()
	for _, p := range waits {
		must(t, <-p)
	}
	must(t, s.Within(t.Context(), func(_ context.Context, tx *eventstore.Tx) error {
		tx.Append(counted(t, "counter-operator", 0))
		return nil
	}))
	if n := one[int](t, db.Pool, "select count(*) from events where position > 100"); n != 3 {
		t.Errorf("%d events are stored of 3", n)
	}
}

// forged is an append of bare events (stream, version) by requests (stream, expected, new), as no code of this
// package makes it.
func forged(ctx context.Context, pool *pgxpool.Pool, call string, requests, events [][3]any) error {
	var stream, e []string
	var expected, next, version []int64
	var req []int32
	for _, r := range requests {
		stream, expected, next = append(stream, r[0].(string)), append(expected, int64(r[1].(int))), append(next, int64(r[2].(int)))
	}
	for _, r := range events {
		req, e, version = append(req, int32(r[0].(int))), append(e, r[1].(string)), append(version, int64(r[2].(int)))
	}
	_, err := pool.Exec(ctx, fmt.Sprintf(`select %s(row($1::text[], $2::bigint[], $3::bigint[],
		array_fill(1, array[cardinality($1)]), array_fill('1'::text, array[cardinality($1)]), array_fill(''::text, array[cardinality($1)]),
		'{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', $4::int[], $5::text[], $6::bigint[],
		array_fill('t'::text, array[cardinality($4)]), array_fill('k'::text, array[cardinality($4)]),
		array_fill('{}'::text, array[cardinality($4)]), array_fill('{}'::text, array[cardinality($4)]))::es_appends%s)`,
		call, map[string]string{"es_append": ", false"}[call]), stream, expected, next, req, e, version)
	return err
}

// No two events of a stream have one version, though no index over all parts says so: whatever asks for it is refused,
// also when the two would be in different parts.
func TestOneVersionOnceAcrossParts(t *testing.T) {
	t.Parallel()
	type rows = [][3]any
	for name, c := range map[string]struct{ requests, events rows }{
		"a version that is there":        {rows{{"a", 1, 2}}, rows{{1, "a", 1}}},
		"one version twice":              {rows{{"a", 1, 3}}, rows{{1, "a", 2}, {1, "a", 2}}},
		"two requests of one stream":     {rows{{"a", 1, 2}, {"a", 1, 2}}, rows{{1, "a", 2}, {2, "a", 2}}},
		"another stream's event":         {rows{{"b", 0, 1}}, rows{{1, "a", 1}}},
		"events that move no version":    {rows{{"a", 1, 1}}, rows{{1, "a", 2}}},
		"more events than versions":      {rows{{"a", 1, 2}}, rows{{1, "a", 2}, {1, "a", 3}}},
		"a version beyond a hole":        {rows{{"a", 1, 2}}, rows{{1, "a", 7}}},
		"versions without their events":  {rows{{"a", 1, 3}}, rows{{1, "a", 2}}},
		"a version without any event":    {rows{{"a", 1, 2}}, nil},
		"the wrong one of two requests":  {rows{{"b", 0, 1}, {"a", 1, 2}}, rows{{1, "b", 1}, {1, "a", 2}}},
		"a request that is not accepted": {rows{{"a", 0, 1}}, rows{{1, "a", 1}}},
	} {
		for _, call := range []string{"es_append", "es_commit"} {
			t.Run(name+" by "+call, func(t *testing.T) {
				t.Parallel()
				db := pgtest.New(t, eventstore.Migrations())
				smallParts(t, db.Pool, 1) // each position is a part
				exec(t, db.Pool, "select es_make_parts(20)")
				must(t, forged(t.Context(), db.Pool, call, rows{{"a", 0, 1}}, rows{{1, "a", 1}}))
				exec(t, db.Pool, "select nextval('events_position_seq')") // a transaction that was rolled back
				err := forged(t.Context(), db.Pool, call, c.requests, c.events)
				if call == "es_append" && name == "a request that is not accepted" {
					must(t, err) // the answer says so
				} else if err == nil {
					t.Error("it was written")
				}
				if n := one[int](t, db.Pool, "select count(*) from events"); n != 1 {
					t.Errorf("there are %d events", n)
				}
				must(t, forged(t.Context(), db.Pool, call, rows{{"a", 1, 3}, {"c", 0, 1}}, rows{{1, "a", 2}, {1, "a", 3}, {2, "c", 1}}))
				if parts := one[int](t, db.Pool, "select count(distinct tableoid) from events"); parts < 2 {
					t.Errorf("all is in %d parts", parts)
				}
			})
		}
	}
}

// Events are inserted by es_events only, and only for requests that es_streams has locked and checked just before.
func TestEveryAppendChecksItsStreams(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations(), operator.Migrations())
	rows, err := db.Pool.Query(t.Context(), "select proname, lower(prosrc) from pg_proc where pronamespace = current_schema()::regnamespace order by 1")
	must(t, err)
	functions, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ Name, Source string }])
	must(t, err)
	var inserts, appends []string
	for _, f := range functions {
		if strings.Contains(f.Source, "into events") {
			inserts = append(inserts, f.Name)
		}
		if written := strings.Index(f.Source, "perform es_events("); written >= 0 {
			appends = append(appends, f.Name)
			if checked := strings.Index(f.Source, "es_streams(a, "); checked < 0 || checked > written {
				t.Errorf("%s writes events and does not check their streams before", f.Name)
			}
		}
	}
	if got := fmt.Sprint(inserts, appends); got != "[es_events] [es_append es_commit op_commit]" {
		t.Errorf("events are inserted by, and written through, %s", got)
	}
}

// Parts are made ahead of need by several processes at once, one after the other, without a gap, and cover what a
// sequence that was set forward has passed.
func TestPartsAreMadeAheadAndOnce(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	smallParts(t, db.Pool, 100)
	for _, drawn := range []int{1, 99, 100, 250, 1234, 1235} {
		exec(t, db.Pool, "select setval('events_position_seq', $1)", drawn)
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() { _, _ = db.Pool.Exec(context.Background(), "select es_make_parts(100)") })
		}
		all.Wait()
		room := one[int](t, db.Pool, "select max(high) - 1 - $1 from es_parts()", drawn)
		gaps := one[int](t, db.Pool, "select count(*) from (select low, lag(high, 1, 1::bigint) over (order by low) as before from es_parts()) p where low <> before")
		if room < 100 || room > 200 || gaps > 0 {
			t.Errorf("after %d positions there is room for %d, with %d gaps between parts", drawn, room, gaps)
		}
	}
}
