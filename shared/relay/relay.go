package relay

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/telemetry"
)

// Options configure a relay.
type Options struct {
	Store   *eventstore.Store // wakes the relay; nil: only its poll does
	DSN     string            // the store's database, as the role that owns it
	Kafka   kafka.Config
	Topic   events.Topic          // the events of this topic are published, others of the store are its own business
	Log     *slog.Logger          // nil: discard
	Metrics prometheus.Registerer // nil: none
	Tracer  *telemetry.Tracer     // nil: none
}

// timing is what a relay waits for. Tests shorten it.
type timing struct {
	gap         time.Duration // between rounds, so that events gather under load
	poll        time.Duration // at most this between rounds when nobody wakes it
	ping        time.Duration // keeps the session while Kafka is awaited
	idleSession time.Duration // the server ends a session that is silent for this long, and with it the leadership
	elect       time.Duration // between attempts to become the leader
	frozen      time.Duration // a leader that does not read what the server sends it for this long is ended
	retry       time.Duration // after a failure, doubled up to 16 times that
	send        time.Duration // for one batch
	finish      time.Duration // for the batch in flight at shutdown
	firstTick   time.Duration // of silence in a partition
	nextTick    time.Duration
	confirm     time.Duration // a log that seems too short is looked at again for this long
}

var defaults = timing{
	gap:         2 * time.Millisecond,
	poll:        time.Second,
	ping:        500 * time.Millisecond,
	idleSession: 3 * time.Second,
	elect:       200 * time.Millisecond,
	frozen:      3 * time.Second,
	retry:       100 * time.Millisecond,
	send:        20 * time.Second,
	finish:      2 * time.Second,
	firstTick:   5 * time.Second,
	nextTick:    30 * time.Second,
	confirm:     5 * time.Second,
}

// Relay copies one store to its topic.
type Relay struct {
	opts    Options
	log     *slog.Logger
	metrics *metrics
	timing  timing
	mine    map[string]bool // types, whether they are published; filled as they are met
	reached func(point)     // tests hear of the points that the leader passes; nil in production

	mu      sync.Mutex
	stopped error // the named error that stopped it
}

// New makes a relay; [Relay.Run] runs it.
func New(opts Options) *Relay {
	r := &Relay{opts: opts, log: opts.Log, timing: defaults, mine: map[string]bool{}}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	r.log = r.log.With("component", "relay", "topic", opts.Topic.Name)
	r.metrics = newMetrics(opts.Metrics, r.log)
	return r
}

// Run leads whenever no other process does, and publishes while it leads. It returns when ctx ends. A failure of
// Kafka or Postgres is retried for as long as it lasts. After [*PartitionCountError], [*StoreRestoredError],
// [*LogLostError] or [*eventstore.ArchivedError] it publishes nothing more and [Relay.Health] says why.
func (r *Relay) Run(ctx context.Context) error {
	pause := r.timing.retry
	defer r.metrics.follow()
	for ctx.Err() == nil {
		led, err := r.lead(ctx)
		if stops(err) {
			r.stop(err)
			<-ctx.Done()
			break
		}
		if err != nil && ctx.Err() == nil {
			r.log.Warn("interrupted, trying again", "error", err)
		}
		if led {
			pause = r.timing.retry
		}
		rest(ctx, pause, nil)
		pause = min(2*pause, 16*r.timing.retry)
	}
	return nil
}

// Health is nil, or the named error that stopped the relay.
func (r *Relay) Health() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped
}

func (r *Relay) stop(err error) {
	r.mu.Lock()
	r.stopped = err
	r.mu.Unlock()
	r.metrics.stopped.Set(1)
	r.log.Error("stopped until a person has looked at it", "error", err)
}

// wake is nil without a store, which blocks for ever.
func (r *Relay) wake() <-chan struct{} {
	if r.opts.Store == nil {
		return nil
	}
	return r.opts.Store.Wake()
}

// lead waits to become the leader and leads until something fails. led tells whether it ever published.
func (r *Relay) lead(ctx context.Context) (led bool, err error) {
	l, err := r.elect(ctx)
	if err != nil || l == nil {
		return false, err
	}
	r.metrics.leader.Set(1)
	defer func() {
		r.metrics.leader.Set(0)
		err = errors.Join(l.confess(ctx, err), l.close(ctx))
	}()
	r.log.Info("leading", "term", l.term, "position", l.position)
	if err := l.prepare(ctx); err != nil {
		return false, err
	}
	return true, l.publish(ctx)
}

// rest waits for d, a wake-up or the end of ctx.
func rest(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
	case <-t.C:
	}
}
