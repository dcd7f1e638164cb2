package inventory

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/services/inventory/api"
	"github.com/feira-shop/feira/shared/auth"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/service"
	"github.com/feira-shop/feira/shared/web"
)

// namespace is that of receipt ids (RFC 9562, version 5).
var namespace = uuid.MustParse("0d3b6a52-6d2a-5c0c-8f7a-6d7a3f5b9e02")

// handlers are the service's part of the public API.
type handlers struct{ store *eventstore.Store }

func routes(rt service.Runtime, r chi.Router) {
	strict := api.NewStrictHandlerWithOptions(&handlers{rt.Store}, nil, api.StrictHTTPServerOptions{
		RequestErrorHandlerFunc: web.Malformed(rt.Log),
		ResponseErrorHandlerFunc: web.Failures(rt.Log, web.Map(func(*ReceiptReusedError) *web.Error {
			return web.NewError(web.Unprocessable, "idempotency_key_reused",
				"This Idempotency-Key was used for another delivery; use a new key for a new delivery.").At("Idempotency-Key")
		})),
	})
	api.HandlerWithOptions(strict, api.ChiServerOptions{BaseRouter: r, ErrorHandlerFunc: web.Malformed(rt.Log)})
}

// GetStock reads a product's stock.
func (h *handlers) GetStock(ctx context.Context, r api.GetStockRequestObject) (api.GetStockResponseObject, error) {
	stock, err := h.stock(ctx, r.Sku)
	return api.GetStock200JSONResponse(stock), err
}

func (h *handlers) stock(ctx context.Context, sku string) (api.Stock, error) {
	var s Shelf
	err := h.store.Pool().QueryRow(ctx, `select on_hand, reserved from stock where sku = $1`, sku).Scan(&s.OnHand, &s.Reserved)
	if errors.Is(err, pgx.ErrNoRows) {
		return api.Stock{}, web.NewError(web.NotFound, "", fmt.Sprintf("No stock of %q ever came in.", sku))
	}
	if err != nil {
		return api.Stock{}, fmt.Errorf("read the stock of %s: %w", sku, err)
	}
	return api.Stock{Sku: sku, OnHand: s.OnHand, Reserved: s.Reserved, Available: s.Available()}, nil
}

// ReceiveStock records that pieces came in. The receipt's id follows from the caller and the key.
func (h *handlers) ReceiveStock(ctx context.Context, r api.ReceiveStockRequestObject) (api.ReceiveStockResponseObject, error) {
	key, err := web.IdempotencyKey(r.Params.IdempotencyKey)
	if err != nil {
		return nil, err
	}
	who, _ := auth.FromContext(ctx)
	receipt := uuid.NewSHA1(namespace, []byte(who.Subject+"\x00"+key)).String()
	fresh, err := receive(ctx, h.store, who.Subject, []Delivery{{Receipt: receipt, SKU: r.Sku, Quantity: r.Body.Quantity}})
	if err != nil {
		return nil, err
	}
	answer := api.ReceiveStock201JSONResponse{}
	if fresh == 0 {
		replayed := "true"
		answer.Headers.IdempotentReplayed = &replayed
	}
	answer.Body, err = h.stock(ctx, r.Sku)
	return answer, err
}
