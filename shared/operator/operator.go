package operator

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/kafka"
)

// Options configure a running operator.
type Options struct {
	Store *eventstore.Store // of the service that the operator belongs to; required
	// Pool is what the operator uses of the service's database; several may share one, with a connection for each and one
	// more. With that of the store, it stands in line with everyone who reads there. nil: that of the store.
	Pool  *pgxpool.Pool
	Kafka kafka.Config
	// Member is this process's stable name among the replicas of the service: with it, a crash and a start cost
	// less than a second instead of a session timeout. Two processes with one name fence each other.
	Member  string
	Log     *slog.Logger          // nil: discard
	Metrics prometheus.Registerer // nil: none
}

// Operator runs a [Definition] in this process.
type Operator struct {
	def      Definition
	opts     Options
	store    *eventstore.Store
	pool     *pgxpool.Pool
	handler  Handler
	stateful Stateful // the handler, when it has state in memory
	closing  Closing  // the handler, when it closes windows
	log      *slog.Logger
	metrics  *metrics
	timing   timing
	hooks    hooks

	mu       sync.Mutex
	waiting  map[string]bool // topics whose group was never joined
	stopped  error
	unclosed error // why a window cannot be closed
	current  *run
}

// timing is how often and how long; tests are less patient.
type timing struct {
	control       time.Duration // between looks at the control tables
	guard         time.Duration // between looks at the topics' ids
	replacedGrace time.Duration // how long a topic must look replaced
	lazy          time.Duration // how long a checkpoint may wait that only passes over records
	attempt       time.Duration // one transaction
	closing       time.Duration // between looks at what can be closed
	idle          time.Duration // between looks at the ends of partitions that may be idle
	giveUp        time.Duration // how long a stop waits for the transaction in hand, and then for the group
}

var defaultTiming = timing{
	control:       500 * time.Millisecond,
	guard:         time.Second,
	replacedGrace: 5 * time.Second,
	lazy:          500 * time.Millisecond,
	attempt:       10 * time.Second,
	closing:       time.Second,
	idle:          250 * time.Millisecond,
	giveUp:        2 * time.Second,
}

// New makes an operator; nothing happens before [Operator.Run].
func New(def Definition, opts Options) *Operator {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	o := &Operator{
		def: def, opts: opts, store: opts.Store, pool: cmp.Or(opts.Pool, opts.Store.Pool()), timing: defaultTiming,
		log:     opts.Log.With("operator", def.Name),
		waiting: map[string]bool{},
	}
	for _, t := range def.Topics {
		o.waiting[t.Name] = true
	}
	o.handler = def.Handler(opts.Store)
	o.stateful, _ = o.handler.(Stateful)
	o.closing, _ = o.handler.(Closing)
	o.metrics = newMetrics(o)
	return o
}

// Name is the operator's name, under which its checkpoints are kept.
func (o *Operator) Name() string { return o.def.Name }

// group is the consumer group of a topic.
func (o *Operator) group(topic string) string { return o.def.Name + "." + topic }

func (o *Operator) maxBatch() int {
	if o.def.MaxBatch > 0 {
		return o.def.MaxBatch
	}
	return defaultMaxBatch
}

// Run consumes until ctx ends, and returns only then, always nil. An operator that stops by name records why,
// waits until a person accepted the gap or resumed it, and goes on. Losing Kafka or the database is waited out.
// A stop takes at most about 4 s: 2 for the transaction in hand, 2 for leaving the groups.
func (o *Operator) Run(ctx context.Context) error {
	o.metrics.register(o.opts.Metrics)
	defer o.metrics.unregister(o.opts.Metrics)
	o.forgetStops(ctx) // a new start looks for itself
	for {
		err := o.runOnce(ctx)
		if ctx.Err() != nil || o.hooks.killed() {
			return nil
		}
		o.stop(ctx, err)
		o.awaitAcceptance(ctx)
		if ctx.Err() != nil {
			return nil
		}
		o.metrics.restarts.Inc()
	}
}

// Health is nil while the operator consumes (or is paused), and says what keeps it from that otherwise.
func (o *Operator) Health() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stopped != nil {
		return o.stopped
	}
	if o.unclosed != nil {
		return o.unclosed
	}
	for topic, waiting := range o.waiting {
		if waiting {
			return fmt.Errorf("operator %s: has not joined the consumer group of %s yet", o.def.Name, topic)
		}
	}
	return nil
}
