package oracle

import (
	"fmt"
	"slices"

	"github.com/feira-shop/feira/services/analytics"
	"github.com/feira-shop/feira/services/inventory"
	"github.com/feira-shop/feira/services/loyalty"
	"github.com/feira-shop/feira/services/orders"
	"github.com/feira-shop/feira/services/payments"
	"github.com/feira-shop/feira/shared/events"
)

// story is all that the stores tell of one order.
type story struct {
	order    orders.Order
	placed   *events.OrderPlaced
	noted    map[string]int // events of the order, by type
	stock    inventory.Reservation
	answers  int // of inventory
	payment  payments.Payment
	said     map[string]int // published events of the payment, by type
	amount   int64          // of the payment, as published
	refunded int64          // sum of published refunds
	verdicts int
	cleared  bool
	released bool
}

// books are what one pass has read and computed.
type books struct {
	stories  map[string]*story
	events   int64
	shelves  inventory.Shelves
	accounts map[string]loyalty.Account // as they should be, from the payments
	earned   map[string]loyalty.Account // as loyalty's events say
	products map[string]events.ProductChanged
	judged   map[string]events.Event // the verdict on a payment, as it should be
	verdicts map[string]events.Event // as fraud said it
	windows  *windows
	behind   int64    // events that analytics has still to count
	notes    []string // what was not compared
	faults   []string
}

func newBooks(cfg analytics.Config) *books {
	return &books{
		stories: map[string]*story{}, shelves: inventory.Shelves{}, accounts: map[string]loyalty.Account{}, earned: map[string]loyalty.Account{},
		products: map[string]events.ProductChanged{}, judged: map[string]events.Event{}, verdicts: map[string]events.Event{},
		windows: newWindows(cfg),
	}
}

func (b *books) story(order string) *story {
	s := b.stories[order]
	if s == nil {
		s = &story{noted: map[string]int{}, said: map[string]int{}}
		b.stories[order] = s
	}
	return s
}

// fault notes a difference: where it is, what is there and what should be.
func (b *books) fault(format string, args ...any) {
	b.faults = append(b.faults, fmt.Sprintf(format, args...))
}

// differences are sorted, and bounded so that one broken service does not fill the screen.
func (b *books) differences() []string {
	slices.Sort(b.faults)
	return slices.Compact(b.faults)
}

// typeOf is the type of an event's prototype.
func typeOf(e events.Event) string { return e.EventType() }
