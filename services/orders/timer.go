package orders

import (
	"context"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
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

func expireDue(ctx context.Context, rt service.Runtime, now time.Time) error {
	streams, err := due(ctx, rt.Store, now)
	if err != nil {
		return err
	}
	var all errgroup.Group
	all.SetLimit(expireAtOnce)
	for _, s := range streams {
		all.Go(func() error {
			m := events.Meta{Actor: "orders", Correlation: strings.TrimPrefix(s, Stream(""))}
			_, err := decider.Handle(ctx, rt.Store, Rules, s, Expire{Now: now}, m)
			return err
		})
	}
	return all.Wait()
}
