package operator

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed queries/admin_accept.sql
var adminAcceptSQL string

// Gap names what an operator stopped for.
type Gap struct {
	Operator  string
	Topic     string
	Partition int32 // -1: the whole topic, as a replaced topic is stopped for
	// NewSource says that the owner's store was begun anew too, so that its positions start at 1 again. Without
	// it, events at or below the last position applied are duplicates.
	NewSource bool
}

// AcceptGap has a stopped operator go on without what is missing, for good:
//
//   - after [*HistoryLostError] from the first record that is still there,
//   - after [*MissingEventsError] from the record that showed the hole,
//   - after [*TopicReplacedError] from the first record of the topic, or partition, as it is now.
//
// The operator resumes by itself within about a second. Who is written to the audit. Error: [*NotFoundError]
// when the operator did not stop there.
func AcceptGap(ctx context.Context, pool *pgxpool.Pool, g Gap, who string) error {
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		var kind, message string
		var resume int64
		err := tx.QueryRow(ctx, `delete from operator_stops where operator = $1 and topic = $2 and partition = $3
			returning kind, message, resume_at`, g.Operator, g.Topic, g.Partition).Scan(&kind, &message, &resume)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, adminAcceptSQL, g.Operator, g.Topic, g.Partition, kind, resume, g.NewSource, who, message)
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return &NotFoundError{
			What: fmt.Sprintf("a stop of %s at %s/%d", g.Operator, g.Topic, g.Partition),
			Hint: "`feira admin operators` shows where operators stopped",
		}
	}
	if err != nil {
		return fmt.Errorf("operator: accept the gap in %s/%d: %w", g.Topic, g.Partition, err)
	}
	return nil
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
