package operator

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	firstWait = 20 * time.Millisecond
	mostWait  = time.Second
)

// backoff doubles from 20 ms to 1 s, with up to half of it added at random, so that two members that collided do
// not collide again.
type backoff struct{ wait time.Duration }

// sleep returns false when ctx ended first.
func (b *backoff) sleep(ctx context.Context) bool {
	b.wait = min(max(2*b.wait, firstWait), mostWait)
	jitter := rand.N(b.wait/2 + 1) //nolint:gosec // spreads retries, protects nothing
	return sleep(ctx, b.wait+jitter)
}

// sleep returns false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
