package orders

import (
	"context"
	"errors"
	"strings"
	"time"

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

func expireDue(ctx context.Context, rt service.Runtime, now time.Time) error {
	streams, err := due(ctx, rt.Store, now)
	if err != nil {
		return err
	}
	var failed []error
	for _, s := range streams {
		_, err := decider.Handle(ctx, rt.Store, Rules, s, Expire{Now: now}, events.Meta{Actor: "orders", Correlation: strings.TrimPrefix(s, Stream(""))})
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}
