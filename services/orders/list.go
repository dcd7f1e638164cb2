package orders

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/services/orders/api"
	"github.com/feira-shop/feira/shared/auth"
	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/web"
)

// place of an order in the list: newest first.
type cursor struct {
	PlacedUS int64  `json:"t"`
	Stream   string `json:"s"`
}

type listed struct {
	stream  string
	version int64
	shape   int
	state   []byte
	updated time.Time
}

const (
	listSelect = `
select s.stream, s.version, s.shape, s.state, coalesce(e.recorded_at, a.recorded_at)
  from streams s left join events e on e.stream = s.stream and e.version = s.version
  left join archived_streams a on a.stream = s.stream and a.version = s.version
 where s.customer is not null and (s.placed_us, s.stream) < ($1, $2) `
	listOrder = ` order by s.placed_us desc, s.stream desc limit $3`
	listAll   = listSelect + listOrder
	listOne   = listSelect + `and s.customer = $4` + listOrder
)

// ListOrders lists a customer's own orders; an operator sees everybody's.
func (h *handlers) ListOrders(ctx context.Context, r api.ListOrdersRequestObject) (api.ListOrdersResponseObject, error) {
	who, customer := caller(ctx), ""
	if r.Params.Customer != nil {
		customer = *r.Params.Customer
	}
	if !who.Has(auth.Operator) {
		if customer != "" && customer != who.Subject {
			return api.ListOrders200JSONResponse{Data: []api.Order{}}, nil
		}
		customer = who.Subject
	}
	after := cursor{PlacedUS: 1<<63 - 1}
	if err := web.DecodeCursor(r.Params.After, &after); err != nil {
		return nil, err
	}
	limit := web.Limit(r.Params.Limit)
	rows, err := h.page(ctx, customer, after, limit+1)
	if err != nil {
		return nil, err
	}
	page := api.ListOrders200JSONResponse{Data: []api.Order{}, HasMore: len(rows) > limit}
	var last cursor
	for _, l := range rows[:min(limit, len(rows))] {
		o, err := h.restore(ctx, l)
		if err != nil {
			return nil, err
		}
		if l.version == 1 {
			l.updated = o.PlacedAt // as everywhere
		}
		page.Data = append(page.Data, show(o, l.version, l.updated))
		last = cursor{o.PlacedUS, l.stream}
	}
	if page.HasMore {
		if page.NextCursor, err = web.EncodeCursor(last); err != nil {
			return nil, err
		}
	}
	return page, nil
}

func (h *handlers) page(ctx context.Context, customer string, after cursor, limit int) ([]listed, error) {
	sql, args := listAll, []any{after.PlacedUS, after.Stream, limit}
	if customer != "" {
		sql, args = listOne, append(args, customer)
	}
	rows, err := h.store.Pool().Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("list orders: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (l listed, err error) {
		err = row.Scan(&l.stream, &l.version, &l.shape, &l.state, &l.updated)
		return l, err
	})
}

func (h *handlers) restore(ctx context.Context, l listed) (o Order, err error) {
	if l.shape == Rules.Shape {
		err = json.Unmarshal(l.state, &o)
		return o, err
	}
	loaded, err := decider.Load(ctx, h.store, Rules, l.stream)
	return loaded.State, err
}
