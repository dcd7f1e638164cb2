package events_test

import (
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/events"
)

func TestAReplyGoesOnWithTheStory(t *testing.T) {
	t.Parallel()
	cause := sample()
	now := time.Date(2026, 3, 1, 9, 0, 0, 1_999, time.FixedZone("BRT", -3*3600)) // nanoseconds are not kept
	got, err := events.Reply(cause, "inventory", now)
	if err != nil || len(got.ID) != 36 || got.ID[14] != '7' || got.ID == cause.ID {
		t.Fatalf("id %q is not a new UUIDv7 (%v)", got.ID, err)
	}
	got.ID = ""
	want := events.Meta{Time: time.Date(2026, 3, 1, 12, 0, 0, 1_000, time.UTC), Correlation: cause.Correlation, Causation: cause.ID, Traceparent: cause.Traceparent, Actor: "inventory"}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	cause.Correlation = ""
	if got, _ = events.Reply(cause, "", now); got.Correlation != cause.ID {
		t.Errorf("a story begins with %q, want its first event %q", got.Correlation, cause.ID)
	}
}
