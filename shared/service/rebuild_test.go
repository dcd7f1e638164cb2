package service

import (
	"errors"
	"fmt"
	"testing"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
)

// Kept states are made anew from the events; what cannot be folded stops the rebuild by name.
func TestRebuild(t *testing.T) {
	t.Parallel()
	d := definition()
	d.Operators, d.Publishes = nil, events.Topic{}
	g := newGround(t, d)
	r := g.start(d)
	for i := range 250 {
		if err := earn(t.Context(), r.Runtime.Store, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	exec := func(sql string) {
		t.Helper()
		if _, err := g.db.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec("update streams set state = '7' where stream like 'points-1%'") // 111 of them
	exec("update streams set shape = 0 where stream = 'points-2'")
	exec("insert into streams (stream, version, shape, state) values ('points-never', 0, 0, 'null')")
	for _, c := range []struct {
		dry     bool
		changed int
	}{{true, 112}, {false, 112}, {false, 0}} {
		reports := 0
		done, err := d.Rebuild(t.Context(), r.Runtime.Store, c.dry, func(Rebuilt) { reports++ })
		if err != nil || done != (Rebuilt{Streams: 250, Changed: c.changed}) || reports != 3 {
			t.Errorf("dry %v: %+v, %v, %d reports, want %d changed", c.dry, done, err, reports, c.changed)
		}
	}
	if n := g.count("select count(*) from streams where state::text <> '1' and version > 0"); n != 0 {
		t.Errorf("%d states are wrong", n)
	}
	exec("insert into archived_streams (stream, version) values ('points-7', 1)")
	exec("with e as (delete from events where stream = 'points-7' returning *) update streams set state = '7' where stream = 'points-7'")
	if done, err := d.Rebuild(t.Context(), r.Runtime.Store, false, func(Rebuilt) {}); err != nil || done != (Rebuilt{Streams: 250, Archived: 1}) {
		t.Errorf("with an archived history: %+v, %v", done, err)
	}
	exec("update events set type = 'shop.feira.points.hidden.v1' where stream = 'points-3'")
	var unknown *decider.UnknownHistoryError
	if _, err := d.Rebuild(t.Context(), r.Runtime.Store, true, func(Rebuilt) {}); !errors.As(err, &unknown) || unknown.Stream != "points-3" {
		t.Errorf("an unknown event: %v", err)
	}
	exec("delete from events where stream = 'points-3'")
	var broken *decider.BrokenHistoryError
	if _, err := d.Rebuild(t.Context(), r.Runtime.Store, true, func(Rebuilt) {}); !errors.As(err, &broken) || broken.Stream != "points-3" {
		t.Errorf("a lost event: %v", err)
	}
	exec("update streams set stream = 'other-3' where stream = 'points-3'")
	var kind *UnknownStreamError
	if _, err := d.Rebuild(t.Context(), r.Runtime.Store, true, func(Rebuilt) {}); !errors.As(err, &kind) || kind.Stream != "other-3" {
		t.Errorf("a stream of no kind: %v", err)
	}
}
