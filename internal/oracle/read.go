package oracle

import (
	"context"

	"github.com/feira-shop/feira/services/fraud"
	"github.com/feira-shop/feira/services/inventory"
	"github.com/feira-shop/feira/services/loyalty"
	"github.com/feira-shop/feira/services/orders"
	"github.com/feira-shop/feira/services/payments"
	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
)

// provider is the name of the payment provider's database.
const provider = "provider"

// pass reads everything once.
func (e *examiner) pass(ctx context.Context) (Report, error) {
	b := newBooks(e.cfg.Analytics)
	if err := e.readLate(ctx, b); err != nil {
		return Report{}, err
	}
	for _, s := range []struct {
		name string
		each func(*books, events.Recorded)
	}{
		{"analytics", readAnalytics}, {"catalog", readCatalog}, {"loyalty", readLoyalty}, {"fraud", readFraud},
		{"inventory", readInventory}, {"payments", (&judge{fraud.NewReplay(e.cfg.Fraud.Judge())}).readPayments}, {"orders", readOrders},
	} {
		if e.stores[s.name] == nil {
			continue
		}
		e.progress("reading " + s.name)
		if err := e.readStore(ctx, b, s.name, e.kinds(s.name), func(r events.Recorded) { s.each(b, r) }); err != nil {
			return Report{}, err
		}
	}
	e.progress("comparing")
	for _, check := range []func(context.Context, *books) error{e.checkStock, e.checkProducts, e.checkLedger, e.checkWindows} {
		if err := check(ctx, b); err != nil {
			return Report{}, err
		}
	}
	checkAccounts(b)
	checkVerdicts(b)
	report := Report{Events: b.events, Totals: totals(b), Behind: b.behind, Notes: b.notes}
	report.Open = checkStories(b)
	report.Differences = b.differences()
	for _, s := range b.stories {
		if s.placed != nil {
			report.Orders++
		}
	}
	return report, nil
}

func (e *examiner) kinds(service string) []decider.Kind {
	for _, d := range e.cfg.Services {
		if d.Name == service {
			return d.Streams
		}
	}
	return nil
}

func readCatalog(b *books, r events.Recorded) {
	if p, ok := r.Event.(events.ProductChanged); ok {
		b.products[p.SKU] = p
	}
}

func readLoyalty(b *books, r events.Recorded) {
	switch e := r.Event.(type) {
	case events.PointsEarned:
		b.earned[e.Customer] = loyalty.Evolve(b.earned[e.Customer], e)
	case events.PointsReversed:
		b.earned[e.Customer] = loyalty.Evolve(b.earned[e.Customer], e)
	}
}

func readFraud(b *books, r events.Recorded) {
	switch e := r.Event.(type) {
	case events.PurchaseCleared:
		s := b.story(e.Order)
		s.verdicts++
		s.cleared = true
		b.verdicts[e.Payment] = e
	case events.PurchaseHeld:
		b.story(e.Order).verdicts++
		b.verdicts[e.Payment] = e
	}
}

func readInventory(b *books, r events.Recorded) {
	inventory.Apply(b.shelves, r.Event)
	var order string
	switch e := r.Event.(type) {
	case events.StockReserved:
		order = e.Order
		b.story(order).answers++
	case events.StockRefused:
		order = e.Order
		b.story(order).answers++
	case events.StockReleased:
		order = e.Order
	case inventory.ReservationClosed:
		order = e.Order
	default:
		return
	}
	s := b.story(order)
	s.stock = inventory.Evolve(s.stock, r.Event)
}

func readOrders(b *books, r events.Recorded) {
	order := r.Key
	s := b.story(order)
	s.order = orders.Evolve(s.order, r.Event)
	s.noted[r.Type]++
	b.windows.order(r)
	switch e := r.Event.(type) {
	case events.OrderPlaced:
		s.placed = &e
	case events.OrderReleased:
		s.released = true
	}
}

// judge gives fraud's verdicts anew. A card is one partition, so the store's order is the order of its offsets.
type judge struct{ again *fraud.Replay }

func (j *judge) readPayments(b *books, r events.Recorded) {
	if _, published := events.TopicOf(r.Type); !published {
		if order := orderOf(r); order != "" {
			s := b.story(order)
			s.payment = payments.Evolve(s.payment, r.Event)
		}
		return
	}
	var p events.Purchase
	if e, ok := r.Event.(interface{ About() events.Purchase }); ok {
		p = e.About()
	}
	s := b.story(p.Order)
	s.payment = payments.Evolve(s.payment, r.Event)
	s.said[r.Type]++
	s.amount = p.Amount.Amount
	j.judge(b, r, p)
	earn(b, r.Event, p)
	b.windows.payment(r)
	if e, ok := r.Event.(events.PaymentRefunded); ok {
		s.refunded += e.Refunded.Amount
	}
}

func (j *judge) judge(b *books, r events.Recorded, p events.Purchase) {
	for _, verdict := range j.again.Apply(r, fraud.TooLate(b.verdicts[p.Payment])) {
		b.judged[p.Payment] = verdict
	}
}

// earn computes what loyalty should have made of a payment's event.
func earn(b *books, e events.Event, p events.Purchase) {
	account := b.accounts[p.Customer]
	var cmd any
	switch e := e.(type) {
	case events.PaymentCaptured:
		cmd = loyalty.Earn{Customer: p.Customer, Order: p.Order, Paid: p.Amount}
	case events.PaymentRefunded:
		cmd = loyalty.Reverse{Customer: p.Customer, Order: p.Order, RefundedSoFar: e.RefundedSoFar, Captured: p.Amount}
	default:
		return
	}
	happened, err := loyalty.Decide(account, cmd)
	if err != nil {
		b.fault("loyalty: %v", err)
	}
	for _, h := range happened {
		account = loyalty.Evolve(account, h)
	}
	b.accounts[p.Customer] = account
}
