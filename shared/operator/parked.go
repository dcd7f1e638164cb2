package operator

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"github.com/IBM/sarama"

	"github.com/feira-shop/feira/shared/eventstore"
)

//go:embed queries/park.sql
var parkSQL string

// parkedRows collects columns of the table parked for one statement.
type parkedRows struct {
	topics     []string
	partitions []int32
	offsets    []int64
	keys       [][]byte
	values     [][]byte
	headers    []string
	times      []int64 // microseconds
	ids        []string
	types      []string
	reasons    []string
	errors     []string
	attempts   []int32
}

func (r *parkedRows) add(p place, it *item) error {
	headers, err := encodeHeaders(it.raw.headers)
	if err != nil {
		return err
	}
	var key []byte
	if len(it.raw.key) > 0 {
		key = it.raw.key
	}
	tried := int32(1)
	if it.reason == reasonWaiting {
		tried = 0
	}
	r.topics, r.partitions, r.offsets = append(r.topics, p.topic), append(r.partitions, p.partition), append(r.offsets, it.rec.Offset)
	r.keys, r.values, r.headers = append(r.keys, key), append(r.values, it.raw.value), append(r.headers, headers)
	r.times = append(r.times, it.raw.timestamp.UnixMicro())
	r.ids, r.types = append(r.ids, it.rec.ID), append(r.types, it.rec.Type)
	r.reasons, r.errors = append(r.reasons, it.reason), append(r.errors, printable(it.problem))
	r.attempts = append(r.attempts, tried)
	return nil
}

// queue has the rows inserted with the commit, before the appends.
func (r *parkedRows) queue(tx *eventstore.Tx, operator string) {
	if len(r.topics) == 0 {
		return
	}
	tx.Later(parkSQL, operator, r.topics, r.partitions, r.offsets, r.keys, r.values, r.headers, r.times, r.ids,
		r.types, r.reasons, r.errors, r.attempts)
}

// queueParked writes the parked records of a batch with the commit.
func (b batch) queueParked(tx *eventstore.Tx, operator string) error {
	rows := parkedRows{}
	for _, p := range b {
		for _, s := range p.steps {
			if s.fate != parking {
				continue
			}
			if err := rows.add(p.claim.place, s.item); err != nil {
				return err
			}
		}
	}
	rows.queue(tx, operator)
	return nil
}

// logParked says that a record is parked. Of those that only wait behind another one, that one says it.
func (o *Operator) logParked(ctx context.Context, it *item) {
	level := slog.LevelError
	if it.reason == reasonWaiting {
		level = slog.LevelDebug
	}
	o.log.Log(it.about(ctx), level, "an event is parked", "topic", it.rec.Topic, "partition", it.rec.Partition, "offset", it.rec.Offset,
		"event", it.rec.ID, "type", it.rec.Type, "reason", it.reason, "error", it.problem)
}

// Headers need not be text, so names and values are kept in base64.
func encodeHeaders(headers []*sarama.RecordHeader) (string, error) {
	pairs := make([][2][]byte, len(headers))
	for i, h := range headers {
		pairs[i] = [2][]byte{h.Key, h.Value}
	}
	b, err := json.Marshal(pairs)
	if err != nil {
		return "", fmt.Errorf("encode headers: %w", err)
	}
	return string(b), nil
}

func decodeHeaders(text []byte) ([]*sarama.RecordHeader, error) {
	var pairs [][2][]byte
	if err := json.Unmarshal(text, &pairs); err != nil {
		return nil, fmt.Errorf("decode headers: %w", err)
	}
	headers := make([]*sarama.RecordHeader, len(pairs))
	for i, p := range pairs {
		headers[i] = &sarama.RecordHeader{Key: p[0], Value: p[1]}
	}
	return headers, nil
}

// printable makes an error fit for a text column and for a person.
func printable(s string) string {
	const most = 4000
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
