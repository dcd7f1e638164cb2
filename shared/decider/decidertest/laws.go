package decidertest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
)

// Laws checks with random sequences of commands what must hold for every decider:
//   - the same command in the same state gives the same events or the same error, and never both;
//   - it also does after the state went to the store and back, as JSON;
//   - a command that was carried out yields no events when it is repeated (it may be refused);
//   - Decide and Evolve leave the state they are given as it is;
//   - events change the state in the same way after they went to the store and back;
//   - the state is the fold of all events.
//
// draw gives a command that is of interest in a state.
func Laws[S any](t *testing.T, d decider.Decider[S], draw func(t *rapid.T, state S) any) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		w := walk[S]{decider: d, state: d.Initial}
		for range rapid.IntRange(1, 15).Draw(t, "commands") {
			cmd := draw(t, w.state)
			if err := w.step(cmd); err != nil {
				t.Fatalf("after %d events, command %T%+v: %v", len(w.history), cmd, cmd, err)
			}
		}
	})
}

// walk is a decider on its way through random commands.
type walk[S any] struct {
	decider decider.Decider[S]
	state   S
	history []events.Event
}

func (w *walk[S]) step(cmd any) error {
	decided, err := w.decide(cmd)
	if err != nil {
		return err
	}
	for _, e := range decided {
		if err := w.evolve(e); err != nil {
			return err
		}
	}
	if again, _ := w.decider.Decide(w.state, cmd); len(decided) > 0 && len(again) > 0 {
		return fmt.Errorf("repeated, it changes the state again: %s", compact(again[0]))
	}
	if got, want := encode(w.state), encode(w.decider.Fold(w.history)); got != want {
		return fmt.Errorf("the state is not the fold of its events:\n\t%s\n\t%s", got, want)
	}
	return nil
}

// decide answers twice, the second time in the state as the store would give it back.
func (w *walk[S]) decide(cmd any) ([]events.Event, error) {
	before := encode(w.state)
	var kept S
	if err := json.Unmarshal([]byte(before), &kept); err != nil {
		return nil, fmt.Errorf("the state cannot be kept as JSON: %w", err)
	}
	first, refused := w.decider.Decide(w.state, cmd)
	second, refusedToo := w.decider.Decide(kept, cmd)
	switch {
	case encode(w.state) != before:
		return nil, fmt.Errorf("the state was changed by Decide:\n\t%s\n\t%s", before, encode(w.state))
	case refused != nil && len(first) > 0:
		return nil, fmt.Errorf("it is refused (%w) and yields events", refused)
	case fmt.Sprint(refused) != fmt.Sprint(refusedToo):
		return nil, fmt.Errorf("it is answered with %v, and with %v after the state was kept as JSON", refused, refusedToo) //nolint:errorlint // either may be nil
	case !reflect.DeepEqual(lines(first), lines(second)):
		return nil, fmt.Errorf("other events after the state was kept as JSON:\n%s", diff(lines(first), lines(second)))
	}
	return first, nil
}

// evolve takes an event in twice, the second time as it comes back from the store.
func (w *walk[S]) evolve(e events.Event) error {
	before := encode(w.state)
	kept := reflect.New(reflect.TypeOf(e))
	if err := json.Unmarshal([]byte(encode(e)), kept.Interface()); err != nil {
		return fmt.Errorf("event %s cannot be kept as JSON: %w", e.EventType(), err)
	}
	again, ok := kept.Elem().Interface().(events.Event)
	if !ok {
		return fmt.Errorf("event %s is not a value", e.EventType())
	}
	next := w.decider.Evolve(w.state, e)
	after := encode(next)
	switch second := encode(w.decider.Evolve(w.state, again)); {
	case encode(w.state) != before:
		return fmt.Errorf("the state was changed by Evolve:\n\t%s\n\t%s", before, encode(w.state))
	case second != after:
		return fmt.Errorf("event %s evolves to another state after it was kept as JSON:\n\t%s\n\t%s", e.EventType(), after, second)
	case encode(next) != after:
		return fmt.Errorf("two states share memory that Evolve of %s changes", e.EventType())
	}
	w.state, w.history = next, append(w.history, e)
	return nil
}

// encode is the JSON of a state or event, or why there is none.
func encode(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
