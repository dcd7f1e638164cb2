package operator_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// naive knows nothing of panes, batches and closings.
type naive struct {
	highest map[int32]time.Time
	kept    []sold
	wanted
}

type wanted struct {
	sums              map[cell]sum
	late, quarantined int
}

func newNaive() *naive { return &naive{highest: map[int32]time.Time{}} }

// take judges an event by what its partition has seen before it.
func (o *naive) take(p int32, s sold, recorded time.Time) {
	seen := o.highest[p]
	switch {
	case s.At.Sub(recorded) > skew:
		o.quarantined++
		return
	case !seen.IsZero() && !s.At.Truncate(slide).Add(slide+lateness).After(seen.Add(-lag-clocks)):
		o.late++
		return
	}
	o.kept = append(o.kept, s)
	if s.At.After(seen) {
		o.highest[p] = s.At
	}
}

// result sorts what counts and adds it up, window by window.
func (o *naive) result() wanted {
	slices.SortFunc(o.kept, func(a, b sold) int { return a.At.Compare(b.At) })
	o.sums = map[cell]sum{}
	first, last := o.kept[0].At.Truncate(slide), o.kept[len(o.kept)-1].At
	from := 0
	for start := first.Add(slide - size); !start.After(last); start = start.Add(slide) {
		for from < len(o.kept) && o.kept[from].At.Before(start) {
			from++
		}
		for i := from; i < len(o.kept) && o.kept[i].At.Before(start.Add(size)); i++ {
			c := cell{start, o.kept[i].Item}
			o.sums[c] = o.sums[c].add(sum{1, o.kept[i].Amount})
		}
	}
	return o.wanted
}

// agrees holds what was said, and what was put aside, against the naive computation.
func (w *streamWorld) agrees() {
	w.t.Helper()
	got := map[string]summed{}
	rows, err := w.db.Pool.Query(w.t.Context(), "select stream, version, data from events")
	if err != nil {
		w.t.Fatal(err)
	}
	var name string
	var version int
	var data []byte
	if _, err := pgx.ForEachRow(rows, []any{&name, &version, &data}, func() error {
		var s summed
		if version != 1 {
			w.t.Errorf("%s was said %d times", name, version)
		}
		err := json.Unmarshal(data, &s)
		got[name] = s
		return err
	}); err != nil {
		w.t.Fatal(err)
	}
	wrong := 0
	for _, c := range slices.SortedFunc(maps.Keys(w.want.sums), func(a, b cell) int { return a.start.Compare(b.start) }) {
		if g := got[c.stream()]; g.Sum != w.want.sums[c] {
			if wrong++; wrong <= 5 {
				w.t.Errorf("%s is %+v, want %+v", c.stream(), g.Sum, w.want.sums[c])
			}
		}
	}
	if len(got) != len(w.want.sums) || wrong > 0 {
		w.t.Errorf("%d results, want %d; %d are wrong", len(got), len(w.want.sums), wrong)
	}
	var late, quarantined int
	if err := w.db.Pool.QueryRow(w.t.Context(), `select count(*) filter (where reason = 'late'), count(*) filter (where reason = 'quarantined')
		from stream_late`).Scan(&late, &quarantined); err != nil {
		w.t.Fatal(err)
	}
	if found, want := fmt.Sprint(late, quarantined), fmt.Sprint(w.want.late, w.want.quarantined); found != want || late == 0 || quarantined == 0 {
		w.t.Errorf("late and quarantined are %s, want %s", found, want)
	}
}
