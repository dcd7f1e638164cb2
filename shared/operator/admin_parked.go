package operator

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/feira-shop/feira/shared/events"
)

var (
	//go:embed queries/admin_parked.sql
	adminParkedSQL string
	//go:embed queries/admin_request.sql
	adminRequestSQL string
	//go:embed queries/admin_request_state.sql
	adminRequestStateSQL string
)

// Parked is a record that an operator keeps aside.
type Parked struct {
	Operator  string
	Topic     string
	Partition int32
	Offset    int64
	Key       []byte // nil: none, it blocks nobody
	Value     []byte // as on the topic; only from [ShowParked]
	Headers   []events.Header
	Timestamp time.Time // of the record
	EventID   string    // "" when it could not be read
	Type      string
	Reason    string // not_cloudevent, foreign_source, unknown_version, invalid_data, rejected or waiting
	Error     string
	Attempts  int // times it was tried and failed; 0: it waits behind another
	ParkedAt  time.Time
}

// Selection says which parked records of an operator are meant. Topic, Key and Offset narrow it down.
type Selection struct {
	Operator string
	Topic    string // "": all topics
	Key      []byte // nil: all keys
	Record   *Place // one record; then Topic and Key are not looked at
}

// Place is where a record is in Kafka.
type Place struct {
	Topic     string
	Partition int32
	Offset    int64
}

func (s Selection) args() []any {
	if r := s.Record; r != nil {
		return []any{s.Operator, r.Topic, &r.Partition, &r.Offset, []byte(nil)}
	}
	return []any{s.Operator, s.Topic, (*int32)(nil), (*int64)(nil), s.Key}
}

// ListParked lists parked records in the order of their topics, partitions and offsets, without their values; at
// most limit of them.
func ListParked(ctx context.Context, pool *pgxpool.Pool, s Selection, limit int) ([]Parked, error) {
	return parkedOf(ctx, pool, s, limit, false)
}

// ShowParked is one parked record with its value. Error: [*NotFoundError].
func ShowParked(ctx context.Context, pool *pgxpool.Pool, operator string, at Place) (Parked, error) {
	found, err := parkedOf(ctx, pool, Selection{Operator: operator, Record: &at}, 1, true)
	if err != nil {
		return Parked{}, err
	}
	if len(found) == 0 {
		return Parked{}, nothingParked(Selection{Operator: operator, Record: &at})
	}
	return found[0], nil
}

func parkedOf(ctx context.Context, pool *pgxpool.Pool, s Selection, limit int, values bool) ([]Parked, error) {
	rows, err := pool.Query(ctx, adminParkedSQL, append(s.args(), limit, values)...)
	if err != nil {
		return nil, fmt.Errorf("operator: parked records: %w", err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Parked, error) {
		var p Parked
		var headers []byte
		err := row.Scan(&p.Operator, &p.Topic, &p.Partition, &p.Offset, &p.Key, &p.Value, &headers, &p.Timestamp,
			&p.EventID, &p.Type, &p.Reason, &p.Error, &p.Attempts, &p.ParkedAt)
		if err != nil {
			return p, err
		}
		decoded, err := decodeHeaders(headers)
		for _, h := range decoded {
			p.Headers = append(p.Headers, events.Header{Key: string(h.Key), Value: string(h.Value)})
		}
		return p, err
	})
	if err != nil {
		return nil, fmt.Errorf("operator: parked records: %w", err)
	}
	return found, nil
}

// Replay asks the owners of the partitions to apply parked records again, in order per key. A record that fails
// again stays parked, and those of its key behind it; of several records of a key, the first must be among those
// replayed. It returns the requests, one per partition: see [Requests]. They are executed while the operator
// runs and is not paused. Who is written to the audit. Error: [*NotFoundError].
func Replay(ctx context.Context, pool *pgxpool.Pool, s Selection, who string) ([]int64, error) {
	return ask(ctx, pool, s, actionReplay, who)
}

// Discard asks the owners to give parked records up: they are never applied. They stay on the topic and in the
// audit. What waited behind them can be replayed. See [Replay] for the rest.
func Discard(ctx context.Context, pool *pgxpool.Pool, s Selection, who string) ([]int64, error) {
	return ask(ctx, pool, s, actionDiscard, who)
}

func ask(ctx context.Context, pool *pgxpool.Pool, s Selection, action, who string) ([]int64, error) {
	rows, err := pool.Query(ctx, adminRequestSQL, append(s.args(), action, who)...)
	if err != nil {
		return nil, fmt.Errorf("operator: %s: %w", action, err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("operator: %s: %w", action, err)
	}
	if len(ids) == 0 {
		return nil, nothingParked(s)
	}
	return ids, nil
}

func nothingParked(s Selection) error {
	what := "a parked record of " + s.Operator
	if s.Record != nil {
		what = fmt.Sprintf("record %s/%d/%d of %s", s.Record.Topic, s.Record.Partition, s.Record.Offset, s.Operator)
	}
	return &NotFoundError{What: what, Hint: "`feira admin parked` lists those that are"}
}

// Request is how far a request has come.
type Request struct {
	ID         int64
	Operator   string
	Topic      string
	Partition  int32
	Action     string
	By         string
	FinishedAt *time.Time // nil: not yet
	Done       int        // records replayed or discarded
	Failed     int        // records that failed again and stay parked
}

// Requests tells how far requests have come.
func Requests(ctx context.Context, pool *pgxpool.Pool, ids []int64) ([]Request, error) {
	return query[Request](ctx, pool, adminRequestStateSQL, ids)
}
