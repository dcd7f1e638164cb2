package analytics

import (
	"context"
	"math"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/feira-shop/feira/services/analytics/api"
	"github.com/feira-shop/feira/shared/auth"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/money"
	"github.com/feira-shop/feira/shared/service"
	"github.com/feira-shop/feira/shared/web"
)

// handlers are the service's part of the public API.
type handlers struct {
	cfg       Config
	store     *eventstore.Store
	collector *collector
	now       func() time.Time
}

func routes(cfg Config, collector *collector) func(service.Runtime, chi.Router) {
	return func(rt service.Runtime, r chi.Router) {
		later := web.NewError(web.Unavailable, "", "The click could not be written for certain; send it again, or it may be missing.")
		later.RetryAfter = time.Second
		strict := api.NewStrictHandlerWithOptions(&handlers{cfg, rt.Store, collector, time.Now}, nil, api.StrictHTTPServerOptions{
			RequestErrorHandlerFunc: web.Malformed(rt.Log),
			ResponseErrorHandlerFunc: web.Failures(rt.Log, web.Is(ErrBusy, later), web.Is(ErrStopped, later),
				web.Map(func(e *kafka.PartialError) *web.Error { return later.Because(e) }),
				web.Is(context.DeadlineExceeded, later)),
		})
		api.HandlerWithOptions(strict, api.ChiServerOptions{BaseRouter: r, ErrorHandlerFunc: web.Malformed(rt.Log)})
	}
}

// RecordClick writes a click to its topic.
func (h *handlers) RecordClick(ctx context.Context, r api.RecordClickRequestObject) (api.RecordClickResponseObject, error) {
	if err := h.collector.record(ctx, *r.Body); err != nil {
		return nil, err
	}
	return api.RecordClick202Response{}, nil
}

// ListClicks lists clicks per action and minute.
func (h *handlers) ListClicks(ctx context.Context, r api.ListClicksRequestObject) (api.ListClicksResponseObject, error) {
	var p period
	if r.Params.From != nil || r.Params.To != nil {
		var err error
		if p, err = periodOf(r.Params.From, r.Params.To, h.now().UTC()); err != nil {
			return nil, err
		}
	}
	var after clickPlace
	if err := web.DecodeCursor(r.Params.After, &after); err != nil {
		return nil, err
	}
	limit := web.Limit(r.Params.Limit)
	rows, total, err := listClicks(ctx, h.store.Pool(), textOf(r.Params.Acao), p, after, limit+1)
	if err != nil {
		return nil, err
	}
	page := api.ListClicks200JSONResponse{Data: []api.ClickCount{}, Total: total, HasMore: len(rows) > limit}
	for _, c := range rows[:min(limit, len(rows))] {
		page.Data = append(page.Data, api.ClickCount{Acao: c.Action, Minute: c.Minute.UTC(), Clicks: c.Clicks})
		after = clickPlace{c.Minute.UTC(), c.Action}
	}
	if page.HasMore {
		page.NextCursor, err = web.EncodeCursor(after)
	}
	return page, err
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// ListConversion lists clicks and orders side by side.
func (h *handlers) ListConversion(ctx context.Context, r api.ListConversionRequestObject) (api.ListConversionResponseObject, error) {
	p, err := periodOf(r.Params.From, r.Params.To, h.now().UTC())
	if err != nil {
		return nil, err
	}
	var after time.Time
	if err := web.DecodeCursor(r.Params.After, &after); err != nil {
		return nil, err
	}
	limit := web.Limit(r.Params.Limit)
	rows, err := listConversion(ctx, h.store.Pool(), textOf(r.Params.Acao), p, after, limit+1)
	if err != nil {
		return nil, err
	}
	page := api.ListConversion200JSONResponse{Data: []api.Conversion{}, HasMore: len(rows) > limit}
	for _, c := range rows[:min(limit, len(rows))] {
		page.Data = append(page.Data, api.Conversion{Minute: c.Minute.UTC(), Clicks: c.Clicks, Orders: c.Orders, Rate: rate(c)})
		after = c.Minute.UTC()
	}
	if page.HasMore {
		page.NextCursor, err = web.EncodeCursor(after)
	}
	return page, err
}

// rate is orders per click, to four decimals; nil where nobody clicked.
func rate(c converted) *float64 {
	if c.Clicks == 0 {
		return nil
	}
	r := math.Round(float64(c.Orders)/float64(c.Clicks)*1e4) / 1e4
	return &r
}

// ListAccountSpend lists windows of accounts: an operator sees all, a customer their own.
func (h *handlers) ListAccountSpend(ctx context.Context, r api.ListAccountSpendRequestObject) (api.ListAccountSpendResponseObject, error) {
	who, _ := auth.FromContext(ctx)
	account := textOf(r.Params.Account)
	if account == "" && !who.Has(auth.Operator) {
		account = who.Subject
	}
	if account != "" && !who.MaySee(account) {
		return nil, web.NewError(web.NotFound, "", "There is no such account.")
	}
	p, err := periodOf(r.Params.From, r.Params.To, h.now().UTC())
	if err != nil {
		return nil, err
	}
	var after spentPlace
	if err := web.DecodeCursor(r.Params.After, &after); err != nil {
		return nil, err
	}
	limit := web.Limit(r.Params.Limit)
	rows, err := listSpend(ctx, h.store.Pool(), h.cfg.Window, account, p, after, limit+1)
	if err != nil {
		return nil, err
	}
	page := api.ListAccountSpend200JSONResponse{Data: []api.Spend{}, HasMore: len(rows) > limit}
	for _, s := range rows[:min(limit, len(rows))] {
		page.Data = append(page.Data, api.Spend{
			Account: s.Account, Currency: s.Currency, WindowStart: s.Start.UTC(), WindowEnd: s.End.UTC(), Open: s.Revision == 0,
			Payments: s.Payments, Captured: money.New(s.Captured, s.Currency),
			Refunds: s.Refunds, Refunded: money.New(s.Refunded, s.Currency), Revision: s.Revision,
		})
		after = spentPlace{s.Start.UTC(), s.Account, s.Currency}
	}
	if page.HasMore {
		page.NextCursor, err = web.EncodeCursor(after)
	}
	return page, err
}

// ListTopProducts lists rankings, newest first.
func (h *handlers) ListTopProducts(ctx context.Context, r api.ListTopProductsRequestObject) (api.ListTopProductsResponseObject, error) {
	now := h.now().UTC()
	p, err := periodOf(r.Params.From, r.Params.To, now)
	if err != nil {
		return nil, err
	}
	before := endOfTime
	if err := web.DecodeCursor(r.Params.After, &before); err != nil {
		return nil, err
	}
	limit := web.Limit(r.Params.Limit)
	rows, err := listTop(ctx, h.store.Pool(), h.cfg, p, before, now, limit+1)
	if err != nil {
		return nil, err
	}
	page := api.ListTopProducts200JSONResponse{Data: []api.TopProducts{}, HasMore: len(rows) > limit}
	for _, r := range rows[:min(limit, len(rows))] {
		page.Data = append(page.Data, showRanking(r))
		before = r.Start.UTC()
	}
	if page.HasMore {
		page.NextCursor, err = web.EncodeCursor(before)
	}
	return page, err
}

func showRanking(r ranking) api.TopProducts {
	shown := api.TopProducts{
		WindowStart: r.Start.UTC(), WindowEnd: r.End.UTC(), Open: r.Revision == 0, Revision: r.Revision, Products: []api.TopProduct{},
	}
	for i, p := range r.Products {
		shown.Products = append(shown.Products, api.TopProduct{Rank: i + 1, Sku: p.SKU, Quantity: p.Quantity, Orders: p.Orders})
	}
	return shown
}
