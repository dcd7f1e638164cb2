package operator

import (
	"context"
	_ "embed"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/eventstore"
)

var (
	//go:embed queries/requests.sql
	requestsSQL string
	//go:embed queries/parked_of.sql
	parkedOfSQL string
	//go:embed queries/resolve_parked.sql
	resolveParkedSQL string
	//go:embed queries/failed_again.sql
	failedAgainSQL string
	//go:embed queries/finish_request.sql
	finishRequestSQL string
)

// Actions of requests, and what the audit calls their results.
const (
	actionReplay  = "replay"
	actionDiscard = "discard"
	actionFill    = "fill"
	actionTry     = "try"
)

// request asks the owner of a partition to do something with its parked records. It is executed by the owner,
// between two batches, because only the owner knows which keys are blocked.
type request struct {
	ID        int64
	Topic     string
	Partition int32
	Action    string
	Offset    *int64
	Key       []byte
	By        string
}

// serveRequests executes the open requests of the partitions owned here. False means that some must wait.
func (l *loop) serveRequests(ctx context.Context) bool {
	for _, c := range l.takeable() {
		if !c.restored {
			continue
		}
		open, err := l.openRequests(ctx, c)
		if err != nil {
			l.op.log.Warn("requests could not be read", "error", err)
			l.control.requests.Store(true) // look again
			return false
		}
		for _, r := range open {
			s := &errand{loop: l, request: r, claim: c, failed: map[string]bool{}, after: math.MinInt64}
			do := map[string]func(context.Context) bool{actionFill: s.fill, actionTry: s.try}[r.Action]
			if do == nil {
				do = s.serve
			}
			if !do(ctx) {
				l.control.requests.Store(true) // look again
				return false
			}
		}
	}
	return true
}

func (l *loop) openRequests(ctx context.Context, c *claim) ([]request, error) {
	ctx, cancel := l.attemptContext(ctx)
	defer cancel()
	rows, err := l.op.pool.Query(ctx, requestsSQL, l.op.def.Name, c.topic, c.partition)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[request])
}

// errand is the execution of one request.
type errand struct {
	*loop
	request request
	claim   *claim
	failed  map[string]bool // keys of which a record failed again: later ones go on waiting
	after   int64           // last offset looked at
}

// serve works through the parked records in order, in batches. False means: not now, look again later.
func (s *errand) serve(ctx context.Context) bool {
	for {
		items, err := s.next(ctx)
		if err != nil {
			s.op.log.Warn("parked records could not be read", "error", err)
			return false
		}
		if len(items) == 0 {
			return s.finish(ctx)
		}
		s.after = items[len(items)-1].rec.Offset
		if s.request.Action == actionDiscard {
			if s.commit(ctx, change{gone: items}) != nil {
				return false
			}
			continue
		}
		if !s.replay(ctx, items) {
			return false
		}
	}
}

// record reads a row of key, value, headers and time, with dest before them, as if it came from the topic.
func (s *errand) record(row pgx.CollectableRow, offset *int64, dest ...any) (*item, error) {
	var r raw
	var headers []byte
	if err := row.Scan(append([]any{offset, &r.key, &r.value, &headers, &r.timestamp}, dest...)...); err != nil {
		return nil, err
	}
	var err error
	if r.headers, err = decodeHeaders(headers); err != nil {
		return nil, err
	}
	it := s.op.def.inspector(s.claim.topic, s.op.store.Registry(), s.op.stateful != nil).inspect(r, s.claim.partition, *offset)
	return &it, nil
}

// next reads some parked records and judges them anew, as if they came from the topic.
func (s *errand) next(ctx context.Context) ([]*item, error) {
	ctx, cancel := s.attemptContext(ctx)
	defer cancel()
	rows, err := s.op.pool.Query(ctx, parkedOfSQL, s.op.def.Name, s.claim.topic, s.claim.partition,
		s.after, s.request.Offset, s.request.Key, s.op.maxBatch(), s.request.ID)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (*item, error) {
		var offset int64
		var front *int64 // the first parked record of its key
		it, err := s.record(row, &offset, &front)
		if err == nil && front != nil && s.request.Offset != nil && it.order != "" {
			it.park(reasonWaiting, s.placeOf(*front)+" of its key is parked before it; replay the key instead")
		}
		return it, err
	})
}

// placeOf names a record of the partition as the commands take it.
func (s *errand) placeOf(offset int64) string {
	return fmt.Sprintf("%s/%d/%d", s.claim.topic, s.claim.partition, offset)
}

func (s *errand) finish(ctx context.Context) bool {
	ctx, cancel := s.attemptContext(ctx)
	defer cancel()
	_, err := s.op.pool.Exec(ctx, finishRequestSQL, s.request.ID)
	return err == nil
}

// write queues a change of parked records, with an audit row for each.
func (s *errand) write(tx *eventstore.Tx, ch change) {
	if it := ch.kept; it != nil {
		tx.Later(failedAgainSQL, s.op.def.Name, s.claim.topic, s.claim.partition, it.rec.Offset, it.reason,
			printable(it.problem), s.request.ID, s.request.By)
		return
	}
	action := "replayed"
	if !ch.apply {
		action = "discarded"
	}
	tx.Later(resolveParkedSQL, s.op.def.Name, s.claim.topic, s.claim.partition, offsetsOf(ch.gone), s.request.ID, action, s.request.By)
}

func offsetsOf(items []*item) []int64 {
	offsets := make([]int64, len(items))
	for i, it := range items {
		offsets[i] = it.rec.Offset
	}
	return offsets
}
