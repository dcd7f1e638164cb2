package operator

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

//go:embed queries/rebuild_aside.sql
var rebuildAsideSQL string

// aside are records that the running operator passed without applying them, by place and by event.
type aside struct {
	places map[Place]bool
	ids    map[string]bool
}

func (a aside) has(it *item) bool {
	return a.places[Place{it.rec.Topic, it.rec.Partition, it.rec.Offset}] || it.rec.ID != "" && a.ids[it.rec.ID]
}

// switchTime bounds the switch, which holds up the running operator. The server ends one that idles for 3 s, as when this
// process is frozen.
const switchTime = 20 * time.Second

// errTooLate says that the switch took too long and was given up.
var errTooLate = errors.New("the switch took too long; it was given up for now, and nothing was changed")

// switchOver compares and, but in a dry run, replaces, while the running operator waits.
//
// Locks are taken in the order of its own transactions, tables and then checkpoints, so that neither waits for the other
// for ever.
func (r *rebuild) switchOver(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, switchTime, errTooLate)
	defer cancel()
	tx, err := r.session.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	exchange := r.exchange
	if r.state != nil {
		exchange = r.exchangeStates
	}
	if _, err := tx.Exec(ctx, "set local enable_seqscan = on; set local statement_timeout = '15s'; lock table "+r.written()+" in share row exclusive mode"); err != nil {
		return err
	}
	began := time.Now()
	if _, err := tx.Exec(ctx, "select from checkpoints where operator = $1 order by topic, partition for update", r.def.Name); err != nil {
		return err
	}
	if err := r.opts.reached("locked"); err != nil {
		return err
	}
	if err := r.bringUp(ctx, tx); err != nil {
		return err
	}
	if err := exchange(ctx, tx); err != nil {
		return err
	}
	if r.opts.DryRun {
		return nil
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	r.result.Switched, r.result.WaitedFor = true, time.Since(began)
	return nil
}

// written names the tables that the running operator writes.
func (r *rebuild) written() string {
	if r.state != nil {
		return strings.Join(r.state.StateTables(), ", ")
	}
	names := make([]string, len(r.tables))
	for i, t := range r.tables {
		names[i] = t.here()
	}
	return strings.Join(names, ", ")
}

// bringUp brings the copies exactly to where the running operator stands.
func (r *rebuild) bringUp(ctx context.Context, tx pgx.Tx) error {
	targets, err := r.look(ctx, tx)
	if err != nil {
		return err
	}
	if _, err := r.advance(ctx, targets); err != nil {
		return err
	}
	// What was parked when it was met and is not any more was replayed since: behind the others, as here.
	var replayed []*item
	r.skipped = slices.DeleteFunc(r.skipped, func(it *item) bool {
		if r.aside.has(it) || it.fate == parking {
			return false
		}
		replayed = append(replayed, it)
		return true
	})
	r.result.LeftOut = int64(len(r.skipped))
	r.torn = true
	if err := r.apply(ctx, replayed); err != nil {
		return err
	}
	r.torn = false
	return nil
}

// exchange compares table by table, and writes what differs.
func (r *rebuild) exchange(ctx context.Context, tx pgx.Tx) error {
	r.result.Tables = nil
	for _, t := range r.tables {
		d, err := t.compare(ctx, tx, r.schema)
		if err != nil {
			return err
		}
		r.result.Tables = append(r.result.Tables, d)
		if r.opts.DryRun {
			continue
		}
		if err := t.replace(ctx, tx, r.schema); err != nil {
			return err
		}
	}
	if r.opts.DryRun {
		return nil
	}
	return r.fence(ctx, tx)
}

// fence ends the switch: whatever the running operator read before, it must not write now.
func (r *rebuild) fence(ctx context.Context, tx pgx.Tx) error {
	if err := r.opts.reached("replaced"); err != nil {
		return err
	}
	if !r.result.Same() {
		if _, err := tx.Exec(ctx, "update checkpoints set epoch = epoch + 1 where operator = $1", r.def.Name); err != nil {
			return err
		}
	}
	var found []string
	for _, d := range r.result.Tables {
		found = append(found, fmt.Sprintf("%s: %d rows, %d missing, %d excess, %d different", d.Table, d.Rows, d.Missing, d.Excess, d.Different))
	}
	_, err := tx.Exec(ctx, "insert into operator_audit (operator, action, who, detail) values ($1, 'rebuild', $2, $3)",
		r.def.Name, r.opts.Who, fmt.Sprintf("%d records; %s", r.result.Records, strings.Join(found, "; ")))
	return err
}

// look reads how far the running operator has come, and what it passed without applying it, as of one moment.
func (r *rebuild) look(ctx context.Context, tx pgx.Tx) (map[place]position, error) {
	var topics []string // checkpoints on others are left over from an earlier definition
	for _, t := range r.def.Topics {
		topics = append(topics, t.Name)
	}
	rows, err := tx.Query(ctx, `select topic, partition, next_offset, source_position from checkpoints
		where operator = $1 and topic = any ($2)`, r.def.Name, topics)
	if err != nil {
		return nil, err
	}
	targets := map[place]position{}
	var at place
	var to position
	if _, err := pgx.ForEachRow(rows, []any{&at.topic, &at.partition, &to.next, &to.source}, func() error {
		targets[at] = to
		return nil
	}); err != nil {
		return nil, err
	}
	if len(targets) == 0 {
		return nil, unknownOperator(r.def.Name)
	}
	rows, err = tx.Query(ctx, rebuildAsideSQL, r.def.Name)
	if err != nil {
		return nil, err
	}
	r.aside = aside{places: map[Place]bool{}, ids: map[string]bool{}}
	var p Place
	var id string
	_, err = pgx.ForEachRow(rows, []any{&p.Topic, &p.Partition, &p.Offset, &id}, func() error {
		r.aside.places[p] = true
		if id != "" {
			r.aside.ids[id] = true
		}
		return nil
	})
	return targets, err
}
