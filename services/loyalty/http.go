package loyalty

import (
	"context"

	"github.com/go-chi/chi/v5"

	"github.com/feira-shop/feira/services/loyalty/api"
	"github.com/feira-shop/feira/shared/auth"
	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/service"
	"github.com/feira-shop/feira/shared/web"
)

// handlers are the service's part of the public API.
type handlers struct{ store *eventstore.Store }

func routes(rt service.Runtime, r chi.Router) {
	strict := api.NewStrictHandlerWithOptions(&handlers{rt.Store}, nil, api.StrictHTTPServerOptions{
		RequestErrorHandlerFunc:  web.Malformed(rt.Log),
		ResponseErrorHandlerFunc: web.Failures(rt.Log),
	})
	api.HandlerWithOptions(strict, api.ChiServerOptions{BaseRouter: r, ErrorHandlerFunc: web.Malformed(rt.Log)})
}

// GetLoyalty reads an account. One that never earned has no points; another customer's is not found.
func (h *handlers) GetLoyalty(ctx context.Context, r api.GetLoyaltyRequestObject) (api.GetLoyaltyResponseObject, error) {
	if who, _ := auth.FromContext(ctx); !who.MaySee(r.Id) {
		return nil, web.NewError(web.NotFound, "", "There is no such customer.")
	}
	account, err := decider.Load(ctx, h.store, Rules, Stream(r.Id))
	if err != nil {
		return nil, err
	}
	answer := api.GetLoyalty200JSONResponse{Customer: r.Id, Points: account.State.Balance()}
	for _, p := range account.State.Orders {
		answer.Earned += p.Earned
		answer.Reversed += p.Reversed
	}
	return answer, nil
}
