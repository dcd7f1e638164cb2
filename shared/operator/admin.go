package operator

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

var (
	//go:embed queries/admin_list.sql
	adminListSQL string
	//go:embed queries/admin_pause.sql
	adminPauseSQL string
)

// NotFoundError says that what a person named is not there.
type NotFoundError struct {
	What string // in words, with its name
	Hint string // what to do
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("operator: %s is not there; %s", e.What, e.Hint)
}

// Status is what the service's database knows about an operator.
type Status struct {
	Operator   string
	Paused     bool
	Stops      []Stop // why it is stopped by name; empty while it goes on
	Partitions []Partition
}

// Partition is the checkpoint of one partition.
type Partition struct {
	Operator       string
	Topic          string
	Partition      int32
	NextOffset     int64 // of the next record to take; -1: the earliest, at the next claim
	SourcePosition int64 // position in the owner's store of the last event applied
	Epoch          int64 // owners so far
	UpdatedAt      time.Time
	Parked         int64
}

// Stop is a named reason for which an operator does not go on.
type Stop struct {
	Operator  string
	Topic     string
	Partition int32  // -1: the whole topic
	Kind      string // history_lost, topic_replaced or missing_events
	Message   string
	Member    string // that met it
	StoppedAt time.Time
}

// List tells of all operators that ever ran on this database, by name.
func List(ctx context.Context, pool *pgxpool.Pool) ([]Status, error) {
	rows, err := pool.Query(ctx, adminListSQL)
	if err != nil {
		return nil, fmt.Errorf("operator: list: %w", err)
	}
	partitions, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Partition])
	if err != nil {
		return nil, fmt.Errorf("operator: list: %w", err)
	}
	var all []Status
	index := map[string]int{}
	for _, p := range partitions {
		if _, ok := index[p.Operator]; !ok {
			index[p.Operator] = len(all)
			all = append(all, Status{Operator: p.Operator})
		}
		s := &all[index[p.Operator]]
		s.Partitions = append(s.Partitions, p)
	}
	stops, err := query[Stop](ctx, pool, `select operator, topic, partition, kind, message, member, stopped_at
		from operator_stops order by operator, topic, partition`)
	if err != nil {
		return nil, err
	}
	for _, stop := range stops {
		if i, ok := index[stop.Operator]; ok {
			all[i].Stops = append(all[i].Stops, stop)
		}
	}
	paused, err := query[struct{ Operator string }](ctx, pool, "select operator from operator_control where paused")
	if err != nil {
		return nil, err
	}
	for _, p := range paused {
		if i, ok := index[p.Operator]; ok {
			all[i].Paused = true
		}
	}
	return all, nil
}

// Lag is how far an operator is behind in one partition.
type Lag struct {
	Topic      string
	Partition  int32
	NextOffset int64
	End        int64 // offset after the last record
	Records    int64 // between them
	Gone       bool  // the topic has no such partition, most likely any more: End and Records are 0
}

// Lags compares the checkpoints of an operator, from [List], with the ends of the log.
func Lags(client sarama.Client, s Status) ([]Lag, error) {
	lags := make([]Lag, 0, len(s.Partitions))
	for _, p := range s.Partitions {
		l := Lag{Topic: p.Topic, Partition: p.Partition, NextOffset: p.NextOffset}
		end, err := client.GetOffset(p.Topic, p.Partition, sarama.OffsetNewest)
		switch {
		case errors.Is(err, sarama.ErrUnknownTopicOrPartition):
			l.Gone = true
		case err != nil:
			return nil, fmt.Errorf("operator: end of %s/%d: %w", p.Topic, p.Partition, err)
		default:
			l.End, l.Records = end, max(0, end-max(0, p.NextOffset))
		}
		lags = append(lags, l)
	}
	return lags, nil
}

// Pause has an operator take nothing more, in every process, within about half a second. It keeps its
// partitions, and finishes the batch in hand. Who is written to the audit. Error: [*NotFoundError].
func Pause(ctx context.Context, pool *pgxpool.Pool, operator, who string) error {
	return setPaused(ctx, pool, operator, who, true)
}

// Resume ends a pause, and has an operator that stopped by name look again whether it can go on: it stops again
// if nothing has changed. Error: [*NotFoundError].
func Resume(ctx context.Context, pool *pgxpool.Pool, operator, who string) error {
	return setPaused(ctx, pool, operator, who, false)
}

func setPaused(ctx context.Context, pool *pgxpool.Pool, operator, who string, paused bool) error {
	action := "resume"
	if paused {
		action = "pause"
	}
	var known bool
	if err := pool.QueryRow(ctx, adminPauseSQL, operator, paused, who, action).Scan(&known); err != nil {
		return fmt.Errorf("operator: %s %s: %w", action, operator, err)
	}
	if !known {
		return unknownOperator(operator)
	}
	return nil
}

func unknownOperator(operator string) error {
	return &NotFoundError{What: "operator " + operator, Hint: "names are those of `feira admin operators`; it must have run once"}
}

func query[T any](ctx context.Context, pool *pgxpool.Pool, sql string, args ...any) ([]T, error) {
	rows, err := pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("operator: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[T])
	if err != nil {
		return nil, fmt.Errorf("operator: %w", err)
	}
	return all, nil
}
