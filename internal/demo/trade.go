package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/feira-shop/feira/internal/oracle"
	"github.com/feira-shop/feira/shared/auth"
	"github.com/feira-shop/feira/sim/shoppers"
)

// settleFor bounds how long the demo waits, at its end, for what is under way.
const settleFor = 90 * time.Second

// VerifyError says that the books do not balance, or that orders never came to an end.
type VerifyError struct{ Report oracle.Report }

func (e *VerifyError) Error() string {
	return fmt.Sprintf("%d differences and %d orders without an end; see above", len(e.Report.Differences), len(e.Report.Open))
}

// trade lets the shoppers order until the time is over or ctx ends. With a time it settles, summarises and verifies.
func (d *demo) trade(ctx context.Context) error {
	buyers, err := shoppers.New(shoppers.Options{
		BaseURL: d.shop, Rate: d.opts.Shoppers, Seed: uint64(d.opts.Seed), Settle: settleFor + d.opts.Deadline, Log: d.log,
		Token:         func(customer string) string { return d.token(customer, auth.Customer) },
		OperatorToken: func() string { return d.token("shopkeeper", auth.Operator) },
	})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer func() { cancel(); <-ended }()
	go func() { defer close(ended); ended <- buyers.Run(work) }()
	if d.opts.For <= 0 {
		d.progress(ctx, buyers, "press Ctrl-C to stop", nil)
		d.note("stopping …")
		return nil
	}
	d.progress(ctx, buyers, "trading for "+d.opts.For.String(), time.After(d.opts.For))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	buyers.Stop()
	done := make(chan time.Time)
	var settled error
	go func() { settled = <-ended; close(done) }()
	d.progress(ctx, buyers, "letting every order settle", done)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(settled, d.verify(ctx, buyers.Snapshot()))
}

// token signs one for the demo's own use.
func (d *demo) token(subject string, role auth.Role) string {
	t, err := d.infra.key.Sign(subject, []auth.Role{role}, time.Hour)
	if err != nil {
		d.log.Error("no token", "subject", subject, "error", err)
	}
	return t
}

// progress keeps a line up to date until ctx ends or until fires. Without a terminal it says where it is now and then.
func (d *demo) progress(ctx context.Context, buyers *shoppers.Shoppers, doing string, until <-chan time.Time) {
	every := 10 * time.Second
	if d.opts.Terminal {
		every = 250 * time.Millisecond
	}
	d.note("%s", doing)
	tick := time.NewTicker(every)
	defer tick.Stop()
	before := buyers.Snapshot().Placed
	for {
		select {
		case <-ctx.Done():
			d.clear()
			return
		case <-until:
			d.clear()
			return
		case <-tick.C:
			s := buyers.Snapshot()
			d.line(s, float64(s.Placed-before)/every.Seconds())
			before = s.Placed
		}
	}
}

func (d *demo) line(s shoppers.Snapshot, rate float64) {
	text := fmt.Sprintf("%d orders placed, %d under way, %.1f/s, checkout p50 %s p99 %s, settled after p50 %s",
		s.Placed, s.Open, rate, short(s.Checkout.P50), short(s.Checkout.P99), short(s.Settled.P50))
	if d.opts.Terminal {
		_, _ = fmt.Fprintf(d.opts.Out, "\r\x1b[K  %s", text)
		return
	}
	d.note("%s", text)
}

func (d *demo) clear() {
	if d.opts.Terminal {
		_, _ = fmt.Fprint(d.opts.Out, "\r\x1b[K")
	}
}

func short(t time.Duration) string { return t.Round(100 * time.Microsecond).String() }

// verify summarises and lets the oracle look at everything.
func (d *demo) verify(ctx context.Context, s shoppers.Snapshot) error {
	d.summarise(s)
	d.note("verifying every table against the event stores …")
	report, err := oracle.Examine(ctx, oracle.Config{
		Services: d.all, Settle: settleFor,
		DSN: func(name string) (string, error) { return d.infra.postgres.DSN(name), nil },
	})
	if err != nil {
		return err
	}
	oracle.Print(d.opts.Out, report)
	if !report.Clean() || len(report.Open) > 0 {
		return &VerifyError{report}
	}
	return nil
}

// summarise tells how the run went.
func (d *demo) summarise(s shoppers.Snapshot) {
	d.note("%d orders placed, %d requests sent again, %d checkouts sent twice on purpose", s.Placed, s.Retries, s.Repeats)
	d.note("checkout p50 %s, p99 %s; settled after p50 %s, p99 %s", short(s.Checkout.P50), short(s.Checkout.P99), short(s.Settled.P50), short(s.Settled.P99))
	table(d, "orders by the way they were to go", s.Paths)
	table(d, "orders by how they ended", s.Outcomes)
}

func table[K ~string](d *demo, title string, counts map[K]int64) {
	names := make([]string, 0, len(counts))
	for k := range counts {
		names = append(names, string(k))
	}
	slices.Sort(names)
	lines := make([]string, len(names))
	for i, n := range names {
		lines[i] = fmt.Sprintf("  %-34s %6d", n, counts[K(n)])
	}
	_, _ = fmt.Fprintf(d.opts.Out, "%s\n%s\n", title, strings.Join(lines, "\n"))
}
