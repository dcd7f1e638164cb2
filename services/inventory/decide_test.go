package inventory

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/decider/decidertest"
	"github.com/feira-shop/feira/shared/events"
)

const o1 = "order-1"

var stocked = Shelves{"CAFE": {OnHand: 10, Reserved: 4}, "MEL": {OnHand: 3}}

// on is a reservation in front of these shelves.
func on(shelves Shelves, history ...events.Event) decidertest.Spec[Reservation] {
	return decidertest.New(decider.Decider[Reservation]{
		Decide: func(r Reservation, cmd any) ([]events.Event, error) { return Decide(shelves, r, cmd) }, Evolve: Evolve, Shape: shape,
	}).Given(history...)
}

func pieces(of ...any) []events.Quantity {
	var lines []events.Quantity
	for i := 0; i < len(of); i += 2 {
		lines = append(lines, events.Quantity{SKU: of[i].(string), Quantity: int64(of[i+1].(int))})
	}
	return lines
}

func TestAllLinesOrNone(t *testing.T) {
	t.Parallel()
	on(stocked).When(Reserve{o1, pieces("CAFE", 6, "MEL", 3)}).
		Then(t, events.StockReserved{Order: o1, Lines: pieces("CAFE", 6, "MEL", 3)})
	on(stocked).When(Reserve{o1, pieces("CAFE", 7, "MEL", 3)}).
		Then(t, events.StockRefused{Order: o1, Missing: []events.Missing{{SKU: "CAFE", Wanted: 7, Available: 6}}})
	on(stocked).When(Reserve{o1, pieces("NO-SUCH", 1, "MEL", 4, "CAFE", 1)}).
		Then(t, events.StockRefused{Order: o1, Missing: []events.Missing{{SKU: "NO-SUCH", Wanted: 1}, {SKU: "MEL", Wanted: 4, Available: 3}}})
}

func TestLinesOfOneProductAddUp(t *testing.T) {
	t.Parallel()
	on(stocked).When(Reserve{o1, pieces("CAFE", 4, "MEL", 1, "CAFE", 2)}).
		Then(t, events.StockReserved{Order: o1, Lines: pieces("CAFE", 6, "MEL", 1)})
	on(stocked).When(Reserve{o1, pieces("CAFE", 4, "CAFE", 3)}).
		Then(t, events.StockRefused{Order: o1, Missing: []events.Missing{{SKU: "CAFE", Wanted: 7, Available: 6}}})
}

func TestAnOrderIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	reserved, refused := events.StockReserved{Order: o1, Lines: pieces("MEL", 1)}, events.StockRefused{Order: o1}
	released, closed := events.StockReleased{Order: o1, Lines: pieces("MEL", 1)}, ReservationClosed{Order: o1}
	again, cancelled := Reserve{o1, pieces("MEL", 1)}, Release{o1}
	on(stocked, reserved).When(again).ThenNothing(t)
	on(stocked, refused).When(again).ThenNothing(t)
	on(stocked, reserved, released).When(again).ThenNothing(t)
	on(stocked, reserved).When(cancelled).Then(t, released)
	on(stocked, refused).When(cancelled).ThenNothing(t)
	on(stocked, reserved, released).When(cancelled).ThenNothing(t)
	// Cancelled before it was placed: remembered, and nothing is set aside later.
	on(stocked).When(cancelled).Then(t, closed)
	on(stocked, closed).When(again).ThenNothing(t)
	on(stocked, closed).When(cancelled).ThenNothing(t)

	var unknown *decider.UnknownCommandError
	on(stocked).When("hello").ThenError(t, &unknown)
}

func TestTheStateHasThisShape(t *testing.T) {
	t.Parallel()
	r := Evolve(Reservation{}, events.StockReserved{Order: o1, Lines: pieces("MEL", 1)})
	got, err := json.Marshal(r)
	if want := `{"order":"order-1","status":"reserved","lines":[{"sku":"MEL","quantity":1}]}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func TestTheReservationObeysTheLawsOfDeciders(t *testing.T) {
	t.Parallel()
	rules := decider.Decider[Reservation]{
		Decide: func(r Reservation, cmd any) ([]events.Event, error) { return Decide(stocked, r, cmd) }, Evolve: Evolve, Shape: shape,
	}
	decidertest.Laws(t, rules, func(t *rapid.T, _ Reservation) any {
		if rapid.Bool().Draw(t, "cancel") {
			return Release{o1}
		}
		return Reserve{o1, drawLines(t)}
	})
}

func drawLines(t *rapid.T) []events.Quantity {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) events.Quantity {
		return events.Quantity{SKU: rapid.SampledFrom([]string{"CAFE", "MEL", "CHA", "NO-SUCH"}).Draw(t, "sku"), Quantity: rapid.Int64Range(1, 8).Draw(t, "quantity")}
	}), 1, 4).Draw(t, "lines")
}

// 0 ≤ reserved ≤ on hand, and what is reserved is what the reservations say, after any history.
func TestShelvesNeverContradictTheReservations(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		shelves, reservations := Shelves{}, map[string]Reservation{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			order := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "order")
			var happened []events.Event
			var err error
			before := maps.Clone(shelves)
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				happened = events.List(events.StockReceived{SKU: rapid.SampledFrom([]string{"CAFE", "MEL", "CHA"}).Draw(t, "sku"), Quantity: rapid.Int64Range(1, 20).Draw(t, "n")})
			case 1:
				happened, err = Decide(shelves, reservations[order], Release{order})
			default:
				happened, err = Decide(shelves, reservations[order], Reserve{order, drawLines(t)})
			}
			if err != nil || !reflect.DeepEqual(before, shelves) {
				t.Fatalf("%v; the decision changed the shelves from %v to %v", err, before, shelves)
			}
			for _, e := range happened {
				Apply(shelves, e)
				if _, receipt := e.(events.StockReceived); !receipt {
					reservations[order] = Evolve(reservations[order], e)
				}
			}
			if err := consistent(shelves, reservations); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func consistent(shelves Shelves, reservations map[string]Reservation) error {
	reserved := map[string]int64{}
	for _, r := range reservations {
		if r.Status == Reserved {
			for _, l := range r.Lines {
				reserved[l.SKU] += l.Quantity
			}
		}
	}
	for sku, s := range shelves {
		if s.Reserved < 0 || s.Reserved > s.OnHand || s.Reserved != reserved[sku] {
			return errors.New("the shelf of " + sku + " contradicts the reservations")
		}
		delete(reserved, sku)
	}
	for sku, n := range reserved {
		if n > 0 {
			return errors.New("reserved what never came in: " + sku)
		}
	}
	return nil
}
