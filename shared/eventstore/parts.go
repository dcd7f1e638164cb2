package eventstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// PartSize is how many positions a part of the table of events has: about 0.4 GB with its indexes for small events, which
// is copied to a file in about a minute. So a store of 100,000,000 events has a hundred parts; a statement that asks all
// of them for a stream costs some ten microseconds per part.
const PartSize = 1_000_000

const (
	// partsEvery is how often it is looked at whether the parts reach at least one part's size ahead. It is also looked at
	// whenever this process has written a quarter of a part.
	partsEvery = 5 * time.Second
	// partsWithin bounds one look.
	partsWithin = 5 * time.Second
	// partsRetry is the least time between two looks, when appends wait for a part.
	partsRetry = 50 * time.Millisecond
)

// codeNoPart is what the server says when there is no part for a position: check_violation without a constraint.
const codeNoPart = "23514"

// noPart says whether an append failed for want of a part. It is no fault of the events: nothing was written, the part
// is made, and the same append goes through.
func noPart(err error) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && pe.Code == codeNoPart && pe.ConstraintName == "" && pe.TableName == "events"
}

// wantPart has the loop look at once, if err is for want of a part.
func (s *Store) wantPart(err error) {
	if noPart(err) {
		s.lookForParts()
	}
}

// wrote counts events that this process has written since it last looked.
func (s *Store) wrote(events int) {
	if s.written.Add(int64(events)) >= s.opts.partSize()/4 {
		s.written.Store(0)
		s.lookForParts()
	}
}

func (s *Store) lookForParts() {
	select {
	case s.wanted <- struct{}{}:
	default: // it will look anyway
	}
}

func (o Options) partSize() int64 {
	if o.PartSize > 0 {
		return o.PartSize
	}
	return PartSize
}

// keepParts makes parts ahead of need until ctx ends, in every process: the first one does it.
func (s *Store) keepParts(ctx context.Context) {
	tick := time.NewTicker(partsEvery)
	defer tick.Stop()
	for {
		if err := s.makeParts(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("parts of the event store could not be made, trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-s.wanted:
			select { // not in a circle while it cannot be made
			case <-ctx.Done():
				return
			case <-time.After(partsRetry):
			}
		}
	}
}

func (s *Store) makeParts(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, partsWithin)
	defer cancel()
	var made int
	if err := s.pool.QueryRow(ctx, "select es_make_parts($1)", s.opts.partSize()).Scan(&made); err != nil {
		return err
	}
	if made > 0 {
		s.log.Info("made parts of the event store", "parts", made)
	}
	return nil
}

// Part is a range of positions: a part of the table of events, or of what is archived.
type Part struct {
	Low, High         int64 // positions from Low up to, and without, High
	Events            int64
	First, Last       *time.Time // when its first and last event were recorded; nil: it has none
	LastPosition      int64      // of its last event; Low - 1: it has none
	Bytes             int64      // of the table with its indexes, or of the file
	Attached          bool       // it can be read
	File, SHA256, Who string     // of the archive, and who made it; "": it is not archived
}

// Archived says whether the part is in a file, and read no more.
func (p Part) Archived() bool { return p.File != "" }

// Parts lists the parts of a store in the order of positions, the archived ones first. It counts the events of each.
func (s *Store) Parts(ctx context.Context) ([]Part, error) {
	rows, err := s.pool.Query(ctx, `select a.low, a.high, a.last, a.events, a.first_at, a.last_at, a.bytes, a.file, a.sha256, a.archived_by,
			exists (select from es_parts() p where p.low = a.low and not p.detaching)
		from archived_parts a order by a.low`)
	if err != nil {
		return nil, fmt.Errorf("eventstore: list the archived parts: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p Part, err error) {
		err = row.Scan(&p.Low, &p.High, &p.LastPosition, &p.Events, &p.First, &p.Last, &p.Bytes, &p.File, &p.SHA256, &p.Who, &p.Attached)
		return p, err
	})
	if err != nil {
		return nil, fmt.Errorf("eventstore: list the archived parts: %w", err)
	}
	rows, err = s.pool.Query(ctx, `select part, low, high from es_parts() p
		where not detaching and not exists (select from archived_parts a where a.low = p.low)`)
	if err != nil {
		return nil, fmt.Errorf("eventstore: list the parts: %w", err)
	}
	attached, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct {
		Name      string
		Low, High int64
	}])
	if err != nil {
		return nil, fmt.Errorf("eventstore: list the parts: %w", err)
	}
	for _, a := range attached {
		p := Part{Low: a.Low, High: a.High, Attached: true}
		// Times by position: recorded_at has no index, and positions are drawn in its order.
		err := s.pool.QueryRow(ctx, fmt.Sprintf(`select count(*), coalesce(max(position), $1::bigint - 1),
				(select recorded_at from %[1]s order by position limit 1),
				(select recorded_at from %[1]s order by position desc limit 1), pg_total_relation_size('%[1]s') from %[1]s`,
			pgx.Identifier{a.Name}.Sanitize()), a.Low).Scan(&p.Events, &p.LastPosition, &p.First, &p.Last, &p.Bytes)
		if err != nil {
			return nil, fmt.Errorf("eventstore: look at the part from position %d: %w", a.Low, err)
		}
		all = append(all, p)
	}
	return all, nil
}
