package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/feira-shop/feira/internal/shop"
	"github.com/feira-shop/feira/shared/operator"
)

type parkedCmd struct {
	List    parkedListCmd    `cmd:"" default:"withargs" help:"List parked records, with why and since when."`
	Show    parkedShowCmd    `cmd:"" help:"Show a parked record as it is on the topic."`
	Replay  parkedReplayCmd  `cmd:"" help:"Apply parked records again, in order."`
	Discard parkedDiscardCmd `cmd:"" help:"Give parked records up: they are never applied."`
}

type parkedListCmd struct {
	admin `embed:""`

	Operator string `arg:"" optional:"" help:"Only this operator's."`
	Limit    int    `default:"50" help:"At most so many of each operator."`
}

// Run lists parked records.
func (c *parkedListCmd) Run(ctx context.Context) error {
	services := shop.Names()
	if c.Operator != "" {
		service, _, _ := strings.Cut(c.Operator, ".")
		services = []string{service}
	}
	rows := [][]string{{"OPERATOR", "PLACE", "KEY", "TYPE", "REASON", "SINCE", "TRIED", "ERROR"}}
	for _, service := range services {
		more, err := c.service(ctx, service)
		if err != nil {
			return err
		}
		rows = append(rows, more...)
	}
	if len(rows) == 1 {
		fmt.Println("nothing is parked")
		return nil
	}
	return table(rows)
}

// service lists the records that operators of a service parked, also of those that it no longer has.
func (c *parkedListCmd) service(ctx context.Context, service string) ([][]string, error) {
	pool, err := c.open(ctx, service)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	operators, err := operator.List(ctx, pool)
	if err != nil {
		return nil, err
	}
	var rows [][]string
	for _, o := range operators {
		if c.Operator != "" && c.Operator != o.Operator {
			continue
		}
		list, err := operator.ListParked(ctx, pool, operator.Selection{Operator: o.Operator}, c.Limit)
		if err != nil {
			return nil, err
		}
		for _, p := range list {
			rows = append(rows, []string{
				p.Operator, fmt.Sprintf("%s/%d/%d", p.Topic, p.Partition, p.Offset), printable(string(p.Key)), printable(p.Type), p.Reason,
				p.ParkedAt.UTC().Format(time.RFC3339), fmt.Sprint(p.Attempts), printable(p.Error),
			})
		}
	}
	return rows, nil
}

type parkedShowCmd struct {
	admin `embed:""`

	Operator string `arg:"" help:"The operator."`
	Place    string `arg:"" help:"topic/partition/offset."`
}

// Run shows one.
func (c *parkedShowCmd) Run(ctx context.Context) error {
	at, err := place(c.Place)
	if err != nil {
		return err
	}
	pool, err := c.of(ctx, c.Operator)
	if err != nil {
		return err
	}
	defer pool.Close()
	p, err := operator.ShowParked(ctx, pool, c.Operator, *at)
	if err != nil {
		return err
	}
	rows := [][]string{
		{"operator", p.Operator}, {"place", c.Place}, {"key", printable(string(p.Key))}, {"type", printable(p.Type)}, {"event", printable(p.EventID)},
		{"reason", p.Reason}, {"error", printable(p.Error)}, {"parked", p.ParkedAt.UTC().Format(time.RFC3339)}, {"tried", fmt.Sprint(p.Attempts)},
	}
	for _, h := range p.Headers {
		rows = append(rows, []string{"header " + printable(h.Key), printable(h.Value)})
	}
	if err := table(rows); err != nil {
		return err
	}
	_, err = fmt.Printf("\n%s\n", printable(string(p.Value)))
	return err
}

// selection says which records are meant.
type selection struct {
	Operator string `arg:"" help:"The operator."`
	At       string `xor:"which" placeholder:"PLACE" help:"One record: topic/partition/offset."`
	Key      string `xor:"which" help:"All records of a key."`
	All      bool   `xor:"which" help:"All of the operator's."`
}

func (s selection) resolve() (operator.Selection, error) {
	sel := operator.Selection{Operator: s.Operator}
	switch {
	case s.At != "":
		at, err := place(s.At)
		sel.Record = at
		return sel, err
	case s.Key != "":
		sel.Key = []byte(s.Key)
	case !s.All:
		return sel, errors.New("say which: --at PLACE, --key KEY or --all")
	}
	return sel, nil
}

type parkedReplayCmd struct {
	admin     `embed:""`
	selection `embed:""`

	Wait time.Duration `default:"30s" help:"How long to wait for the operator to do it."`
}

// Run replays.
func (c *parkedReplayCmd) Run(ctx context.Context) error {
	return c.request(ctx, c.selection, operator.Replay, c.Wait)
}

type parkedDiscardCmd struct {
	admin     `embed:""`
	selection `embed:""`

	Yes  bool          `required:"" help:"Confirm: what is discarded is never applied."`
	Wait time.Duration `default:"30s" help:"How long to wait for the operator to do it."`
}

// Run discards.
func (c *parkedDiscardCmd) Run(ctx context.Context) error {
	return c.request(ctx, c.selection, operator.Discard, c.Wait)
}

// request files requests, which the owners of the partitions carry out, and follows them.
func (a admin) request(ctx context.Context, s selection,
	file func(context.Context, *pgxpool.Pool, operator.Selection, string) ([]int64, error), wait time.Duration,
) error {
	sel, err := s.resolve()
	if err != nil {
		return err
	}
	pool, err := a.of(ctx, s.Operator)
	if err != nil {
		return err
	}
	defer pool.Close()
	ids, err := file(ctx, pool, sel, a.who())
	if err != nil {
		return err
	}
	return follow(ctx, pool, ids, wait)
}

func follow(ctx context.Context, pool *pgxpool.Pool, ids []int64, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		requests, err := operator.Requests(ctx, pool, ids)
		if err != nil {
			return err
		}
		open, done, failed := 0, 0, 0
		for _, r := range requests {
			done, failed = done+r.Done, failed+r.Failed
			if r.FinishedAt == nil {
				open++
			}
		}
		if open == 0 {
			fmt.Printf("%d done, %d failed again and stay parked\n", done, failed)
			if failed > 0 {
				return errors.New("what is wrong with them now: feira admin parked list")
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d partitions have not answered within %s; they do once the operator runs and is not paused", open, len(requests), wait)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
