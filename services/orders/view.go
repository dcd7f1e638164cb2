package orders

import (
	"context"
	"fmt"
	"time"

	"github.com/feira-shop/feira/services/orders/api"
	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/money"
)

// view shows an order as it is at a version.
func (h *handlers) view(ctx context.Context, o decider.Outcome[Order]) (api.Order, error) {
	updated := o.State.PlacedAt
	switch {
	case o.Version <= 1:
	case !o.ChangedAt.IsZero():
		updated = o.ChangedAt
	default:
		err := h.store.Pool().QueryRow(ctx, `select es_changed_at($1, $2)`,
			Stream(o.State.ID), o.Version).Scan(&updated)
		if err != nil {
			return api.Order{}, fmt.Errorf("read when order %s changed: %w", o.State.ID, err)
		}
	}
	return show(o.State, o.Version, updated), nil
}

func show(o Order, version int64, updated time.Time) api.Order {
	shown := api.Order{
		Id: o.ID, Number: o.Number, Customer: o.Customer,
		Status: api.OrderStatus(o.Status), FinancialStatus: api.FinancialStatus(o.Financial), Reason: o.Reason,
		Lines: make([]api.OrderLine, len(o.Lines)), Subtotal: o.Subtotal, Shipping: o.Shipping, Discount: o.Discount, Total: o.Total,
		Payment:  api.OrderPayment{Method: o.Method},
		PlacedAt: o.PlacedAt, UpdatedAt: updated.UTC(), Version: version,
	}
	for i, l := range o.Lines {
		shown.Lines[i] = api.OrderLine{Sku: l.SKU, Name: l.Name, Quantity: l.Quantity, UnitPrice: l.UnitPrice, Total: l.Total}
	}
	if o.Payment != nil {
		shown.Payment.Id, shown.Payment.Brand, shown.Payment.LastFour = o.Payment.ID, o.Payment.Brand, o.Payment.LastFour
	}
	if o.Returned > 0 {
		shown.Refunded = money.New(o.Returned, o.Total.Currency)
	}
	if o.Status == OnHold && o.Hold != nil {
		shown.NextAction = api.NextAction{Type: api.NextActionTypeRelease, DuplicateOf: o.Hold.DuplicateOf, Until: o.Hold.Until}
	}
	return shown
}
