package orders

import (
	"context"
	"errors"

	"github.com/feira-shop/feira/services/orders/api"
	"github.com/feira-shop/feira/shared/auth"
	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/web"
)

// change runs a command on an order that the caller may see, and answers with the order.
func (h *handlers) change(ctx context.Context, id, key string, ifMatch *string, cmd any) (api.OrderAcceptedJSONResponse, error) {
	var accepted api.OrderAcceptedJSONResponse
	match, err := web.IfMatch(ifMatch)
	if err != nil {
		return accepted, err
	}
	before, err := h.read(ctx, id)
	if err != nil {
		return accepted, err
	}
	var opts []decider.Option
	if !before.State.carriedOut(key) { // a repeat is answered, whatever the version is by now
		if err := match.Check(before.Version); err != nil {
			return accepted, err
		}
		if v, only := match.Version(); only { // * is content with whatever is there
			opts = append(opts, decider.IfVersion(v))
		}
	}
	o, err := decider.Handle(ctx, h.store, Rules, Stream(id), cmd, meta(ctx, id, key), opts...)
	var conflict *eventstore.ConflictError
	if errors.As(err, &conflict) && o.State.carriedOut(key) { // by a repeat at the same time
		o, err = decider.Handle(ctx, h.store, Rules, Stream(id), cmd, meta(ctx, id, key))
	}
	if err != nil {
		return accepted, err
	}
	if o.Events == nil {
		accepted.Headers.IdempotentReplayed = &yes
	}
	accepted.Headers.ETag = web.ETag(o.Version)
	accepted.Body, err = h.view(ctx, o)
	return accepted, err
}

// carriedOut reports whether the order remembers the request.
func (o Order) carriedOut(key string) bool {
	_, command := o.Commands[key]
	_, refund := o.Refunds[key]
	return command || refund
}

// CancelOrder cancels an order.
func (h *handlers) CancelOrder(ctx context.Context, r api.CancelOrderRequestObject) (api.CancelOrderResponseObject, error) {
	key, err := web.IdempotencyKey(r.Params.IdempotencyKey)
	if err != nil {
		return nil, err
	}
	cmd := Cancel{Command: key, By: caller(ctx).Subject}
	if r.Body != nil {
		cmd.Detail = r.Body.Reason
	}
	accepted, err := h.change(ctx, r.Id, key, r.Params.IfMatch, cmd)
	return api.CancelOrder202JSONResponse{OrderAcceptedJSONResponse: accepted}, err
}

// ReleaseOrder lets a held order go on.
func (h *handlers) ReleaseOrder(ctx context.Context, r api.ReleaseOrderRequestObject) (api.ReleaseOrderResponseObject, error) {
	key, err := web.IdempotencyKey(r.Params.IdempotencyKey)
	if err != nil {
		return nil, err
	}
	who, now := caller(ctx), h.now().UTC()
	accepted, err := h.change(ctx, r.Id, key, r.Params.IfMatch, Release{
		Command: key, By: who.Subject, Operator: who.Has(auth.Operator), Now: now, ConfirmBy: now.Add(h.cfg.Deadline),
	})
	return api.ReleaseOrder202JSONResponse{OrderAcceptedJSONResponse: accepted}, err
}

// RefundOrder gives money back.
func (h *handlers) RefundOrder(ctx context.Context, r api.RefundOrderRequestObject) (api.RefundOrderResponseObject, error) {
	key, err := web.IdempotencyKey(r.Params.IdempotencyKey)
	if err != nil {
		return nil, err
	}
	who := caller(ctx)
	accepted, err := h.change(ctx, r.Id, key, r.Params.IfMatch, Refund{
		Command: key, By: who.Subject, Operator: who.Has(auth.Operator), Reason: r.Body.Reason, Amount: r.Body.Amount,
	})
	return api.RefundOrder202JSONResponse{OrderAcceptedJSONResponse: accepted}, err
}
