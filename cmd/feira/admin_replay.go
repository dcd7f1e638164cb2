package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/feira-shop/feira/shared/operator"
)

// selection says which records are meant.
type selection struct {
	Operator string `arg:"" help:"The operator."`
	At       string `xor:"which" placeholder:"PLACE" help:"One record: topic/partition/offset."`
	Key      string `xor:"which" help:"All records of a key."`
	All      bool   `xor:"which" help:"All of the operator's."`

	DryRun bool          `help:"Only say what would come of it, record by record; nothing is changed."`
	Wait   time.Duration `default:"30s" help:"How long to wait for the operator to do it."`
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

	Yes bool `help:"Replay more than one record without asking."`
}

// Help explains what a replay is.
func (*parkedReplayCmd) Help() string {
	return "The operator itself applies the records, so it must run and not be paused. Records of a key are applied in their order: what fails again stays parked, and those of its key behind it. The operator's own place in the topics does not move. With --dry-run the operator applies them in a transaction that is rolled back, and says for each record: applied, passed over (its type is not wanted), rejected (with the error), blocked (by which record), or held up (an error that would be tried again and again)."
}

// Run replays.
func (c *parkedReplayCmd) Run(ctx context.Context) error {
	sel, pool, err := c.parked(ctx, c.selection)
	if err != nil {
		return err
	}
	defer pool.Close()
	records, keys, err := operator.CountParked(ctx, pool, sel)
	if err != nil {
		return err
	}
	if c.DryRun {
		return c.try(ctx, pool, sel, records, c.Wait)
	}
	if records > 1 {
		what := fmt.Sprintf("%s of %s would be replayed by %s", plural(records, "record"), plural(keys, "key"), c.Operator)
		if err := confirm(ctx, what, c.Yes); err != nil {
			return err
		}
	}
	ids, err := operator.Replay(ctx, pool, sel, c.who())
	if err != nil {
		return err
	}
	return follow(ctx, pool, ids, c.Wait)
}

// try says what a replay would come to.
func (a admin) try(ctx context.Context, pool *pgxpool.Pool, sel operator.Selection, records int, wait time.Duration) error {
	ids, err := operator.Try(ctx, pool, sel, a.who())
	if err != nil {
		return err
	}
	defer func() { _ = operator.Forget(context.WithoutCancel(ctx), pool, ids) }() // left over, it does no harm
	if _, err := finished(ctx, pool, ids, wait); err != nil {
		return fmt.Errorf("%w; the dry run was given up", err)
	}
	trials, err := operator.Trials(ctx, pool, ids)
	if err != nil {
		return err
	}
	rows := [][]string{{"PLACE", "KEY", "TYPE", "WOULD BE", "WHY"}}
	outcomes := map[string]int{}
	for _, t := range trials {
		rows = append(rows, []string{
			fmt.Sprintf("%s/%d/%d", t.Topic, t.Partition, t.Offset), printable(string(t.Key)), printable(t.Type), t.Outcome, printable(t.Detail),
		})
		outcomes[t.Outcome]++
	}
	if err := table(rows); err != nil {
		return err
	}
	taken := outcomes[operator.OutcomeApplied] + outcomes[operator.OutcomePassed]
	fmt.Printf("%s would be replayed, %d would stay parked; nothing was changed\n", plural(taken, "record"), len(trials)-taken)
	if rest := records - len(trials); rest > 0 {
		fmt.Printf("%s more were not tried: replay these first, or try them by --key\n", plural(rest, "record"))
	}
	return nil
}

type parkedDiscardCmd struct {
	admin     `embed:""`
	selection `embed:""`

	Yes bool `help:"Discard without asking: what is discarded is never applied."`
}

// Help explains what a discard is.
func (*parkedDiscardCmd) Help() string {
	return "What is discarded is never applied; it stays on the topic and in the audit. What waits behind it is not discarded with it unless it is meant too (--key, --all): replay it then. Only records that are parked when the command is given are taken."
}

// Run discards.
func (c *parkedDiscardCmd) Run(ctx context.Context) error {
	if err := canAnswer("what is discarded is never applied by "+c.Operator, c.Yes || c.DryRun); err != nil {
		return err
	}
	sel, pool, err := c.parked(ctx, c.selection)
	if err != nil {
		return err
	}
	defer pool.Close()
	records, keys, err := operator.CountParked(ctx, pool, sel)
	if err != nil {
		return err
	}
	if c.DryRun {
		return discardDry(ctx, pool, sel, records)
	}
	what := fmt.Sprintf("%s of %s would be discarded: %s never applies them", plural(records, "record"), plural(keys, "key"), c.Operator)
	if err := confirm(ctx, what, c.Yes); err != nil {
		return err
	}
	ids, err := operator.Discard(ctx, pool, sel, c.who())
	if err != nil {
		return err
	}
	return follow(ctx, pool, ids, c.Wait)
}

// dryLines bounds what a dry run of a discard lists.
const dryLines = 500

// discardDry lists what would be given up. No handler is asked, since none is called by a discard.
func discardDry(ctx context.Context, pool *pgxpool.Pool, sel operator.Selection, records int) error {
	list, err := operator.ListParked(ctx, pool, sel, dryLines)
	if err != nil {
		return err
	}
	rows := [][]string{{"PLACE", "KEY", "TYPE", "WOULD BE", "PARKED FOR"}}
	for _, p := range list {
		rows = append(rows, []string{
			fmt.Sprintf("%s/%d/%d", p.Topic, p.Partition, p.Offset), printable(string(p.Key)), printable(p.Type), "discarded", p.Reason + ": " + printable(p.Error),
		})
	}
	if err := table(rows); err != nil {
		return err
	}
	if rest := records - len(list); rest > 0 {
		fmt.Printf("and %s more\n", plural(rest, "record"))
	}
	fmt.Printf("%s would be discarded and never be applied; nothing was changed\n", plural(records, "record"))
	return nil
}

// parked resolves a selection and opens the database that it is in.
func (a admin) parked(ctx context.Context, s selection) (operator.Selection, *pgxpool.Pool, error) {
	sel, err := s.resolve()
	if err != nil {
		return sel, nil, err
	}
	pool, err := a.of(ctx, s.Operator)
	return sel, pool, err
}

// follow waits for requests and says what came of them.
func follow(ctx context.Context, pool *pgxpool.Pool, ids []int64, wait time.Duration) error {
	requests, err := finished(ctx, pool, ids, wait)
	if err != nil {
		return err
	}
	done, failed := 0, 0
	for _, r := range requests {
		done, failed = done+r.Done, failed+r.Failed
	}
	fmt.Printf("%d done, %d failed again and stay parked\n", done, failed)
	if failed > 0 {
		return errors.New("what is wrong with them now: feira admin parked list")
	}
	return nil
}

// finished waits until the owners of the partitions have carried requests out.
func finished(ctx context.Context, pool *pgxpool.Pool, ids []int64, wait time.Duration) ([]operator.Request, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		requests, err := operator.Requests(ctx, pool, ids)
		if err != nil {
			return nil, err
		}
		open := 0
		for _, r := range requests {
			if r.FinishedAt == nil {
				open++
			}
		}
		if open == 0 {
			return requests, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d partitions have not answered within %s; they do once the operator runs and is not paused", open, len(requests), wait)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
