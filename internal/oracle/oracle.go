package oracle

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/feira-shop/feira/services/analytics"
	"github.com/feira-shop/feira/services/fraud"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/pg"
	"github.com/feira-shop/feira/shared/service"
)

// Config says what is examined.
type Config struct {
	Services []service.Definition
	// DSN is the address of a service's database; that of "provider" is the payment provider's.
	DSN func(service string) (string, error)
	// Fraud is what fraud runs with; zero: its defaults. Verdicts made with other thresholds are compared in part.
	Fraud fraud.Config
	// Analytics is how analytics runs: how long its windows are.
	Analytics analytics.Config
	// Kafka is where clicks are read, which are in no store; without brokers that answer they are not compared.
	Kafka kafka.Config
	// Passes is how often a difference must be seen to count; 0 is 3. A pass without any ends the examination.
	Passes int
	// Pause lies between passes; 0 is 700 ms.
	Pause time.Duration
	// Settle is how long to wait for open orders to be answered; 0: not at all.
	Settle time.Duration
	// Progress is told what is being read; nil: nobody.
	Progress func(what string)
}

// Report is the result of an examination.
type Report struct {
	Orders      int      // that were placed
	Events      int64    // in all stores
	Open        []string // orders that others have still to answer, by id
	Differences []string // what is not as it should be
	Behind      int64    // events that analytics has still to count
	Notes       []string // what was not compared, and why
	Totals      Totals
}

// Totals are the figures of a summary.
type Totals struct {
	ByStatus                     map[string]int // orders by status
	ByReason                     map[string]int // cancelled orders by reason
	Held, Released               int
	Captured, Refunded           int64 // minor units
	Voided, Declined, Authorized int   // payments
}

// Clean reports whether nothing differs.
func (r Report) Clean() bool { return len(r.Differences) == 0 }

// Examine compares until nothing differs, or until what differs has been seen often enough.
func Examine(ctx context.Context, cfg Config) (Report, error) {
	if cfg.Passes == 0 {
		cfg.Passes = 3
	}
	if cfg.Pause == 0 {
		cfg.Pause = 700 * time.Millisecond
	}
	if cfg.Progress == nil {
		cfg.Progress = func(string) {}
	}
	e, err := open(ctx, cfg)
	if err != nil {
		return Report{}, err
	}
	defer e.close()
	return e.examine(ctx, cfg)
}

func (e *examiner) examine(ctx context.Context, cfg Config) (Report, error) {
	until := time.Now().Add(cfg.Settle)
	var persistent []string
	for seen := 0; ; {
		report, err := e.pass(ctx)
		if err != nil {
			report.Differences = persistent // as far as it is known
			return report, err
		}
		if seen++; seen == 1 {
			persistent = report.Differences
		}
		persistent = both(persistent, report.Differences)
		waiting := (len(report.Open) > 0 || report.Behind > 0) && time.Now().Before(until)
		if !waiting && (len(persistent) == 0 || seen >= cfg.Passes) {
			report.Differences = persistent
			return report, nil
		}
		if waiting {
			seen = 0
			cfg.Progress(fmt.Sprintf("%d orders are still open, %d events still to be counted", len(report.Open), report.Behind))
		}
		select {
		case <-ctx.Done():
			return report, ctx.Err()
		case <-time.After(cfg.Pause):
		}
	}
}

// both keeps what is in a and in b.
func both(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !slices.Contains(b, s) })
}

// examiner holds a connection to every store.
type examiner struct {
	cfg      Config
	pools    map[string]*pgxpool.Pool
	stores   map[string]*eventstore.Store
	kafka    sarama.Client // nil: clicks are not compared
	unread   error         // why, where they were to be
	progress func(string)
}

func open(ctx context.Context, cfg Config) (*examiner, error) {
	e := &examiner{cfg: cfg, pools: map[string]*pgxpool.Pool{}, stores: map[string]*eventstore.Store{}, progress: cfg.Progress}
	names := []string{provider}
	for _, d := range cfg.Services {
		names = append(names, d.Name)
	}
	for _, name := range names {
		if err := e.connect(ctx, name); err != nil {
			e.close()
			return nil, fmt.Errorf("verify: the database of %s: %w", name, err)
		}
	}
	for _, d := range cfg.Services {
		e.stores[d.Name] = eventstore.New(e.pools[d.Name], eventstore.Options{Service: d.Name, Registry: d.Registry()})
	}
	if len(cfg.Kafka.Brokers) > 0 {
		e.kafka, e.unread = kafka.NewClient(cfg.Kafka)
	}
	return e, nil
}

func (e *examiner) connect(ctx context.Context, name string) error {
	dsn, err := e.cfg.DSN(name)
	if err != nil {
		return err
	}
	pool, err := pg.Open(ctx, dsn, pg.PoolOptions{Name: "feira-verify", MaxConns: 2})
	if err != nil {
		return err
	}
	e.pools[name] = pool
	return nil
}

func (e *examiner) close() {
	if e.kafka != nil {
		_ = e.kafka.Close()
	}
	for _, p := range e.pools {
		p.Close()
	}
}
