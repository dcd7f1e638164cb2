package orders

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/feira-shop/feira/services/orders/api"
	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/money"
	"github.com/feira-shop/feira/shared/web"
)

// PlaceOrder takes a checkout. The order's id follows from customer and key, so a repeat meets the order that is
// there: it is refused by the expected version and answered with what the first one was.
func (h *handlers) PlaceOrder(ctx context.Context, r api.PlaceOrderRequestObject) (api.PlaceOrderResponseObject, error) {
	key, err := web.IdempotencyKey(r.Params.IdempotencyKey)
	if err != nil {
		return nil, err
	}
	if err := supported(*r.Body); err != nil {
		return nil, err
	}
	id := OrderID(caller(ctx).Subject, key)
	wait, applied := web.Wait(r.Params.Prefer)
	p, stop := h.watch(id, wait)
	defer stop()
	o, err := h.place(ctx, id, key, *r.Body)
	if err != nil {
		return nil, err
	}
	headers := api.PlaceOrder201ResponseHeaders{Location: "/v1/orders/" + id, PreferenceApplied: applied}
	if o.Events == nil {
		headers.IdempotentReplayed = &yes
		if wait == 0 { // the first answer again
			if o, err = decider.At(ctx, h.store, Rules, Stream(id), eventstore.Until{Version: 1}); err != nil {
				return nil, err
			}
		}
	}
	o, err = h.await(ctx, id, o, p, func(o decider.Outcome[Order]) bool { return o.State.Status != Placed })
	if err != nil {
		return nil, err
	}
	body, err := h.view(ctx, o)
	if err != nil {
		return nil, err
	}
	headers.ETag = web.ETag(o.Version)
	return api.PlaceOrder201JSONResponse{Body: body, Headers: headers}, nil
}

var yes = "true"

// supported refuses what is described but not built yet, by name.
func supported(c api.Checkout) error {
	refuse := func(param, what string) error {
		return web.NewError(web.Unprocessable, "not_supported", what+" is not built yet.").At(param)
	}
	switch {
	case c.Payment.Method != api.CheckoutPaymentMethodCard:
		return refuse("payment.method", "Payment by "+string(c.Payment.Method))
	case c.Coupon != "":
		return refuse("coupon", "A coupon")
	case c.Instalments > 1:
		return refuse("instalments", "Payment in instalments")
	}
	return CheckToken(c.Payment.Token)
}

// place runs the command. A repeat whose product is not sold any more still gets its order.
func (h *handlers) place(ctx context.Context, id, key string, c api.Checkout) (decider.Outcome[Order], error) {
	cmd, err := h.command(ctx, id, c)
	if err == nil {
		return decider.Handle(ctx, h.store, Rules, Stream(id), cmd, meta(ctx, id, key), decider.Fresh())
	}
	o, loadErr := decider.Load(ctx, h.store, Rules, Stream(id))
	if loadErr != nil || !o.State.Exists() {
		return o, errors.Join(err, loadErr)
	}
	if o.State.Fingerprint != cmd.Fingerprint {
		return o, &KeyReusedError{Order: id}
	}
	return o, nil
}

// command makes the Place of a checkout. With an error it still carries the fingerprint.
func (h *handlers) command(ctx context.Context, id string, c api.Checkout) (Place, error) {
	canonical, err := json.Marshal(c)
	if err != nil {
		return Place{}, fmt.Errorf("encode the checkout: %w", err)
	}
	now := h.now().UTC().Truncate(1000) // Postgres keeps microseconds
	cmd := Place{
		Order: id, Number: Number(id), Customer: caller(ctx).Subject, PaymentMethod: string(c.Payment.Method),
		Personal: events.Personal{Email: c.Email, Address: address(c.ShippingAddress), Token: c.Payment.Token},
		PlacedAt: now, ConfirmBy: now.Add(h.cfg.Deadline), Fingerprint: fingerprint(canonical),
	}
	wanted := make([]events.Quantity, len(c.Lines))
	skus := make([]string, len(c.Lines))
	for i, l := range c.Lines {
		wanted[i], skus[i] = events.Quantity{SKU: l.Sku, Quantity: l.Quantity}, l.Sku
	}
	sold, err := products(ctx, h.store, skus)
	if err != nil {
		return cmd, err
	}
	if cmd.Lines, err = priceLines(wanted, sold); err != nil {
		return cmd, err
	}
	if cmd.Shipping, err = shippingFor(cmd.Lines); err != nil {
		return cmd, err
	}
	cmd.Discount = money.New(0, cmd.Shipping.Currency)
	return cmd, nil
}

func address(a api.Address) events.Address {
	return events.Address{Name: a.Name, Street: a.Street, City: a.City, State: a.State, PostalCode: a.PostalCode, Country: a.Country}
}

func unknownProduct(e *UnknownProductError) *web.Error {
	code, detail := "unknown_sku", "There is no product %q."
	if e.Inactive {
		code, detail = "inactive_product", "The product %q is not sold any more."
	}
	return web.NewError(web.Unprocessable, code, fmt.Sprintf(detail, e.SKU)).
		At(fmt.Sprintf("lines.%d.sku", e.Line))
}
