package operator

import (
	"strconv"
	"testing"
	"time"
)

// watched has the database note, by transaction, what moves a checkpoint and what takes a parked record out.
const watched = `
create table moves (tx xid8, what text);
create function note_move() returns trigger language plpgsql as $$ begin
  if (old.next_offset, old.source_position, old.epoch, old.adopt) is distinct from (new.next_offset, new.source_position, new.epoch, new.adopt) then
    insert into moves values (pg_current_xact_id(), 'checkpoint');
  end if;
  return new;
end $$;
create function note_replay() returns trigger language plpgsql as $$ begin
  insert into moves values (pg_current_xact_id(), 'parked');
  return old;
end $$;
create trigger moves before update on checkpoints for each row execute function note_move();
create trigger moves before delete on parked for each row execute function note_replay();`

// A replay is not a seek: the operator's own place stays where it is, while it stands and while it goes on.
func TestAReplayMovesNoCheckpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	l := &ledger{}
	var bad []string
	for i := range 60 {
		key := "bad-" + strconv.Itoa(i%6)
		first, second := w.fact(facts, int32(i%3), key), w.fact(facts, int32(i%3), key)
		bad = append(bad, idOf(first))
		w.publish(first, second)
	}
	l.refuse(bad...)
	o := w.operator(w.definition(l, facts), "m1")
	w.start(o)
	w.awaitCheckpoints(120)
	if _, err := w.db.Pool.Exec(t.Context(), watched); err != nil {
		t.Fatal(err)
	}
	l.refuse()
	replay := func(key string) {
		t.Helper()
		ids, err := Replay(t.Context(), w.db.Pool, Selection{Operator: o.Name(), Key: []byte(key)}, "ana")
		if err != nil {
			t.Fatal(err)
		}
		w.awaitRequests(ids)
	}
	replay("bad-0")
	if n := w.count("select count(*) from moves where what = 'checkpoint'"); n != 0 {
		t.Fatalf("a replay moved %d checkpoints while nothing else happened", n)
	}

	done, published := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				w.publishFacts(facts, 6)
				n += 6
			case <-done:
				published <- n
				return
			}
		}
	}()
	for i := 1; i < 5; i++ {
		replay("bad-" + strconv.Itoa(i))
	}
	ids, err := Discard(t.Context(), w.db.Pool, Selection{Operator: o.Name(), Key: []byte("bad-5")}, "ana")
	if err != nil {
		t.Fatal(err)
	}
	w.awaitRequests(ids)
	close(done)
	more := <-published
	w.awaitCheckpoints(120 + more)
	w.awaitEffects2(100 + more)
	if n := w.count("select count(*) from moves where what = 'parked'"); n != 120 {
		t.Errorf("%d parked records were taken out, want 120", n)
	}
	if n := w.count("select count(distinct tx) from moves where what = 'checkpoint'"); n == 0 && more > 0 {
		t.Error("the operator did not go on meanwhile")
	}
	if n := w.count("select count(distinct tx) from moves a join moves b using (tx) where a.what = 'checkpoint' and b.what = 'parked'"); n != 0 {
		t.Errorf("%d replays moved the operator's own checkpoint", n)
	}
}

// What was parked after somebody looked and said yes is not given up with the rest.
func TestADiscardTakesOnlyWhatWasThere(t *testing.T) {
	t.Parallel()
	w, _, o, _ := poisoned(t)
	if _, err := w.db.Pool.Exec(t.Context(), `update parked set parked_at = parked_at + interval '1 hour' where "offset" = 54`); err != nil {
		t.Fatal(err)
	}
	ids, err := Discard(t.Context(), w.db.Pool, Selection{Operator: o.Name()}, "ana")
	if err != nil {
		t.Fatal(err)
	}
	if r := w.awaitRequests(ids); r[0].Done != 3 {
		t.Errorf("discarded %d, want 3", r[0].Done)
	}
	if n := w.count(`select count(*) from parked where "offset" = 54`); n != 1 {
		t.Error("the later one is gone too")
	}
}
