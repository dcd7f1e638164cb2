package stream

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/pg/pgtest"
)

// said are the results in the store, by stream, of the revision that stands.
func (f *field) said() map[string]windowClosed {
	f.t.Helper()
	return said(f.t, f.db, f.name)
}

func said(tb testing.TB, db *pgtest.DB, name string) map[string]windowClosed {
	tb.Helper()
	rows, err := db.Pool.Query(context.Background(), `select distinct on (stream) stream, data from events
		where stream like $1 || '-%' order by stream, version desc`, name)
	if err != nil {
		tb.Fatal(err)
	}
	all := map[string]windowClosed{}
	var stream string
	var w windowClosed
	if _, err := pgx.ForEachRow(rows, []any{&stream, &w}, func() error {
		all[stream] = w
		w = windowClosed{}
		return nil
	}); err != nil {
		tb.Fatal(err)
	}
	return all
}

// agrees demands what the naive computation says, of windows that have closed and in the ledger.
func (f *field) agrees() expected {
	f.t.Helper()
	want := naive(f.name, f.from, f.w, f.log)
	f.sameResults(want, 1)
	var received int
	got := map[fate]int{}
	var c, l, q int
	if err := f.db.Pool.QueryRow(f.t.Context(), `select sum(received), sum(counted), sum(late), sum(quarantined)
		from stream_watermarks where operator = $1`, f.name).Scan(&received, &c, &l, &q); err != nil {
		f.t.Fatal(err)
	}
	for what, n := range map[fate]int{counted: c, late: l, quarantined: q} {
		if n > 0 {
			got[what] = n
		}
	}
	if !maps.Equal(got, want.counts) || received != c+l+q {
		f.t.Errorf("of %d events received became %v, want %v", received, got, want.counts)
	}
	f.sameLate(want)
	return want
}

func (f *field) sameResults(want expected, revision int) {
	f.t.Helper()
	got := f.said()
	for name, w := range want.results {
		if g := got[name]; (made{g.Count, g.Sum}) != w || g.Revision != revision {
			f.t.Errorf("%s is %+v, want %+v in revision %d", name, g, w, revision)
		}
	}
	if len(got) != len(want.results) {
		f.t.Errorf("%d results, want %d", len(got), len(want.results))
	}
}

func (f *field) sameLate(want expected) {
	f.t.Helper()
	rows, err := f.db.Pool.Query(f.t.Context(), "select id, reason from stream_late where operator = $1", f.name)
	if err != nil {
		f.t.Fatal(err)
	}
	got := map[string]fate{}
	var id string
	var why fate
	if _, err := pgx.ForEachRow(rows, []any{&id, &why}, func() error {
		got[id] = why
		return nil
	}); err != nil {
		f.t.Fatal(err)
	}
	if !maps.Equal(got, want.late) {
		f.t.Errorf("%d events are in the table of late ones, want %d: %v", len(got), len(want.late), fmt.Sprint(got, want.late))
	}
}
