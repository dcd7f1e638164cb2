package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/term"

	"github.com/feira-shop/feira/internal/shop"
	"github.com/feira-shop/feira/shared/events"
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
	if c.DryRun {
		fmt.Print("; nothing was written")
	}
	fmt.Println()
	return nil
}

// gap names a hole.
type gap struct {
	Operator  string `arg:"" help:"The operator that stopped."`
	Topic     string `arg:"" help:"The topic."`
	Partition string `arg:"" help:"The partition's number; all for a whole topic that was replaced."`
}

// hole reads the arguments.
func (g gap) hole() (operator.Gap, error) {
	hole := operator.Gap{Operator: g.Operator, Topic: g.Topic, Partition: -1}
	if g.Partition == "all" {
		return hole, nil
	}
	n, err := strconv.ParseInt(g.Partition, 10, 32)
	if err != nil || n < 0 {
		return hole, fmt.Errorf("%q is no partition: it is a number from 0, or all", g.Partition)
	}
	hole.Partition = int32(n)
	return hole, nil
}

type acceptGapCmd struct {
	admin `embed:""`
	gap   `embed:""`

	NewSource bool `help:"The owner's store was begun anew too, so that its positions start at 1 again."`
	Yes       bool `required:"" help:"Confirm: the missing events are never applied."`
}

// Run accepts a gap.
func (c *acceptGapCmd) Run(ctx context.Context) error {
	pool, err := c.of(ctx, c.Operator)
	if err != nil {
		return err
	}
	defer pool.Close()
	hole, err := c.hole()
	if err != nil {
		return err
	}
	hole.NewSource = c.NewSource
	err = operator.AcceptGap(ctx, pool, hole, c.who())
	if err == nil {
		fmt.Println("accepted;", c.Operator, "goes on by itself")
	}
	return err
}

type fillGapCmd struct {
	admin `embed:""`
	gap   `embed:""`
}

// Run fills a gap from the store of the topic's owner.
func (c *fillGapCmd) Run(ctx context.Context) error {
	hole, err := c.hole()
	if err != nil {
		return err
	}
	pool, err := c.of(ctx, c.Operator)
	if err != nil {
		return err
	}
	defer pool.Close()
	for _, t := range events.Topics() {
		if t.Name != c.Topic || t.Owner == "" {
			continue
		}
		owner, err := c.open(ctx, t.Owner)
		if err != nil {
			return err
		}
		defer owner.Close()
		picked, err := shop.Select(shop.Services(shop.Config{}), t.Owner)
		if err != nil {
			return err
		}
		store := eventstore.New(owner, eventstore.Options{Service: t.Owner, Registry: picked[0].Registry()})
		n, err := operator.FillGap(ctx, pool, store, t, hole, c.who())
		if err == nil {
			fmt.Println(n, "events will be filled in;", c.Operator, "goes on by itself")
		}
		return err
	}
	return fmt.Errorf("no service owns the topic %q, so there is no store to fill the hole from", c.Topic)
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
