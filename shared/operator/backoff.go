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

// next is how long to wait now.
func (b *backoff) next() time.Duration {
	b.wait = min(max(2*b.wait, firstWait), mostWait)
	return b.wait + rand.N(b.wait/2+1) //nolint:gosec // spreads retries, protects nothing
}

// failed says whether something is waited for.
func (b *backoff) failed() bool { return b.wait > 0 }

// sleep returns false when ctx ended first.
func (b *backoff) sleep(ctx context.Context) bool { return sleep(ctx, b.next()) }

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
