package demo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/feira-shop/feira/internal/oracle"
	"github.com/feira-shop/feira/sim/shoppers"
)

// VerifyError says that the books do not balance, or that orders never came to an end.
type VerifyError struct{ Report oracle.Report }

func (e *VerifyError) Error() string {
	return fmt.Sprintf("%d differences and %d orders without an end; see above", len(e.Report.Differences), len(e.Report.Open))
}

// summarise tells how the run went.
func (d *demo) summarise(s shoppers.Snapshot, traded time.Duration) {
	var unhappy int64
	paths := []shoppers.Path{shoppers.Happy}
	for _, p := range shoppers.Unhappy {
		unhappy += s.Paths[p]
		paths = append(paths, p)
	}
	if d.opts.Thieves > 0 {
		paths = append(paths, shoppers.Fraudulent...)
	}
	d.console.note("%d orders placed in %s, %d of them not the easy way", s.Placed, traded.Round(time.Second), unhappy)
	if s.Checkout.Count > 0 {
		d.console.note("checkout p50 %s, p99 %s; settled after p50 %s, p99 %s",
			short(s.Checkout.P50), short(s.Checkout.P99), short(s.Settled.P50), short(s.Settled.P99))
	}
	d.console.note("%d checkouts sent twice on purpose, %d requests repeated for want of an answer, %d checkouts refused",
		s.Repeats, s.Retries, s.Refused)
	counts(d.console, "\nOrders by the way they were to go", paths, s.Paths)
	counts(d.console, "\nOrders by how they ended", slices.Sorted(maps.Keys(s.Outcomes)), s.Outcomes)
	d.console.print("\n")
}

// verify lets the oracle look at everything.
func (d *demo) verify(ctx context.Context) error {
	d.console.note("verifying every table against the event stores …")
	report, err := oracle.Examine(ctx, oracle.Config{
		Services: d.all, Settle: d.patience(), DSN: d.dsn, Fraud: d.opts.Fraud,
		Analytics: d.opts.Analytics, Kafka: d.infra.kafka.Config("feira-verify"),
		Progress: func(what string) {
			if d.console.columns() > 0 {
				d.console.status(what)
			}
		},
	})
	d.console.status("")
	if err != nil {
		return err
	}
	oracle.Print(d.console, report)
	if !report.Clean() || len(report.Open) > 0 {
		return &VerifyError{report}
	}
	return nil
}
