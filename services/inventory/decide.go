package inventory

import (
	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
)

// Shelf is one product's stock, in pieces. 0 ≤ Reserved ≤ OnHand.
type Shelf struct{ OnHand, Reserved int64 }

// Available is what may still be promised.
func (s Shelf) Available() int64 { return s.OnHand - s.Reserved }

// Shelves is the stock by SKU. A product that never came in is simply not there.
type Shelves map[string]Shelf

// Status is how a reservation stands.
type Status string

// The states of a reservation; the zero Status is one that nobody has asked for yet.
const (
	Reserved Status = "reserved"
	Refused  Status = "refused"
	Released Status = "released"
	Closed   Status = "closed" // cancelled before it was asked for: what comes later is answered with nothing
)

// Reservation is what is set aside for one order.
type Reservation struct {
	Order  string            `json:"order,omitempty"`
	Status Status            `json:"status,omitempty"`
	Lines  []events.Quantity `json:"lines,omitempty"`
}

// Commands of a reservation.
type (
	// Reserve asks for all lines or none.
	Reserve struct {
		Order string
		Lines []events.Quantity
	}
	// Release gives back whatever is set aside.
	Release struct{ Order string }
)

// ReservationClosed is kept by inventory to itself: the order was cancelled before its stock was asked for.
type ReservationClosed struct {
	Order string `json:"order"`
}

// EventType of a private event is under the service's own name.
func (ReservationClosed) EventType() string { return "shop.feira.inventory.reservation_closed.v1" }

// EventKey is the order.
func (e ReservationClosed) EventKey() string { return e.Order }

// Decide answers a command. It reads the shelves as they are; [Apply] changes them.
func Decide(shelves Shelves, r Reservation, cmd any) ([]events.Event, error) {
	switch c := cmd.(type) {
	case Reserve:
		return reserve(shelves, r, c), nil
	case Release:
		return release(r, c), nil
	}
	return nil, decider.Unknown(cmd)
}

func reserve(shelves Shelves, r Reservation, c Reserve) []events.Event {
	if r.Status != "" {
		return nil
	}
	wanted := total(c.Lines)
	var missing []events.Missing
	for _, l := range wanted {
		if a := shelves[l.SKU].Available(); a < l.Quantity {
			missing = append(missing, events.Missing{SKU: l.SKU, Wanted: l.Quantity, Available: a})
		}
	}
	if len(missing) > 0 {
		return events.List(events.StockRefused{Order: c.Order, Missing: missing})
	}
	return events.List(events.StockReserved{Order: c.Order, Lines: wanted})
}

// total adds up lines of the same product, in the order of their first occurrence.
func total(lines []events.Quantity) []events.Quantity {
	at := map[string]int{}
	sum := make([]events.Quantity, 0, len(lines))
	for _, l := range lines {
		i, seen := at[l.SKU]
		if !seen {
			at[l.SKU] = len(sum)
			sum = append(sum, l)
			continue
		}
		sum[i].Quantity += l.Quantity
	}
	return sum
}

func release(r Reservation, c Release) []events.Event {
	switch r.Status {
	case Reserved:
		return events.List(events.StockReleased{Order: c.Order, Lines: r.Lines})
	case "":
		return events.List(ReservationClosed(c))
	}
	return nil
}

// Evolve folds an event into the reservation.
func Evolve(r Reservation, event events.Event) Reservation {
	switch e := event.(type) {
	case events.StockReserved:
		return Reservation{Order: e.Order, Status: Reserved, Lines: e.Lines}
	case events.StockRefused:
		return Reservation{Order: e.Order, Status: Refused}
	case events.StockReleased:
		r.Status = Released
	case ReservationClosed:
		return Reservation{Order: e.Order, Status: Closed}
	}
	return r
}

// Apply changes the shelves by an event, in place: the batch works on a copy of its own.
func Apply(shelves Shelves, event events.Event) {
	switch e := event.(type) {
	case events.StockReserved:
		move(shelves, e.Lines, 1)
	case events.StockReleased:
		move(shelves, e.Lines, -1)
	case events.StockReceived:
		s := shelves[e.SKU]
		s.OnHand += e.Quantity
		shelves[e.SKU] = s
	}
}

func move(shelves Shelves, lines []events.Quantity, sign int64) {
	for _, l := range lines {
		s := shelves[l.SKU]
		s.Reserved += sign * l.Quantity
		shelves[l.SKU] = s
	}
}
