package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/feira-shop/feira/shared/operator"
)

type fillGapCmd struct {
	admin `embed:""`
	gap   `embed:""`

	Wait time.Duration `default:"30s" help:"How long to wait for the operator to apply them."`
}

// Help explains what is filled in.
func (*fillGapCmd) Help() string {
	return "Reads the events that are missing from the store of the topic's owner; the operator applies them, once and in order, before the next record. It must run to do so, or does it when it is started. With \"all\", whatever it stops for on this topic while the command waits is filled in too."
}

// filling is a fill-gap command at work.
type filling struct {
	*fillGapCmd
	pool   *pgxpool.Pool
	client sarama.Client
	owner  operator.Owner
}

// Run fills gaps from the store of the topic's owner.
func (c *fillGapCmd) Run(ctx context.Context) error {
	topic, err := c.topic()
	if err != nil {
		return err
	}
	if _, err := c.hole(); err != nil {
		return err
	}
	pool, err := c.of(ctx, c.Operator)
	if err != nil {
		return err
	}
	defer pool.Close()
	owner, done, err := c.owner(ctx, topic)
	if err != nil {
		return err
	}
	defer done()
	client, err := c.client()
	if err != nil {
		return err
	}
	defer client.Close()
	f := &filling{fillGapCmd: c, pool: pool, client: client, owner: owner}
	plans, err := f.plan(ctx)
	if err != nil {
		return err
	}
	if c.DryRun {
		return f.show(plans)
	}
	return f.work(ctx, plans)
}

// plan reads what is missing.
func (f *filling) plan(ctx context.Context) ([]operator.Fill, error) {
	holes, err := f.holes(ctx, f.pool, f.client, f.owner.Topic)
	if err != nil {
		return nil, err
	}
	plans := make([]operator.Fill, 0, len(holes))
	for _, h := range holes {
		p, err := operator.PlanFill(ctx, f.owner, h, f.wanted())
		if err != nil {
			return nil, err
		}
		plans = append(plans, p)
	}
	return plans, nil
}

func (f *filling) show(plans []operator.Fill) error {
	rows := [][]string{{"PLACE", "STOPPED FOR", "FILLED IN", "GOES ON AT"}}
	total, wanted := 0, 0
	for _, p := range plans {
		rows = append(rows, []string{placeOf(p.Hole), stoppedFor(p.Hole), fillText(p, f.Operator), resumes(p.Hole)})
		total, wanted = total+p.Events, wanted+p.Wanted
	}
	if err := table(rows); err != nil {
		return err
	}
	fmt.Printf("%s would be filled in, %d of types that %s takes; nothing was changed\n", plural(total, "event"), wanted, f.Operator)
	return nil
}

// work fills in what is planned and, of a whole topic, what the operator stops for next.
func (f *filling) work(ctx context.Context, plans []operator.Fill) error {
	ctx, cancel := context.WithTimeout(ctx, f.Wait)
	defer cancel()
	var ids []int64
	for {
		for i := range plans {
			p := &plans[i]
			if err := operator.FillGap(ctx, f.pool, p, f.who()); err != nil {
				return err
			}
			ids = append(ids, p.Request)
			fmt.Printf("%s: %s, then on to %s\n", placeOf(p.Hole), fillText(*p, f.Operator), resumes(p.Hole))
		}
		next, err := f.stopped(ctx, ids)
		switch {
		case err != nil:
			return err
		case next == "":
			fmt.Println("filled in;", f.Operator, "goes on by itself")
			return nil
		case f.Partition != "all":
			return fmt.Errorf("handed over, but the operator stopped again: %s", next)
		}
		if plans, err = f.plan(ctx); err != nil {
			return fmt.Errorf("handed over, but the operator stopped again: %s: %w", next, err)
		}
	}
}

const (
	graceTime = time.Second // within which an operator shows whether it goes on
	graceLook = 200 * time.Millisecond
)

// stopped is why the operator stopped on the topic again, whichever the partition; "" when it has carried the requests out
// and goes on.
func (f *filling) stopped(ctx context.Context, ids []int64) (string, error) {
	var none *operator.NotFoundError
	for began := time.Now(); ; {
		holes, err := operator.Holes(ctx, f.pool, nil, f.owner.Topic, operator.Gap{Operator: f.Operator, Topic: f.Topic, Partition: -1})
		if err == nil {
			return holes[0].Message, nil
		}
		requests, asked := operator.Requests(ctx, f.pool, ids)
		open := slices.ContainsFunc(requests, func(r operator.Request) bool { return r.FinishedAt == nil })
		switch {
		case ctx.Err() != nil:
			return "", fmt.Errorf("handed over, and not applied within %s; that happens once the operator runs and is not paused", f.Wait)
		case !errors.As(err, &none):
			return "", err
		case asked != nil:
			return "", asked
		case open:
			began = time.Now()
		case time.Since(began) > graceTime:
			return "", nil
		}
		select {
		case <-time.After(graceLook):
		case <-ctx.Done():
		}
	}
}
