package orders

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/auth"
	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/service"
	"github.com/feira-shop/feira/shared/telemetry"
)

func TestTheTimerEndsWhatIsDue(t *testing.T) {
	t.Parallel()
	h := open(t)
	var ids []string
	for i := range 30 {
		r := checkout("CAFE-500", 1)
		r.Params.IdempotencyKey = fmt.Sprint(i)
		o, err := buy(as(t, ana, auth.Customer), h, r)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, o.Body.Id)
	}
	h.note(t, ids[0], NoteReserved{}, noteAuthorized, noteCleared) // confirmed
	h.note(t, ids[1], NoteHeld{Payment: payment, Reason: events.ReasonFraud, Until: noon.Add(time.Hour)})
	rt := service.Runtime{Store: h.store}
	status := func(want map[string]int) {
		t.Helper()
		got := map[string]int{}
		for _, id := range ids {
			o, err := decider.Load(t.Context(), h.store, Rules, Stream(id))
			if err != nil {
				t.Fatal(err)
			}
			got[string(o.State.Status)+" "+o.State.Reason]++
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	for _, at := range []struct {
		after time.Duration
		want  map[string]int
	}{
		{h.cfg.Deadline - time.Microsecond, map[string]int{"confirmed ": 1, "on_hold fraud": 1, "placed ": 28}},
		{h.cfg.Deadline, map[string]int{"confirmed ": 1, "on_hold fraud": 1, "cancelled deadline": 28}},
		{h.cfg.Deadline, map[string]int{"confirmed ": 1, "on_hold fraud": 1, "cancelled deadline": 28}},
		{time.Hour, map[string]int{"confirmed ": 1, "cancelled fraud": 1, "cancelled deadline": 28}},
	} {
		if err := expireDue(t.Context(), rt, noon.Add(at.after)); err != nil {
			t.Fatal(err)
		}
		status(at.want)
	}
}

// Orders that cannot be ended, however many they are and however long due, keep no other one waiting.
func TestTheTimerPagesPastWhatItCannotEnd(t *testing.T) {
	t.Parallel()
	h := open(t)
	o, err := buy(as(t, ana, auth.Customer), h, checkout("CAFE-500", 1))
	if err != nil {
		t.Fatal(err)
	}
	// Their states are of another shape, and their histories are gone. All are due at the same moment.
	const broken = 2*dueAtOnce + 1
	_, err = h.store.Pool().Exec(t.Context(), `insert into streams (stream, version, shape, state)
 select 'order-broken-' || n, 1, 99, '{"due_at": 1}' from generate_series(1, $1) n`, broken)
	if err != nil {
		t.Fatal(err)
	}
	err = expireDue(t.Context(), service.Runtime{Store: h.store}, noon.Add(h.cfg.Deadline))
	var unended *UnendedError
	var history *decider.BrokenHistoryError
	if !errors.As(err, &unended) || unended.Orders != broken || !errors.As(err, &history) {
		t.Errorf("got %v, want the %d broken orders counted", err, broken)
	}
	ended, err := decider.Load(t.Context(), h.store, Rules, Stream(o.Body.Id))
	if err != nil || ended.State.Reason != events.ReasonDeadline {
		t.Errorf("the order is %+v, %v, want it ended by its deadline", ended.State, err)
	}
}

// An order that its deadline ends stays within the trace of its checkout.
func TestTheTimerContinuesTheTraceOfTheCheckout(t *testing.T) {
	t.Parallel()
	const request = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	h := open(t)
	for key, traceparent := range map[string]string{"within a trace": request, "without": ""} {
		r := checkout("CAFE-500", 1)
		r.Params.IdempotencyKey = key
		o, err := buy(telemetry.Continue(as(t, ana, auth.Customer), traceparent), h, r)
		if err != nil {
			t.Fatal(err)
		}
		if err := expireDue(t.Context(), service.Runtime{Store: h.store}, noon.Add(h.cfg.Deadline)); err != nil {
			t.Fatal(err)
		}
		history, err := h.store.History(t.Context(), Stream(o.Body.Id), eventstore.Until{})
		if err != nil || len(history) != 2 {
			t.Fatalf("%d events, %v", len(history), err)
		}
		for _, e := range history {
			if e.Traceparent != traceparent {
				t.Errorf("%s: %s is at %q", key, e.Type, e.Traceparent)
			}
		}
	}
}
