package service

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/feira-shop/feira/shared/relay"
)

// gate holds the operators of a service back until its store was compared with its log. A store that was restored to
// an earlier state has operators of an earlier state, too: they would hear what others answered to events that the
// store does not have.
type gate struct{ open atomic.Bool }

const gateLook = 200 * time.Millisecond // between looks

// errCompare is why operators wait.
var errCompare = errors.New("waits for the relay to compare the store with its topic; if the relay has stopped, it says why")

func (g *gate) health() error {
	if g.open.Load() {
		return nil
	}
	return errCompare
}

// pass waits until the gate is open; false when ctx ended first.
func (r *Running) pass(ctx context.Context) bool {
	for {
		compared := r.relay == nil
		if !compared {
			var err error
			if compared, err = relay.Compared(ctx, r.pool, r.Definition.Publishes); err != nil && ctx.Err() == nil {
				r.Runtime.Log.Warn("it is not known yet whether store and log belong together", "error", err)
			}
		}
		if compared {
			r.gate.open.Store(true)
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(gateLook):
		}
	}
}
