package operator

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed queries/admin_trials.sql
var adminTrialsSQL string

// Trial is what a replay would come to for one parked record.
type Trial struct {
	Topic     string
	Partition int32
	Offset    int64
	Key       []byte
	Type      string
	Outcome   string // OutcomeApplied, OutcomePassed, OutcomeRejected, OutcomeBlocked or OutcomeHeldUp
	Detail    string // the error; or what blocks it
}

// Try asks the owners of the partitions what a [Replay] would come to: they have the handler apply the records, in
// transactions that cannot be committed. Nothing is changed and nothing audited. It returns the requests, one per
// partition: see [Requests], then [Trials] and [Forget]. Of each partition the first records are tried, as many as a
// batch takes and 3 s allow. Error: [*NotFoundError].
func Try(ctx context.Context, pool *pgxpool.Pool, s Selection, who string) ([]int64, error) {
	return ask(ctx, pool, s, actionTry, who)
}

// Trials are the answers to requests made by [Try], in the order of topics, partitions and offsets.
func Trials(ctx context.Context, pool *pgxpool.Pool, ids []int64) ([]Trial, error) {
	return query[Trial](ctx, pool, adminTrialsSQL, ids)
}

// Forget takes requests made by [Try] and their answers away, answered or not.
func Forget(ctx context.Context, pool *pgxpool.Pool, ids []int64) error {
	_, err := pool.Exec(ctx, "delete from operator_requests where id = any ($1::bigint[]) and action = $2", ids, actionTry)
	if err != nil {
		return fmt.Errorf("operator: forget trials: %w", err)
	}
	return nil
}

// CountParked counts the records that a selection means, and their keys.
func CountParked(ctx context.Context, pool *pgxpool.Pool, s Selection) (records, keys int, err error) {
	err = pool.QueryRow(ctx, `select count(*), count(distinct key) from parked
		where operator = $1 and ($2 = '' or topic = $2) and ($3::int is null or partition = $3)
		  and ($4::bigint is null or "offset" = $4) and ($5::bytea is null or key = $5)`, s.args()...).Scan(&records, &keys)
	if err != nil {
		return 0, 0, fmt.Errorf("operator: count parked records: %w", err)
	}
	if records == 0 {
		return 0, 0, nothingParked(s)
	}
	return records, keys, nil
}
