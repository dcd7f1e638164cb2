package archive

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/eventstore"
)

// Restore brings the part in a file back into the store that it was archived from, beside readers and writers, in one
// transaction. Errors: [*FileError] when it is damaged or not the file that the store knows, [*OrderError],
// [*UnfinishedError], [*BusyError].
func Restore(ctx context.Context, dsn, path, who string) (eventstore.Part, error) {
	h, err := Read(path)
	if err != nil {
		return eventstore.Part{}, err
	}
	s, err := connect(ctx, h.Service, dsn)
	if err != nil {
		return eventstore.Part{}, err
	}
	defer s.close(ctx)
	p, err := s.known(ctx, path, h)
	if err != nil {
		return p, err
	}
	err = pgx.BeginFunc(ctx, s.Conn, func(tx pgx.Tx) error { return s.restore(ctx, tx, path, p, who) })
	if err != nil {
		var wrong *FileError
		if errors.As(err, &wrong) {
			return p, err
		}
		return p, fmt.Errorf("archive: bring back %s: %w", path, err)
	}
	p.Attached, p.File, p.SHA256, p.Who = true, "", "", ""
	return p, nil
}

// known is the part that a file belongs to, as the store noted it.
func (s *session) known(ctx context.Context, path string, h Header) (eventstore.Part, error) {
	p := eventstore.Part{Low: h.Low, High: h.High}
	sum, size, err := digestOf(path)
	if err != nil {
		return p, err
	}
	var latest string
	var last, there bool
	err = s.QueryRow(ctx, `select a.last, a.events, a.first_at, a.last_at, a.sha256, l.file, l.low = a.low, to_regclass('events_' || a.low) is not null
		from archived_parts a, (select file, low from archived_parts order by low desc limit 1) l
		where a.low = $1 and a.high = $2`, h.Low, h.High).Scan(&p.LastPosition, &p.Events, &p.First, &p.Last, &p.SHA256, &latest, &last, &there)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return p, &FileError{File: path, Reason: fmt.Sprintf("positions %d to %d of %s are not archived", h.Low, h.High-1, h.Service)}
	case err != nil:
		return p, fmt.Errorf("archive: look up %s: %w", path, err)
	case sum != p.SHA256:
		return p, &FileError{File: path, Reason: "its SHA-256 is " + sum + ", the store noted " + p.SHA256}
	case !last:
		return p, &OrderError{File: path, Latest: latest}
	case there:
		return p, &UnfinishedError{Service: h.Service, Low: h.Low, High: h.High}
	}
	p.Bytes = size
	return p, nil
}

func (s *session) restore(ctx context.Context, tx pgx.Tx, path string, p eventstore.Part, who string) error {
	r, err := open(path)
	if err != nil {
		return err
	}
	defer func() { _ = r.close() }()
	if _, err := tx.Exec(ctx, "select es_new_part($1, $2)", p.Low, p.High); err != nil {
		return err
	}
	_, err = tx.CopyFrom(ctx, pgx.Identifier{fmt.Sprintf("events_%d", p.Low)},
		[]string{"position", "stream", "version", "type", "key", "data", "meta", "recorded_at"}, pgx.CopyFromFunc(func() ([]any, error) {
			e, more, err := r.next()
			if err != nil || !more {
				return nil, err
			}
			return []any{e.Position, e.Stream, e.Version, e.Type, e.Key, e.Data, e.Meta, e.RecordedAt}, nil
		}))
	if err != nil {
		return err
	}
	if sum, err := r.digest(); err != nil || sum != p.SHA256 {
		return errors.Join(err, r.wrong("it changed while it was read"))
	}
	detail := fmt.Sprintf("%d events, positions %d to %d, from %s", p.Events, p.Low, p.High-1, path)
	batch := &pgx.Batch{}
	// A stream that is written to waits for its row only: nobody locks these but archivers.
	batch.Queue("delete from archived_parts where low = $1", p.Low)
	batch.Queue("delete from archived_streams a using " + table(p.Low) + " e where e.stream = a.stream and e.version = 1")
	batch.Queue(`update archived_streams a set version = e.first - 1, recorded_at = null
		from (select stream, min(version) as first from ` + table(p.Low) + ` group by stream) e where e.stream = a.stream`)
	batch.Queue("insert into operator_audit (operator, action, who, detail) values ($1, 'unarchive', $2, $3)", auditName(s.service), who, detail)
	batch.Queue("select es_attach_part($1, $2)", p.Low, p.High) // last: its lock is held the shortest
	return tx.SendBatch(ctx, batch).Close()
}
