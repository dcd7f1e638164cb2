package loyalty

import (
	"maps"
	"math/big"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/money"
)

// Account is what a customer has, by order.
type Account struct {
	Orders map[string]Points `json:"orders,omitempty"`
}

// Points of one order. 0 ≤ Reversed ≤ Earned.
type Points struct {
	Earned   int64 `json:"earned"`
	Reversed int64 `json:"reversed,omitempty"`
}

// Balance is what the customer may spend.
func (a Account) Balance() int64 {
	var sum int64
	for _, p := range a.Orders {
		sum += p.Earned - p.Reversed
	}
	return sum
}

// Commands of an account.
type (
	// Earn gives points for a captured payment.
	Earn struct {
		Customer, Order string
		Paid            money.Money
	}
	// Reverse takes back the share of the points that was refunded.
	Reverse struct {
		Customer, Order         string
		RefundedSoFar, Captured money.Money
	}
)

// PointsFor is one point for every 100 minor units: one per real.
func PointsFor(paid money.Money) int64 { return paid.Amount / 100 }

// Decide answers a command with what happened. A repeated command changes nothing.
func Decide(a Account, cmd any) ([]events.Event, error) {
	switch c := cmd.(type) {
	case Earn:
		if _, known := a.Orders[c.Order]; known || PointsFor(c.Paid) <= 0 {
			return nil, nil
		}
		return events.List(events.PointsEarned{Customer: c.Customer, Order: c.Order, Points: PointsFor(c.Paid), Paid: c.Paid}), nil
	case Reverse:
		due := due(a.Orders[c.Order], c)
		if due <= 0 {
			return nil, nil
		}
		return events.List(events.PointsReversed{Customer: c.Customer, Order: c.Order, Points: due}), nil
	}
	return nil, decider.Unknown(cmd)
}

// due is what must still be taken back: after refunding a share of the money, the same share of the points is
// kept, rounded down.
func due(p Points, c Reverse) int64 {
	if c.Captured.Amount <= 0 {
		return 0
	}
	kept := big.NewInt(p.Earned)
	kept.Mul(kept, big.NewInt(max(0, c.Captured.Amount-c.RefundedSoFar.Amount)))
	kept.Quo(kept, big.NewInt(c.Captured.Amount))
	return p.Earned - p.Reversed - kept.Int64()
}

// Evolve folds an event into the account.
func Evolve(a Account, event events.Event) Account {
	switch e := event.(type) {
	case events.PointsEarned:
		return a.with(e.Order, Points{Earned: e.Points})
	case events.PointsReversed:
		p := a.Orders[e.Order]
		p.Reversed += e.Points
		return a.with(e.Order, p)
	}
	return a
}

func (a Account) with(order string, p Points) Account {
	orders := maps.Clone(a.Orders)
	if orders == nil {
		orders = map[string]Points{}
	}
	orders[order] = p
	return Account{Orders: orders}
}
