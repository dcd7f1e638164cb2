package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/feira-shop/feira/internal/shop"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/service"
)

type rebuildCmd struct {
	admin `embed:""`

	Service string `arg:"" help:"The service."`
	DryRun  bool   `help:"Only count what differs, write nothing."`
}

// Run rebuilds the states of a service's streams.
func (c *rebuildCmd) Run(ctx context.Context) error {
	pool, err := c.open(ctx, c.Service)
	if err != nil {
		return err
	}
	defer pool.Close()
	picked, err := shop.Select(shop.Services(shop.Config{}), c.Service)
	if err != nil {
		return err
	}
	store := eventstore.New(pool, eventstore.Options{Service: c.Service, Registry: picked[0].Registry()})
	done, err := picked[0].Rebuild(ctx, store, c.DryRun, func(r service.Rebuilt) {
		if term.IsTerminal(int(os.Stderr.Fd())) {
			fmt.Fprintf(os.Stderr, "\r%d streams, %d differ\r", r.Streams, r.Changed)
		}
	})
	if err != nil {
		return err
	}
	fmt.Printf("%d streams examined, %d states differed", done.Streams, done.Changed)
	if done.Archived > 0 {
		fmt.Printf(", %d were left as they are because their histories are archived", done.Archived)
	}
	if c.DryRun {
		fmt.Print("; nothing was written")
	}
	fmt.Println()
	return nil
}

type auditCmd struct {
	admin `embed:""`

	Operator string `arg:"" help:"The operator."`
	Limit    int    `default:"50" help:"The latest so many."`
}

// Run shows the audit.
func (c *auditCmd) Run(ctx context.Context) error {
	pool, err := c.of(ctx, c.Operator)
	if err != nil {
		return err
	}
	defer pool.Close()
	list, err := operator.AuditOf(ctx, pool, c.Operator, c.Limit)
	if err != nil {
		return err
	}
	rows := [][]string{{"AT", "WHO", "ACTION", "PLACE", "DETAIL"}}
	for _, a := range list {
		where := ""
		if a.Topic != nil {
			where = *a.Topic
		}
		if a.Partition != nil {
			where += fmt.Sprintf("/%d", *a.Partition)
		}
		if a.Offset != nil {
			where += fmt.Sprintf("/%d", *a.Offset)
		}
		rows = append(rows, []string{a.At.UTC().Format(time.RFC3339), printable(a.Who), a.Action, where, printable(a.Detail)})
	}
	return table(rows)
}
