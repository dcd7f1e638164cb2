package operator

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
)

// try asks for a trial and waits for its answers, by offset.
func (w *world) try(s Selection) map[int64]Trial {
	w.t.Helper()
	ctx := context.Background()
	ids, err := Try(ctx, w.db.Pool, s, "ana")
	if err != nil {
		w.t.Fatal(err)
	}
	w.awaitRequests(ids)
	found, err := Trials(ctx, w.db.Pool, ids)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := Forget(ctx, w.db.Pool, ids); err != nil {
		w.t.Fatal(err)
	}
	said := map[int64]Trial{}
	for _, t := range found {
		said[t.Offset] = t
	}
	return said
}

// contents is everything in the database, but for what is drawn from sequences.
func (w *world) contents() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for _, table := range []string{
		"events", "streams", "effects", "checkpoints", "parked", "operator_requests", "operator_trials", "operator_fills",
		"operator_control", "operator_stops", "operator_audit",
	} {
		var rows string
		err := w.db.Pool.QueryRow(context.Background(), "select coalesce(json_agg(r order by r::text), '[]')::text from "+table+" r").Scan(&rows)
		if err != nil {
			w.t.Fatal(err)
		}
		all[table] = rows
	}
	return all
}

// appending also has the handler append an event for each record, in a stream of its own.
func appending(l *ledger) {
	l.before = func(_ context.Context, tx *eventstore.Tx, b []Record) error {
		for _, r := range b {
			e, err := eventstore.Encode(events.Meta{ID: uuid.NewString(), Time: time.Now()}, happened{Key: r.Key})
			if err != nil {
				return err
			}
			tx.Append(eventstore.Append{Stream: "said-" + r.ID, State: json.RawMessage("{}"), Events: []eventstore.Event{e}})
		}
		return nil
	}
}

func TestATrialSaysWhatAReplayWouldComeToAndChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	var log []*kgo.Record
	for _, key := range []string{"good", "mended", "good", "mended", "bad", "bad", "bad", "full", "full", "odd", "good"} {
		log = append(log, w.fact(facts, 0, key))
	}
	log[9] = with(log[9], events.HeaderType, "shop.feira.thing.happened.v9")
	w.publish(log...)
	l := &ledger{}
	appending(l)
	l.refuse(idOf(log[1]), idOf(log[4]), idOf(log[7]))
	o := w.operator(w.definition(l, facts), "m1")
	w.start(o)
	w.awaitEffects(3)
	w.awaitCheckpoints(11)

	// Since then one was mended; of the third kind the append is refused by the database.
	l.refuse(idOf(log[4]))
	w.occupy("said-" + idOf(log[7]))
	before := w.contents()
	said := w.try(Selection{Operator: o.Name()})
	for offset, want := range map[int64]struct{ outcome, detail string }{
		1: {OutcomeApplied, ""}, 3: {OutcomeApplied, ""},
		4: {OutcomeRejected, "is not acceptable"}, 5: {OutcomeBlocked, "behind facts/0/4"}, 6: {OutcomeBlocked, "behind facts/0/4"},
		7: {OutcomeHeldUp, "said-" + idOf(log[7])}, 8: {OutcomeBlocked, "behind facts/0/7"},
		9: {OutcomeRejected, "v9"},
	} {
		if got := said[offset]; got.Outcome != want.outcome || !strings.Contains(got.Detail, want.detail) {
			t.Errorf("offset %d: %q (%s), want %q (%s)", offset, got.Outcome, got.Detail, want.outcome, want.detail)
		}
	}
	if len(said) != 8 || string(said[1].Key) != "mended" || said[1].Type != (happened{}).EventType() {
		t.Errorf("answers %+v", said)
	}
	behind := w.try(Selection{Operator: o.Name(), Record: &Place{facts.Name, 0, 3}})
	if got := behind[3]; len(behind) != 1 || got.Outcome != OutcomeBlocked || !strings.Contains(got.Detail, "facts/0/1 of its key") {
		t.Errorf("one that waits, alone: %+v", behind)
	}
	if after := w.contents(); !reflect.DeepEqual(before, after) {
		t.Errorf("a trial changed something:\n%v\n%v", before, after)
	}

	// And it comes like that.
	ids, err := Replay(t.Context(), w.db.Pool, Selection{Operator: o.Name(), Key: []byte("mended")}, "ana")
	if err != nil {
		t.Fatal(err)
	}
	if r := w.awaitRequests(ids); r[0].Done != 2 || r[0].Failed != 0 {
		t.Errorf("replayed %+v", r[0])
	}
	w.publish(w.fact(facts, 0, "good")) // the operator goes on as ever
	w.awaitEffects2(6)
}

// occupy writes a stream that somebody else begins, again and again, so that an append to it always conflicts.
func (w *world) occupy(stream string) {
	w.t.Helper()
	e, err := eventstore.Encode(events.Meta{ID: uuid.NewString(), Time: time.Now()}, happened{Key: "x"})
	if err != nil {
		w.t.Fatal(err)
	}
	err = w.store.Within(context.Background(), func(_ context.Context, tx *eventstore.Tx) error {
		tx.Append(eventstore.Append{Stream: stream, State: json.RawMessage("{}"), Events: []eventstore.Event{e}})
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestATrialLeavesTheMemoryAsItWas(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	log := w.publishFacts(facts, 40)
	s := &remembering{}
	s.refuse(idOf(log[7]), idOf(log[20]))
	o := w.operator(w.definition(s, facts), "m1")
	w.start(o)
	w.await("parked", func() bool { return len(w.parkedReasons()) == 4 })
	w.awaitCheckpoints(40)
	s.refuse()
	for _, r := range w.try(Selection{Operator: o.Name()}) {
		if r.Outcome != OutcomeApplied {
			t.Errorf("%+v", r)
		}
	}
	if s.total() != 36 || w.effects() != 36 {
		t.Errorf("%d in memory, %d in the database, want 36", s.total(), w.effects())
	}
}

// A trial whose asker has gone, as one that waited for an operator that did not run, is never answered.
func TestAForgottenTrialIsNotMade(t *testing.T) {
	t.Parallel()
	w, _, o, _ := poisoned(t)
	if err := Pause(t.Context(), w.db.Pool, o.Name(), "ana"); err != nil {
		t.Fatal(err)
	}
	w.await("the pause", func() bool { return value(t, o.metrics.paused) == 1 })
	ids, err := Try(t.Context(), w.db.Pool, Selection{Operator: o.Name()}, "ana")
	if err != nil {
		t.Fatal(err)
	}
	if err := Forget(t.Context(), w.db.Pool, ids); err != nil {
		t.Fatal(err)
	}
	if n := w.count("select count(*) from operator_requests"); n != 0 {
		t.Errorf("%d requests left", n)
	}
	var nothing *NotFoundError
	if _, _, err := CountParked(t.Context(), w.db.Pool, Selection{Operator: o.Name(), Key: []byte("none")}); !errors.As(err, &nothing) {
		t.Errorf("counted nothing: %v", err)
	}
	if records, keys, err := CountParked(t.Context(), w.db.Pool, Selection{Operator: o.Name()}); records != 4 || keys != 1 || err != nil {
		t.Errorf("counted %d records of %d keys, %v", records, keys, err)
	}
}
