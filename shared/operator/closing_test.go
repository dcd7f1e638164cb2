package operator_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/operator"
)

// A closing has added up what it is about to say, and stands still. Meanwhile the partition of its owner is taken over
// and the partial values are put right, as a rebuild does. What it would have said is refused, and what is right is said.
func TestFaultFencedClosing(t *testing.T) {
	t.Parallel()
	w := newStreamWorld(t, rand.New(rand.NewPCG(1, 2)))
	w.publish(60 * rate)
	o := w.operator()
	reached, resume := o.HoldAt("operator.before-closing")
	stop := w.start(o)
	defer stop()
	select {
	case <-reached:
	case <-time.After(patience):
		t.Fatal("nothing was closed")
	}
	for _, sql := range []string{
		"update checkpoints set epoch = epoch + 1",
		`update stream_partials set entries = (select json_object_agg(key, json_build_object('n', 7777, 'amount', 1)) from json_each(entries))`,
	} {
		if _, err := w.db.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	close(resume)
	w.await("everything to be closed", w.over)
	var all, old int
	if err := w.db.Pool.QueryRow(t.Context(), `select count(*), count(*) filter (where (data -> 'sum' ->> 'n')::int < 7777)
		from events where data ->> 'start' = (select min(data ->> 'start') from events)`).Scan(&all, &old); err != nil {
		t.Fatal(err)
	}
	if all == 0 || old > 0 {
		t.Errorf("%d of %d results of the first window are from before the partition was taken over", old, all)
	}
}

// A window whose result is refused for good holds up those after it, and only those: what came before is said, events go
// on, and the operator's health says which error it is. It goes on by itself when the result is not refused any more.
func TestAWindowThatCannotBeClosed(t *testing.T) {
	t.Parallel()
	w := newStreamWorld(t, rand.New(rand.NewPCG(3, 4)))
	w.publish(30 * rate)
	if _, err := w.db.Pool.Exec(t.Context(), `create function refuse() returns trigger language plpgsql as $$
		begin if new.stream like '%item-7' then raise check_violation using message = 'item-7 is refused'; end if; return new; end $$;
		create trigger refuse before insert on streams for each row execute function refuse()`); err != nil {
		t.Fatal(err)
	}
	o := w.operator()
	defer w.start(o)()
	w.await("the refusal to be known", func() bool { return o.Health() != nil && w.said() > 0 })
	w.await("the events to go on", func() bool { return w.count("select sum(received) from stream_watermarks") == 30*rate })
	if n := w.count("select count(*) from events where stream like '%item-7'"); n != 0 {
		t.Errorf("%d refused results were said", n)
	}
	if n := w.count("select count(*) from parked"); n != 0 {
		t.Errorf("%d events are parked for a closing", n)
	}
	if _, err := w.db.Pool.Exec(t.Context(), "drop trigger refuse on streams"); err != nil {
		t.Fatal(err)
	}
	w.await("everything to be closed", w.over)
	w.await("health", func() bool { return o.Health() == nil })
	w.agrees()
}

const patience = 60 * time.Second

// start runs an operator; stop ends it and waits.
func (w *streamWorld) start(o *operator.Operator) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = o.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// await polls until ok says that it is so.
func (w *streamWorld) await(what string, ok func() bool) {
	w.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for !ok() {
		select {
		case <-look.C:
		case <-deadline.C:
			w.t.Fatalf("waited in vain for: %s", what)
		}
	}
}

func (w *streamWorld) said() int { return w.count("select count(*) from events") }

func (w *streamWorld) count(sql string) int {
	w.t.Helper()
	var n *int
	if err := w.db.Pool.QueryRow(context.Background(), sql).Scan(&n); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	if n == nil {
		return 0
	}
	return *n
}
