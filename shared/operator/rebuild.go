package operator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
)

// NotRebuildableError says that an operator's tables cannot be made anew from its topics, and what to do instead.
type NotRebuildableError struct{ Operator, Why, Instead string }

func (e *NotRebuildableError) Error() string {
	return fmt.Sprintf("operator: %s cannot be rebuilt: %s; %s", e.Operator, e.Why, e.Instead)
}

// RebuildRunningError says that somebody else rebuilds the operator.
type RebuildRunningError struct{ Operator string }

func (e *RebuildRunningError) Error() string {
	return fmt.Sprintf("operator: %s is being rebuilt by another process; wait for it, or end it: it leaves nothing that harms", e.Operator)
}

// RebuildRejectedError says that a handler refuses an event that the running operator has applied.
type RebuildRejectedError struct {
	Operator string
	Place    Place
	Event    string // id
	Err      error
}

func (e *RebuildRejectedError) Error() string {
	return fmt.Sprintf("operator: rebuild of %s: this release refuses event %s at %s/%d/%d, which the running operator has applied: %v; "+
		"rebuild with the release that runs, or mend the handler", e.Operator, e.Event, e.Place.Topic, e.Place.Partition, e.Place.Offset, e.Err)
}

func (e *RebuildRejectedError) Unwrap() error { return e.Err }

// RebuildOptions are what a rebuild needs.
type RebuildOptions struct {
	Pool     *pgxpool.Pool // of the database with the operator's tables, for at least two connections
	Registry *events.Registry
	Client   sarama.Client
	// Owner opens the store of a topic's owner, for what the topic no longer has; it is called at most once per topic.
	Owner    func(context.Context, events.Topic) (Owner, error)
	Who      string               // for the audit
	DryRun   bool                 // compare, and switch nothing
	Progress func(done, of int64) // records so far, of those known; nil: nobody listens

	reached func(step string) error // of tests
}

// Rebuilt says what a rebuild did.
type Rebuilt struct {
	Records   int64 // read
	Stored    int64 // of them, from the store of a topic's owner
	LeftOut   int64 // parked or discarded, so the running operator has not applied them either
	Unread    int64 // that cannot be read, and are not parked any more: discarded a long time ago
	Tables    []TableDifference
	Outputs   *TableDifference // of a stream operator: what it said, compared with what it had to say; only results of windows are corrected, by revisions
	Switched  bool
	WaitedFor time.Duration // how long the running operator was held up by the switch
}

// Same reports whether the running operator's tables were as they must be.
func (r Rebuilt) Same() bool {
	return !slices.ContainsFunc(r.Tables, func(t TableDifference) bool { return t.Missing+t.Excess+t.Different > 0 })
}

// rebuild fills copies of an operator's tables beside the running one.
type rebuild struct {
	def     Definition
	opts    RebuildOptions
	session *pgxpool.Conn // holds the lock on rebuilding this operator
	schema  string
	tables  []table
	store   *eventstore.Store // whose unqualified names are those of the copies, and nothing else
	handler Handler
	state   Recomputed // the handler, if its state is in memory; then there are no copies
	outputs outputs
	log     *topicReader

	at      map[place]position
	batch   []*item
	skipped []*item // parked when they were met
	aside   aside
	torn    bool // copies and positions may differ: reading or applying broke off
	result  Rebuilt
}

// Rebuild makes the tables that an operator keeps ([Definition].Tables) anew beside the running one, compares, and puts
// the new content in the place of the old.
//
// The same handler applies all events again, from the topics or, where a topic no longer has them, from their owner's
// store, to copies of the tables in a schema of their own. When it has caught up, one transaction locks tables and
// checkpoints, so that the running operator waits; brings the copies exactly to its offsets; compares; writes what
// differs; and raises the epoch of the checkpoints, so that whatever the operator had begun on the old content is
// refused and done again. Readers see the old content or the new, never a mixture. A rebuild that ends half way, however
// it ends, leaves a schema that nobody looks at, and the next one begins with its removal.
//
// A handler with state in memory ([Recomputed]) needs no copies: its state is made anew in this process's memory, and
// saved in the place of the old. What it appends is compared with the event store, and not appended again; results that
// hold revisions ([Revised]) get their next one where they differ.
//
// Errors: [*NotRebuildableError], [*RebuildRunningError], [*RebuildRejectedError], [*NotInStoreError], [*NotFoundError].
func Rebuild(ctx context.Context, def Definition, opts RebuildOptions) (Rebuilt, error) {
	r := &rebuild{def: def, opts: opts, at: map[place]position{}, schema: "rebuild_" + strings.NewReplacer(".", "_", "-", "_").Replace(def.Name)}
	r.outputs = outputs{seen: map[string]bool{}, waiting: map[string]output{}, found: TableDifference{Table: "events"}}
	r.store = eventstore.New(opts.Pool, eventstore.Options{Registry: opts.Registry})
	r.handler = def.Handler(r.store)
	r.state, _ = r.handler.(Recomputed)
	if err := rebuildable(def, r.state != nil); err != nil {
		return Rebuilt{}, err
	}
	if r.opts.Progress == nil {
		r.opts.Progress = func(int64, int64) {}
	}
	if r.opts.reached == nil {
		r.opts.reached = func(string) error { return nil }
	}
	if err := r.work(ctx); err != nil {
		return r.result, fmt.Errorf("rebuild %s: %w", def.Name, err)
	}
	return r.result, nil
}

func rebuildable(def Definition, state bool) error {
	switch {
	case len(def.Tables) == 0 && !state:
		service, _, _ := strings.Cut(def.Name, ".")
		return &NotRebuildableError{
			Operator: def.Name, Why: "it keeps no tables that follow from its topics alone: what it decides is in the event store",
			Instead: "`feira admin rebuild " + service + "` computes the states of streams from their events, `feira verify` compares everything",
		}
	case def.Start == Now:
		return &NotRebuildableError{
			Operator: def.Name, Why: "it began in the middle of its topics, so their beginning is none of its own",
			Instead: "give it a new name to begin anew",
		}
	}
	return nil
}

func (r *rebuild) work(ctx context.Context) error {
	if err := r.lock(ctx); err != nil {
		return err
	}
	defer r.session.Release()
	defer r.unlock()
	if r.state == nil {
		if err := r.prepare(ctx); err != nil {
			return err
		}
		defer r.store.Pool().Close()
	}
	r.log = newTopicReader(r.opts.Client)
	defer r.log.close()
	if err := r.opts.reached("prepared"); err != nil {
		return err
	}
	for try := 1; ; try++ {
		if err := r.catchUp(ctx); err != nil {
			return err
		}
		if err := r.opts.reached("caught up"); err != nil {
			return err
		}
		err := r.switchOver(ctx)
		if err == nil {
			break
		}
		if try == switchTries || ctx.Err() != nil || r.torn || !passes(err) {
			return err
		}
	}
	if err := r.opts.reached("switched"); err != nil {
		return err
	}
	if err := r.revise(ctx); err != nil {
		return err
	}
	_, err := r.session.Exec(ctx, "drop schema if exists "+pgx.Identifier{r.schema}.Sanitize()+" cascade")
	return err
}

// switchTries is how often a switch is tried that meets a lock, or takes too long.
const switchTries = 10

// passes says whether a switch may succeed when it is tried again: it met somebody else's lock or the server's time limit.
func passes(err error) bool {
	var pe *pgconn.PgError
	if errors.As(err, &pe) {
		return slices.Contains([]string{"55P03", "40P01", codeStatementTimeout, codeIdleInTransaction, codeTransactionTimeout}, pe.Code)
	}
	return errors.Is(err, errTooLate)
}

// lock takes the right to rebuild this operator, for as long as the session lives.
func (r *rebuild) lock(ctx context.Context) error {
	session, err := r.opts.Pool.Acquire(ctx)
	if err != nil {
		return err
	}
	r.session = session
	var ours bool
	if err := session.QueryRow(ctx, "select pg_try_advisory_lock(hashtextextended($1, 0))", r.schema).Scan(&ours); err != nil || !ours {
		session.Release()
		if err == nil {
			err = &RebuildRunningError{r.def.Name}
		}
		return err
	}
	return nil
}

func (r *rebuild) unlock() {
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	if _, err := r.session.Exec(ctx, "select pg_advisory_unlock_all()"); err != nil {
		_ = r.session.Conn().Close(ctx) // which unlocks too
	}
}

// prepare makes empty copies of the tables, and a pool that sees nothing but them.
func (r *rebuild) prepare(ctx context.Context) error {
	var err error
	if r.tables, err = describe(ctx, r.session, r.def); err != nil {
		return err
	}
	schema := pgx.Identifier{r.schema}.Sanitize()
	sql := "drop schema if exists " + schema + " cascade; create schema " + schema
	for _, t := range r.tables {
		sql += fmt.Sprintf("; create table %s.%s (like %s including all)", schema, t.quoted(), t.here())
	}
	if _, err := r.session.Exec(ctx, sql); err != nil {
		return err
	}
	cfg := r.opts.Pool.Config()
	cfg.MaxConns, cfg.MinConns = 2, 0
	cfg.ConnConfig.RuntimeParams = maps.Clone(cfg.ConnConfig.RuntimeParams)
	cfg.ConnConfig.RuntimeParams["search_path"] = r.schema
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return err
	}
	r.store = eventstore.New(pool, eventstore.Options{Registry: r.opts.Registry})
	r.handler = r.def.Handler(r.store)
	return nil
}
