package archive

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/eventstore"
)

// auditName is under which name the audit of a service has what was done to its store.
func auditName(service string) string { return service + ".events" }

// note tells readers, in one transaction, that a part is archived; the part itself is still there.
func (s *session) note(ctx context.Context, p eventstore.Part) error {
	detail := fmt.Sprintf("%d events, positions %d to %d, to %s, sha256 %s", p.Events, p.Low, p.High-1, p.File, p.SHA256)
	err := pgx.BeginFunc(ctx, s.Conn, func(tx pgx.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(`insert into archived_parts (low, high, last, events, first_at, last_at, file, bytes, sha256, archived_by)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
			p.Low, p.High, p.LastPosition, p.Events, p.First, p.Last, p.File, p.Bytes, p.SHA256, p.Who)
		batch.Queue(`insert into archived_streams (stream, version, recorded_at)
			select distinct on (stream) stream, version, recorded_at from ` + table(p.Low) + ` order by stream, version desc
			on conflict (stream) do update set version = excluded.version, recorded_at = excluded.recorded_at`)
		batch.Queue("insert into operator_audit (operator, action, who, detail) values ($1, 'archive', $2, $3)", auditName(s.service), p.Who, detail)
		return tx.SendBatch(ctx, batch).Close()
	})
	if err != nil {
		return fmt.Errorf("archive: note that positions %d to %d are archived: %w", p.Low, p.High-1, err)
	}
	return nil
}

// remove takes a noted part away, however far that has come. Readers and writers of other parts go on: detaching
// concurrently waits for those who may still read it, and has no transaction.
func (s *session) remove(ctx context.Context, low int64) error {
	var there, attached, detaching bool
	err := s.QueryRow(ctx, `select to_regclass($1) is not null, coalesce(bool_or(p.part is not null), false), coalesce(bool_or(p.detaching), false)
		from (values ($2::bigint)) v(low) left join es_parts() p on p.low = v.low`, fmt.Sprintf("events_%d", low), low).Scan(&there, &attached, &detaching)
	if err != nil || !there {
		return err
	}
	var statements []string
	switch {
	case detaching:
		statements = append(statements, "alter table events detach partition "+table(low)+" finalize")
	case attached:
		statements = append(statements, "alter table events detach partition "+table(low)+" concurrently")
	}
	for _, sql := range append(statements, "drop table "+table(low)) {
		if _, err := s.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("archive: %s (run it again to finish): %w", sql, err)
		}
	}
	return nil
}

// resume finishes what was interrupted between the note and the end of the part.
func (s *session) resume(ctx context.Context, progress func(string)) error {
	rows, err := s.Query(ctx, `select low, high, file, sha256 from archived_parts
		where to_regclass('events_' || low) is not null order by low`)
	if err != nil {
		return fmt.Errorf("archive: look for what was interrupted: %w", err)
	}
	type unfinished struct {
		Low, High    int64
		File, SHA256 string
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[unfinished])
	if err != nil {
		return fmt.Errorf("archive: look for what was interrupted: %w", err)
	}
	for _, u := range all {
		sum, _, err := digestOf(u.File)
		if err != nil {
			return err
		}
		if sum != u.SHA256 {
			return &FileError{File: u.File, Reason: "its SHA-256 is " + sum + ", not " + u.SHA256}
		}
		progress(fmt.Sprintf("detaching positions %d to %d, as was begun", u.Low, u.High-1))
		if err := s.remove(ctx, u.Low); err != nil {
			return err
		}
	}
	return nil
}
