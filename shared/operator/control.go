package operator

import (
	"context"
	_ "embed"
	"sync/atomic"
)

//go:embed queries/control.sql
var controlSQL string

// control knows what people want of the operator: it looks at the control tables twice a second.
type control struct {
	run      *run
	hold     atomic.Bool // paused, or not known yet
	requests atomic.Bool // there are some, perhaps of other members' partitions
}

func newControl(r *run) *control {
	c := &control{run: r}
	c.hold.Store(true)
	return c
}

func (c *control) paused() bool { return c.hold.Load() }

// takeRequests reports once per look that there are requests.
func (c *control) takeRequests() bool { return c.requests.Swap(false) }

func (c *control) watch(ctx context.Context) {
	for {
		if err := c.look(ctx); err != nil && ctx.Err() == nil {
			c.run.op.log.Warn("the control tables could not be read", "error", err)
		}
		if !sleep(ctx, c.run.op.timing.control) {
			return
		}
	}
}

func (c *control) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.run.op.timing.attempt)
	defer cancel()
	var paused, stopped, requested bool
	err := c.run.op.pool.QueryRow(ctx, controlSQL, c.run.op.def.Name).Scan(&paused, &stopped, &requested)
	if err != nil {
		return err
	}
	if stopped {
		c.run.fail(errStoppedElsewhere)
		return nil
	}
	if requested {
		c.requests.Store(true)
	}
	if was := c.hold.Swap(paused); was != paused || requested {
		c.run.op.metrics.setPaused(paused)
		c.run.kick()
	}
	return nil
}
