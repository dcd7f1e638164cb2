package jobs

import (
	"context"
	_ "embed"
	"encoding/json"
	"math/rand/v2"
	"time"

	"github.com/riverqueue/river/rivertype"

	"github.com/feira-shop/feira/shared/eventstore"
)

// Waiting times between attempts: short at first, so that a hiccup costs a moment, and never longer than a
// minute, so that a provider that comes back is used again.
const (
	firstBackoff = 200 * time.Millisecond
	maxBackoff   = time.Minute
)

// waitAfter is how long to wait after an attempt (from 1), give or take a fifth so that jobs which failed
// together do not come back together.
func waitAfter(attempt int) time.Duration {
	wait := maxBackoff
	if doublings := attempt - 1; doublings < 10 {
		wait = min(maxBackoff, firstBackoff<<max(0, doublings))
	}
	return time.Duration(float64(wait) * (0.8 + 0.4*rand.Float64())) //nolint:gosec // jitter, not a secret
}

// settleTimeout bounds one try to give an attempt back.
const settleTimeout = 5 * time.Second

// giveBackSQL makes the job available again, if this very attempt is still the running one.
//
//go:embed sql/give_back.sql
var giveBackSQL string

// giveBack says how an attempt ends without an outcome.
type giveBack struct {
	attempt eventstore.Attempt
	number  int           // of the attempt, from 1
	counted bool          // false: as if it had not been tried
	delay   time.Duration // until the next
	err     error         // kept with the job; nil: none
}

// giveBack writes it, and tries for as long as this process is the job's owner. When it cannot, the database
// is gone, and with it the lock on the client id: the sweeper gives the job back then.
func (r *runner) giveBack(ctx context.Context, b giveBack) {
	var attemptError []byte
	if b.err != nil {
		attemptError, _ = json.Marshal(rivertype.AttemptError{At: time.Now(), Attempt: b.number, Error: b.err.Error()})
	}
	for try := 1; ; try++ {
		if r.tryGiveBack(ctx, b, attemptError) == nil {
			return
		}
		select {
		case <-r.over:
			return
		case <-time.After(waitAfter(try)):
		}
	}
}

func (r *runner) tryGiveBack(ctx context.Context, b giveBack, attemptError []byte) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	_, err := r.pool.Exec(ctx, giveBackSQL,
		b.attempt.JobID, b.attempt.AttemptedAt, b.delay.Seconds(), b.counted, attemptError)
	return err
}
