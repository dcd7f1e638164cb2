package orders

import (
	"context"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/feira-shop/feira/services/orders/api"
	"github.com/feira-shop/feira/shared/auth"
	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/money"
	"github.com/feira-shop/feira/shared/service"
	"github.com/feira-shop/feira/shared/telemetry"
	"github.com/feira-shop/feira/shared/web"
)

// handlers are the service's part of the public API.
type handlers struct {
	store *eventstore.Store
	cfg   Config
	now   func() time.Time
}

func routes(cfg Config) func(rt service.Runtime, r chi.Router) {
	return func(rt service.Runtime, r chi.Router) {
		h := &handlers{store: rt.Store, cfg: cfg, now: time.Now}
		strict := api.NewStrictHandlerWithOptions(h, nil, api.StrictHTTPServerOptions{
			RequestErrorHandlerFunc:  web.Malformed(rt.Log),
			ResponseErrorHandlerFunc: web.Failures(rt.Log, failures...),
		})
		api.HandlerWithOptions(strict, api.ChiServerOptions{BaseRouter: r, ErrorHandlerFunc: web.Malformed(rt.Log)})
	}
}

// failures is the table of this service's errors.
var failures = []web.Mapper{
	web.Map(func(*NotFoundError) *web.Error { return web.NewError(web.NotFound, "", "") }),
	web.Map(func(*KeyReusedError) *web.Error {
		return web.NewError(web.Unprocessable, "idempotency_key_reused", "This Idempotency-Key was used for another request; use a new key for a new request.").At("Idempotency-Key")
	}),
	web.Map(func(e *TransitionError) *web.Error {
		return web.NewError(web.Conflict, transitionCodes[e.Wish], "The order is "+string(e.Status)+".")
	}),
	web.Map(func(e *HoldEndedError) *web.Error {
		return web.NewError(web.Conflict, transitionCodes["release"], "The hold ended at "+e.Until.Format(time.RFC3339)+"; the order is being cancelled.")
	}),
	web.Map(func(*ForbiddenError) *web.Error {
		return web.NewError(web.Forbidden, "operator_only", "Only an operator may release this hold.")
	}),
	web.Map(func(e *RefundError) *web.Error {
		return web.NewError(web.Unprocessable, "refund_exceeds_paid", "Of what was paid, "+e.Left.String()+" is left.").At("amount")
	}),
	web.Map(func(*money.MismatchError) *web.Error {
		return web.NewError(web.Unprocessable, "currency_mismatch", "All amounts of an order have one currency.")
	}),
	web.Map(func(*money.OverflowError) *web.Error {
		return web.NewError(web.Unprocessable, "amount_too_large", "The total is beyond what can be counted.").At("lines")
	}),
	web.Map(unknownProduct),
	web.Map(func(e *RefusedTokenError) *web.Error {
		return web.NewError(web.Unprocessable, e.Code, e.Reason).At("payment.token")
	}),
	web.Map(func(*eventstore.ConflictError) *web.Error {
		return web.NewError(web.PreconditionFailed, "", "").At("If-Match")
	}),
	web.Map(func(*eventstore.ArchivedError) *web.Error {
		return web.NewError(web.NotFound, "history_archived", "The order is there, its history is archived; the shop can bring it back.")
	}),
	web.Is(eventstore.ErrUnknown, web.NewError(web.Unavailable, "outcome_unknown", "Repeat the same request with the same key to learn its outcome.")),
}

var transitionCodes = map[string]string{"cancel": "not_cancellable", "release": "not_on_hold", "refund": "not_paid"}

// caller is who asks; the router has authenticated them.
func caller(ctx context.Context) auth.Claims {
	c, _ := auth.FromContext(ctx)
	return c
}

// read loads an order that the caller may see; another's is not found.
func (h *handlers) read(ctx context.Context, id string) (decider.Outcome[Order], error) {
	telemetry.About(ctx, id)
	o, err := decider.LoadChanged(ctx, h.store, Rules, Stream(id))
	if err != nil {
		return o, err
	}
	if !o.State.Exists() || !caller(ctx).MaySee(o.State.Customer) {
		return o, &NotFoundError{Command: "a read"}
	}
	return o, nil
}

// meta is what events of a request carry.
func meta(ctx context.Context, order, key string) events.Meta {
	return events.Meta{Correlation: order, Causation: key, Actor: caller(ctx).Subject}
}

// patience is how long a request may wait for an order to change.
type patience struct {
	changed <-chan struct{}
	limit   time.Duration
}

// watch notices from now on what happens to an order; call it before the order is read. The caller must call stop.
func (h *handlers) watch(id string, limit time.Duration) (p patience, stop func()) {
	if limit <= 0 {
		return patience{}, func() {}
	}
	changed, stop := h.store.Watch(Stream(id))
	return patience{changed, limit}, stop
}

// await waits until done says so of an order that was read, and returns it as it last was.
func (h *handlers) await(ctx context.Context, id string, o decider.Outcome[Order], p patience, done func(decider.Outcome[Order]) bool) (decider.Outcome[Order], error) {
	if p.limit <= 0 || done(o) {
		return o, nil
	}
	defer web.Waiting(ctx)()
	limit := time.NewTimer(p.limit)
	defer limit.Stop()
	for {
		select {
		case <-p.changed:
		case <-limit.C:
			return o, nil
		case <-web.Draining(ctx):
			return o, nil
		case <-ctx.Done():
			return o, ctx.Err()
		}
		now, err := decider.LoadChanged(ctx, h.store, Rules, Stream(id))
		if err != nil {
			return now, err
		}
		if o = now; done(o) {
			return o, nil
		}
	}
}

// GetOrder reads an order; with If-None-Match and Prefer: wait it is a long poll.
func (h *handlers) GetOrder(ctx context.Context, r api.GetOrderRequestObject) (api.GetOrderResponseObject, error) {
	known, err := web.IfNoneMatch(r.Params.IfNoneMatch)
	if err != nil {
		return nil, err
	}
	wait, applied := web.Wait(r.Params.Prefer)
	if !known.Given() {
		wait, applied = 0, nil
	}
	p, stop := h.watch(r.Id, wait)
	defer stop()
	o, err := h.read(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	o, err = h.await(ctx, r.Id, o, p, func(o decider.Outcome[Order]) bool { return !known.Names(o.Version) })
	if err != nil {
		return nil, err
	}
	if known.Names(o.Version) {
		return api.GetOrder304Response{Headers: api.GetOrder304ResponseHeaders{ETag: web.ETag(o.Version), PreferenceApplied: applied}}, nil
	}
	body, err := h.view(ctx, o)
	if err != nil {
		return nil, err
	}
	return api.GetOrder200JSONResponse{Body: body, Headers: api.GetOrder200ResponseHeaders{ETag: web.ETag(o.Version), PreferenceApplied: applied}}, nil
}
