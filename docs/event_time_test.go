package docs_test

import (
	_ "embed"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/stream"
)

var (
	//go:embed event-time.md
	page string
	//go:embed event_time_test.go
	source string
)

// Takings is what a customer paid.
type Takings struct{ Payments, Minor int64 }

// Last is the last purchase on a card.
type Last struct {
	Payment string
	At      time.Time
}

// Said is what the operators of the page say.
type Said struct {
	About    string
	Takings  Takings
	Revision int
}

func (Said) EventType() string { return "shop.feira.till.said.v1" }
func (Said) EventKey() string  { return "" }

func customer(r events.Recorded) string {
	e, _ := r.Event.(events.PaymentCaptured)
	return e.Customer
}

func one(r events.Recorded, _ string) Takings {
	e, _ := r.Event.(events.PaymentCaptured)
	return Takings{Payments: 1, Minor: e.Amount.Amount}
}

func both(a, b Takings) Takings { return Takings{a.Payments + b.Payments, a.Minor + b.Minor} }

func closed(r stream.Result[Takings]) events.Event {
	return Said{About: r.Key, Takings: r.Value, Revision: r.Revision}
}

func named(r stream.Result[Takings]) string {
	return "takings-" + r.Key + "-" + r.Window.Start.Format(time.RFC3339)
}

func card(r events.Recorded) string {
	e, _ := r.Event.(events.PaymentAuthorized)
	return e.CardFingerprint
}

func purchased(r events.Recorded) time.Time {
	e, _ := r.Event.(events.PaymentAuthorized)
	return e.PurchasedAt
}

func compare(state Last, r events.Recorded, late bool) (Last, []events.Event) {
	e, _ := r.Event.(events.PaymentAuthorized)
	next := Last{e.Payment, e.PurchasedAt}
	if !late && state.Payment != "" && e.PurchasedAt.Sub(state.At).Abs() < 5*time.Second {
		return next, events.List(Said{About: e.Payment})
	}
	return next, nil
}

func needed(state Last) time.Time { return state.At.Add(5 * time.Second) }

func verdict(e events.Event) string {
	said, _ := e.(Said)
	return "twice-" + said.About
}

// till are the operators of the page, as it shows them.
func till() []operator.Definition {
	return []operator.Definition{
		stream.From(events.Payments, events.PaymentCaptured{}).
			KeyBy(customer).
			Disorder(time.Minute).
			Window(stream.Tumbling(5*time.Minute).Lateness(time.Minute)).
			Aggregate("till.takings", stream.Aggregation[Takings]{
				Lift:   one,    // what a single event adds: func(r events.Recorded, key string) Takings
				Merge:  both,   // two of them together: func(a, b Takings) Takings
				Event:  closed, // what is said of a closed window: func(r stream.Result[Takings]) events.Event
				Stream: named,  // the stream of one window and key: func(r stream.Result[Takings]) string
			}),
		stream.From(events.Payments, events.PaymentAuthorized{}).
			KeyBy(card).
			At(purchased).
			Disorder(5*time.Minute).
			Process("till.twice", stream.Rule[Last]{
				Apply:  compare, // func(state Last, r events.Recorded, late bool) (Last, []events.Event)
				Until:  needed,  // the event time up to which a state is needed: func(state Last) time.Time
				Stream: verdict, // the stream that an answer starts: func(e events.Event) string
			}),
	}
}

// What newcomers copy must compile.
func TestTheOperatorsOfThePageAreThese(t *testing.T) {
	t.Parallel()
	lines := func(text string) string {
		var all []string
		for line := range strings.Lines(text) {
			all = append(all, strings.TrimSpace(line))
		}
		return strings.TrimSpace(strings.Join(all, "\n"))
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(page, -1)
	if len(blocks) != 2 {
		t.Fatalf("event-time.md has %d blocks of Go, not a window and a rule", len(blocks))
	}
	for _, b := range blocks {
		if !strings.Contains(lines(source), lines(b[1])) {
			t.Errorf("event-time.md shows what this file does not have:\n%s", b[1])
		}
	}
	for i, name := range []string{"till.takings", "till.twice"} {
		if d := till()[i]; d.Name != name || len(d.Topics) != 1 || d.Topics[0].Name != events.Payments.Name || len(d.Types) != 1 {
			t.Errorf("operator %d is %+v", i, d)
		}
	}
}
