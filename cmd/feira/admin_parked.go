package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/feira-shop/feira/internal/shop"
	"github.com/feira-shop/feira/shared/operator"
)

type parkedCmd struct {
	List    parkedListCmd    `cmd:"" default:"withargs" help:"List parked records, with why and since when."`
	Show    parkedShowCmd    `cmd:"" help:"Show a parked record as it is on the topic."`
	Replay  parkedReplayCmd  `cmd:"" help:"Apply parked records again, in order; or say what would come of it (--dry-run)."`
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
