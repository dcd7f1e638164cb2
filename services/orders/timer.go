package orders

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/service"
)

// timer ends what is due: it looks at an index of due times every second.
var timer = service.Loop{Name: "orders.timer", Run: func(ctx context.Context, rt service.Runtime) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := expireDue(ctx, rt, time.Now()); err != nil {
				return err
			}
		}
	}
}}

// expireAtOnce is how many orders are ended at the same time: they share transactions in the group commit, so that the
// timer keeps up with a shop whose provider is down.
const expireAtOnce = 32

// dueAtOnce is how many orders one query lists.
const dueAtOnce = 500

// UnendedError says that orders whose time has come could not be ended. They are tried again at the next look.
type UnendedError struct {
	Orders int
	First  error
}

func (e *UnendedError) Error() string {
	return fmt.Sprintf("orders: %d orders are due and could not be ended; the first: %v", e.Orders, e.First)
}

func (e *UnendedError) Unwrap() error { return e.First }

// expireDue ends whatever is due at now, page by page. An order that cannot be ended keeps no other one waiting.
func expireDue(ctx context.Context, rt service.Runtime, now time.Time) error {
	var last dueOrder
	unended := &UnendedError{}
	for {
		page, err := due(ctx, rt.Store, now, last)
		if err != nil {
			return fmt.Errorf("list the orders that are due: %w", err)
		}
		if len(page) == 0 {
			break
		}
		expireAll(ctx, rt, page, now, unended)
		last = page[len(page)-1]
	}
	if unended.Orders > 0 {
		return unended
	}
	return nil
}

func expireAll(ctx context.Context, rt service.Runtime, page []dueOrder, now time.Time, unended *UnendedError) {
	var all errgroup.Group
	all.SetLimit(expireAtOnce)
	var mu sync.Mutex
	for _, o := range page {
		all.Go(func() error {
			m := events.Meta{Actor: "orders", Correlation: strings.TrimPrefix(o.Stream, Stream("")), Traceparent: o.Traceparent}
			_, err := decider.Handle(ctx, rt.Store, Rules, o.Stream, Expire{Now: now}, m)
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				if unended.Orders++; unended.First == nil {
					unended.First = err
				}
			}
			return nil // the others go on
		})
	}
	_ = all.Wait()
}

// dueOrder is an order whose time has come; the zero value comes before all.
type dueOrder struct {
	At          int64 // in microseconds since 1970
	Stream      string
	Traceparent string // of its first event: its end belongs to the same trace
}

// due lists the orders whose time has come, oldest first, from after the given one on.
func due(ctx context.Context, store *eventstore.Store, now time.Time, after dueOrder) ([]dueOrder, error) {
	rows, err := store.Pool().Query(ctx, `select due_at, stream, coalesce(
			(select e.meta ->> 'traceparent' from events e where e.stream = s.stream and e.version = 1), '')
		from streams s where due_at <= $1 and (due_at, stream) > ($2, $3) order by due_at, stream limit $4`, now.UnixMicro(), after.At, after.Stream, dueAtOnce)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[dueOrder])
}
