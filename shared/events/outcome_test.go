package events_test

import (
	"slices"
	"testing"

	"github.com/feira-shop/feira/shared/events"
)

func TestOutcomesAreAFixedFew(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		event   events.Event
		outcome string
		ends    bool
	}{
		{events.OrderPlaced{}, "", false},
		{events.OrderConfirmed{}, "", true},
		{events.OrderCancelled{Reason: events.ReasonDeadline}, "deadline", true},
		{events.OrderCancelled{Reason: "ana@example.com"}, "other", true},
		{events.OrderCancelled{}, "other", true},
	} {
		if outcome, ends := events.OutcomeOf(c.event); outcome != c.outcome || ends != c.ends {
			t.Errorf("%#v: %q, %v", c.event, outcome, ends)
		}
	}
}

func TestAServiceOwnsWhatItPublishesAndItsPrivateEvents(t *testing.T) {
	t.Parallel()
	var types []string
	for _, e := range events.NewRegistry(noteV1{}).Owned("loyalty") {
		types = append(types, e.EventType())
	}
	want := []string{"shop.feira.points.earned.v1", "shop.feira.points.reversed.v1", noteV1{}.EventType()}
	if !slices.Equal(types, want) {
		t.Errorf("loyalty owns %v, not %v", types, want)
	}
}
