package operator

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/feira-shop/feira/shared/events"
)

//go:embed queries/admin_accept.sql
var adminAcceptSQL string

// AcceptGap has a stopped operator go on without what is missing, for good:
//
//   - after [*HistoryLostError] from the first record that is still there,
//   - after [*MissingEventsError] from the record that showed the hole,
//   - after [*TopicReplacedError] from the first record of the topic, or partition, as it is now.
//
// The operator resumes by itself within about a second. Who is written to the audit. Errors: [*NotFoundError] when the
// operator did not stop there, [*MovedError] when it went on meanwhile.
func AcceptGap(ctx context.Context, pool *pgxpool.Pool, g Gap, who string) error {
	holes, err := Holes(ctx, pool, nil, events.Topic{Name: g.Topic}, g)
	if err != nil {
		return err
	}
	for _, h := range holes {
		if err := AcceptHole(ctx, pool, h, g.NewSource, who); err != nil {
			return err
		}
	}
	return nil
}

// AcceptHole is [AcceptGap] for one of [Holes].
func AcceptHole(ctx context.Context, pool *pgxpool.Pool, h Hole, newSource bool, who string) error {
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		stood, err := tx.Exec(ctx, `delete from operator_stops where operator = $1 and topic = $2
			and ($3::int < 0 or partition = $3 and kind = $4 and resume_at = $5)`,
			h.Operator, h.Topic, h.Partition, h.Kind, h.Resume)
		if err != nil {
			return err
		}
		if h.Met && stood.RowsAffected() == 0 {
			return &MovedError{h}
		}
		if !h.Met { // it stands for another partition
			var stands bool
			err := tx.QueryRow(ctx, `select exists (select from checkpoints where operator = $1 and topic = $2 and partition = $3
				and next_offset = $4)`, h.Operator, h.Topic, h.Partition, h.Next).Scan(&stands)
			if err != nil {
				return err
			}
			if !stands {
				return &MovedError{h}
			}
		}
		_, err = tx.Exec(ctx, adminAcceptSQL, h.Operator, h.Topic, h.Partition, h.Kind, h.Resume, newSource, who, h.Message)
		return err
	})
	var moved *MovedError
	if err != nil && !errors.As(err, &moved) {
		return fmt.Errorf("operator: accept the gap in %s: %w", h.place(), err)
	}
	return err
}

// Audit is something that was done by hand, or what came of it.
type Audit struct {
	At        time.Time
	Operator  string
	Action    string
	Topic     *string
	Partition *int32
	Offset    *int64
	Key       []byte
	Who       string
	Detail    string
}

// AuditOf lists the last entries of an operator, newest first.
func AuditOf(ctx context.Context, pool *pgxpool.Pool, operator string, limit int) ([]Audit, error) {
	return query[Audit](ctx, pool, `select at, operator, action, topic, partition, "offset", key, who, detail
		from operator_audit where operator = $1 order by id desc limit $2`, operator, limit)
}
