package orders

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/feira-shop/feira/services/orders/api"
	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/web"
)

// GetOrderEvents tells an order's history, as of a version or time if asked, or follows it live.
func (h *handlers) GetOrderEvents(ctx context.Context, r api.GetOrderEventsRequestObject) (api.GetOrderEventsResponseObject, error) {
	if r.Params.Version != nil && r.Params.At != nil {
		return nil, web.InvalidParam("at", "cannot be given together with version.")
	}
	if _, err := h.read(ctx, r.Id); err != nil {
		return nil, err
	}
	if web.WantsEvents(ctx) {
		return h.follow(ctx, r)
	}
	var until eventstore.Until
	if r.Params.Version != nil {
		until.Version = *r.Params.Version
	}
	if r.Params.At != nil {
		until.Time = *r.Params.At
	}
	history, err := h.store.History(ctx, Stream(r.Id), until)
	if err != nil {
		return nil, err
	}
	if len(history) == 0 || int64(len(history)) < until.Version {
		return nil, web.NewError(web.NotFound, "no_such_version", "The order was not there then.")
	}
	return h.told(ctx, history)
}

func (h *handlers) told(ctx context.Context, history []events.Recorded) (api.GetOrderEventsResponseObject, error) {
	then := decider.Outcome[Order]{Version: int64(len(history))}
	list := make([]api.OrderEvent, len(history))
	for i, r := range history {
		then.State = Evolve(then.State, r.Event)
		var err error
		if list[i], err = tell(r, int64(i)+1); err != nil {
			return nil, err
		}
	}
	order, err := h.view(ctx, then)
	if err != nil {
		return nil, err
	}
	return api.GetOrderEvents200JSONResponse{
		Body:    api.OrderHistory{Events: list, Order: order},
		Headers: api.GetOrderEvents200ResponseHeaders{ETag: web.ETag(then.Version)},
	}, nil
}

// tell shows an event without its personal data.
func tell(r events.Recorded, version int64) (api.OrderEvent, error) {
	data := r.Data
	if r.Type == (events.OrderPlaced{}).EventType() {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(r.Data, &fields); err != nil {
			return api.OrderEvent{}, fmt.Errorf("read event %s: %w", r.ID, err)
		}
		delete(fields, "personal")
		var err error
		if data, err = json.Marshal(fields); err != nil {
			return api.OrderEvent{}, fmt.Errorf("show event %s: %w", r.ID, err)
		}
	}
	return api.OrderEvent{Id: r.ID, Version: version, Type: r.Type, Time: r.Time, Actor: r.Actor, Causation: r.Causation, Data: data}, nil
}

// follow is the live history, from after the last version that the client has seen.
func (h *handlers) follow(ctx context.Context, r api.GetOrderEventsRequestObject) (api.GetOrderEventsResponseObject, error) {
	var seen int64
	if r.Params.LastEventID != nil {
		var err error
		if seen, err = strconv.ParseInt(*r.Params.LastEventID, 10, 64); err != nil {
			return nil, web.InvalidParam("Last-Event-ID", "must be the id of an event of this stream.")
		}
	}
	return liveHistory{ctx, func(ctx context.Context, s *web.EventStream) error { return h.feed(ctx, r.Id, seen, s) }}, nil
}

type liveHistory struct {
	ctx  context.Context // the generated interface has no room for it elsewhere
	feed func(ctx context.Context, s *web.EventStream) error
}

// VisitGetOrderEventsResponse implements the generated interface.
func (l liveHistory) VisitGetOrderEventsResponse(w http.ResponseWriter) error {
	return web.ServeEvents(l.ctx, w, l.feed)
}

func (h *handlers) feed(ctx context.Context, id string, seen int64, s *web.EventStream) error {
	changed, stop := h.store.Watch(Stream(id))
	defer stop()
	for {
		history, err := h.store.History(ctx, Stream(id), eventstore.Until{})
		if err != nil {
			return err
		}
		for ; seen < int64(len(history)); seen++ {
			shown, err := tell(history[seen], seen+1)
			if err != nil {
				return err
			}
			data, err := json.Marshal(shown)
			if err != nil {
				return fmt.Errorf("show event %s: %w", shown.Id, err)
			}
			if err := s.Send(web.Event{ID: strconv.FormatInt(seen+1, 10), Name: shown.Type, Data: data}); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}
