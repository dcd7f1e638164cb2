package analytics

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/feira-shop/feira/shared/events"
)

// Cell is an action in a minute.
type Cell struct {
	Action string
	Minute time.Time
}

// CellOf is where a click counts: by the time that it carries, however long ago that is.
func CellOf(e events.UserActed) Cell {
	return Cell{Action: e.Action, Minute: e.Timestamp.Time().Truncate(time.Minute)}
}

func compareCells(a, b Cell) int {
	return cmp.Or(cmp.Compare(a.Action, b.Action), a.Minute.Compare(b.Minute))
}

// Spend is what an account paid and got back, in minor units of one currency.
type Spend struct {
	Payments int64 `json:"payments"`
	Captured int64 `json:"captured"`
	Refunds  int64 `json:"refunds"`
	Refunded int64 `json:"refunded"`
}

// SpendOf is what one event of payments adds to an account in a currency; false for events that move no money.
func SpendOf(r events.Recorded) (account, currency string, s Spend, ok bool) {
	switch e := r.Event.(type) {
	case events.PaymentCaptured:
		return e.Customer, e.Amount.Currency, Spend{Payments: 1, Captured: e.Amount.Amount}, true
	case events.PaymentRefunded:
		return e.Customer, e.Refunded.Currency, Spend{Refunds: 1, Refunded: e.Refunded.Amount}, true
	}
	return "", "", Spend{}, false
}

// Add is both together.
func (s Spend) Add(o Spend) Spend {
	return Spend{s.Payments + o.Payments, s.Captured + o.Captured, s.Refunds + o.Refunds, s.Refunded + o.Refunded}
}

// Ranked is how many products a ranking has at most.
const Ranked = 10

// Sold is how much of a product orders have.
type Sold struct {
	Quantity int64 `json:"quantity"`
	Orders   int64 `json:"orders"`
}

// Sales are the products of a window, by sku.
type Sales map[string]Sold

// SalesOf is what one confirmed order adds.
func SalesOf(r events.Recorded) Sales {
	e, ok := r.Event.(events.OrderConfirmed)
	if !ok {
		return nil
	}
	s := Sales{}
	for _, l := range e.Lines {
		s[l.SKU] = Sold{Quantity: s[l.SKU].Quantity + l.Quantity, Orders: 1}
	}
	return s
}

// Add is both together; neither is changed.
func (s Sales) Add(o Sales) Sales {
	if len(s) < len(o) {
		s, o = o, s
	}
	sum := maps.Clone(s)
	for sku, n := range o {
		sum[sku] = Sold{sum[sku].Quantity + n.Quantity, sum[sku].Orders + n.Orders}
	}
	return sum
}

// Product is one place of a ranking.
type Product struct {
	SKU string `json:"sku"`
	Sold
}

// Top is the ranking: by pieces, and by sku where there are as many.
func (s Sales) Top() []Product {
	all := make([]Product, 0, len(s))
	for sku, n := range s {
		all = append(all, Product{sku, n})
	}
	slices.SortFunc(all, func(a, b Product) int {
		return cmp.Or(cmp.Compare(b.Quantity, a.Quantity), cmp.Compare(a.SKU, b.SKU))
	})
	return slices.Clip(all[:min(Ranked, len(all))])
}
