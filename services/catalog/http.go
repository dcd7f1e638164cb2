package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-chi/chi/v5"

	"github.com/feira-shop/feira/services/catalog/api"
	"github.com/feira-shop/feira/shared/auth"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/service"
	"github.com/feira-shop/feira/shared/web"
)

// handlers are the service's part of the public API.
type handlers struct{ store *eventstore.Store }

func routes(rt service.Runtime, r chi.Router) {
	strict := api.NewStrictHandlerWithOptions(&handlers{rt.Store}, nil, api.StrictHTTPServerOptions{
		RequestErrorHandlerFunc: web.Malformed(rt.Log),
		ResponseErrorHandlerFunc: web.Failures(rt.Log,
			web.Map(func(e *NotFoundError) *web.Error {
				return web.NewError(web.NotFound, "", fmt.Sprintf("There is no product %q.", e.SKU))
			}),
			web.Map(func(e *PriceError) *web.Error {
				return web.NewError(web.Unprocessable, "unknown_currency", fmt.Sprintf("There is no currency %q.", e.Price.Currency)).At("price.currency")
			}),
			web.Map(func(*VersionError) *web.Error { return web.NewError(web.PreconditionFailed, "", "").At("If-Match") }),
		),
	})
	api.HandlerWithOptions(strict, api.ChiServerOptions{BaseRouter: r, ErrorHandlerFunc: web.Malformed(rt.Log)})
}

func show(p Product) api.Product {
	return api.Product{
		Sku: p.SKU, Name: p.Name, Description: p.Description, Price: p.Price, Active: p.Active,
		UpdatedAt: p.UpdatedAt.UTC(), Version: p.Version,
	}
}

// ListProducts lists products by SKU.
func (h *handlers) ListProducts(ctx context.Context, r api.ListProductsRequestObject) (api.ListProductsResponseObject, error) {
	var after string
	if err := web.DecodeCursor(r.Params.After, &after); err != nil {
		return nil, err
	}
	found, more, err := list(ctx, h.store, after, web.Limit(r.Params.Limit))
	if err != nil {
		return nil, err
	}
	page := api.ListProducts200JSONResponse{Data: make([]api.Product, len(found)), HasMore: more}
	for i, p := range found {
		page.Data[i] = show(p)
		after = p.SKU
	}
	if more {
		page.NextCursor, err = web.EncodeCursor(after)
	}
	return page, err
}

// GetProduct reads a product.
func (h *handlers) GetProduct(ctx context.Context, r api.GetProductRequestObject) (api.GetProductResponseObject, error) {
	known, err := web.IfNoneMatch(r.Params.IfNoneMatch)
	if err != nil {
		return nil, err
	}
	p, err := get(ctx, h.store, r.Sku)
	if err != nil {
		return nil, err
	}
	if known.Names(p.Version) {
		return api.GetProduct304Response{Headers: api.GetProduct304ResponseHeaders{ETag: web.ETag(p.Version)}}, nil
	}
	return api.GetProduct200JSONResponse{Body: show(p), Headers: api.GetProduct200ResponseHeaders{ETag: web.ETag(p.Version)}}, nil
}

// PutProduct adds or changes a product.
func (h *handlers) PutProduct(ctx context.Context, r api.PutProductRequestObject) (api.PutProductResponseObject, error) {
	before, err := h.expected(ctx, r)
	if err != nil {
		return nil, err
	}
	demanded := int64(anyVersion)
	if r.Params.IfMatch != nil || r.Params.IfNoneMatch != nil {
		demanded = before
	}
	who, _ := auth.FromContext(ctx)
	p, err := put(ctx, h.store, events.ProductChanged{
		SKU: r.Sku, Name: r.Body.Name, Description: r.Body.Description, Price: r.Body.Price, Active: r.Body.Active,
	}, demanded, who.Subject)
	if err != nil {
		return nil, err
	}
	if before == 0 && p.Version == 1 {
		return api.PutProduct201JSONResponse{Body: show(p), Headers: api.PutProduct201ResponseHeaders{
			ETag: web.ETag(p.Version), Location: "/v1/products/" + p.SKU,
		}}, nil
	}
	return api.PutProduct200JSONResponse{Body: show(p), Headers: api.PutProduct200ResponseHeaders{ETag: web.ETag(p.Version)}}, nil
}

// expected checks the request's conditions and returns the version they were checked at; 0 is a new product.
func (h *handlers) expected(ctx context.Context, r api.PutProductRequestObject) (int64, error) {
	match, err := web.IfMatch(r.Params.IfMatch)
	if err != nil {
		return 0, err
	}
	none, err := web.IfNoneMatch(r.Params.IfNoneMatch)
	if err != nil {
		return 0, err
	}
	p, err := get(ctx, h.store, r.Sku)
	var missing *NotFoundError
	if err != nil && !errors.As(err, &missing) {
		return 0, err
	}
	return p.Version, errors.Join(match.Check(p.Version), none.Check(p.Version))
}
