package archive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/pg"
)

// Quiet is how long no stream of a part may have been written to, unless told otherwise: longer than any order,
// payment, delivery or return takes.
const Quiet = 90 * 24 * time.Hour

// lockPatience is more than the server takes to notice that a client is gone.
const lockPatience = 5 * time.Second

// Options say what is archived, and where to.
type Options struct {
	Service string // owner of the store
	DSN     string // of its database, as the role that owns it
	Who     string // for the audit
	// Published is the position up to which the relay has published; math.MaxInt64 for a store without a relay.
	Published int64
	Dir       string        // where the files go; it must exist
	Before    int64         // only parts wholly before this position; 0: any
	OlderThan time.Duration // only parts whose last event is older; 0: any
	Quiet     time.Duration // no stream of a part was written to for so long; 0: [Quiet]
	Cut       bool          // also parts of streams that are still written to
	DryRun    bool          // only say what would be done
	// Progress is told what is being done; nil: nobody.
	Progress func(what string)
}

func (o Options) quiet() time.Duration {
	if o.Quiet > 0 {
		return o.Quiet
	}
	return Quiet
}

// Run archives the oldest parts that the options name, one after the other, and returns those that it archived (with
// DryRun: would archive). The first part that may not be archived ends it, with its error: [*NotPublishedError] or
// [*OpenStreamsError]. Parts before it are archived then. Other errors: [*BusyError], [*FileError], or those of the
// server and the disk, after which it can be run again.
func Run(ctx context.Context, store *eventstore.Store, o Options) ([]eventstore.Part, error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	s, err := connect(ctx, o.Service, o.DSN)
	if err != nil {
		return nil, err
	}
	defer s.close(ctx)
	if !o.DryRun {
		if err := s.resume(ctx, o.Progress); err != nil {
			return nil, err
		}
	}
	parts, err := store.Parts(ctx)
	if err != nil {
		return nil, err
	}
	var done []eventstore.Part
	for i, p := range parts {
		if p.Archived() {
			continue
		}
		if !o.wants(p, parts[i+1:]) {
			break
		}
		if err := s.allow(ctx, p, o); err != nil {
			return done, err
		}
		if !o.DryRun {
			if p, err = s.archive(ctx, p, o); err != nil {
				return done, err
			}
		}
		done = append(done, p)
	}
	return done, nil
}

// wants says whether a part is among those to be archived. Only one that later events lie behind is wholly in the past:
// events are committed in the order of positions.
func (o Options) wants(p eventstore.Part, later []eventstore.Part) bool {
	past := false
	for _, l := range later {
		past = past || l.Events > 0
	}
	old := o.OlderThan == 0 || p.Last == nil || time.Since(*p.Last) > o.OlderThan
	return past && old && (o.Before == 0 || p.High <= o.Before)
}

// session is the one connection of an archiver, which holds a lock: there is one at a time.
type session struct {
	*pgx.Conn
	service string
}

func connect(ctx context.Context, service, dsn string) (*session, error) {
	conn, err := pg.Connect(ctx, dsn, "feira-archive", map[string]string{
		"statement_timeout": "0", "transaction_timeout": "0", "idle_in_transaction_session_timeout": "60s",
		"lock_timeout":   "60s", // detaching waits for the transactions that may still read the part
		"enable_seqscan": "on", "work_mem": "64MB",
	})
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	s := &session{Conn: conn, service: service}
	if err := s.alone(ctx); err != nil {
		s.close(ctx)
		return nil, err
	}
	return s, nil
}

// alone takes the lock. The session of an archiver that was killed may have it for some more seconds.
func (s *session) alone(ctx context.Context) error {
	for began := time.Now(); ; {
		var locked bool
		if err := s.QueryRow(ctx, "select pg_try_advisory_lock(es_lock_key() + 2)").Scan(&locked); err != nil {
			return fmt.Errorf("archive: %w", err)
		}
		if locked {
			return nil
		}
		if time.Since(began) > lockPatience {
			return &BusyError{Service: s.service}
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *session) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_, _ = s.Exec(ctx, "select pg_advisory_unlock_all()") // closing does it too, a little later
	_ = s.Close(ctx)
}

// table is the name of a part's table.
func table(low int64) string { return pgx.Identifier{fmt.Sprintf("events_%d", low)}.Sanitize() }

// allow says why a part may not be archived, or nil.
func (s *session) allow(ctx context.Context, p eventstore.Part, o Options) error {
	if p.LastPosition > o.Published {
		return &NotPublishedError{Service: s.service, Low: p.Low, High: p.High, Last: p.LastPosition, Published: o.Published}
	}
	if o.Cut {
		return nil
	}
	var open int64
	var example string
	err := s.QueryRow(ctx, `select count(*), coalesce(min(s.stream), '')
		from (select distinct stream from `+table(p.Low)+`) p
		join streams s on s.stream = p.stream
		join events e on e.stream = s.stream and e.version = s.version
		where e.recorded_at > clock_timestamp() - make_interval(secs => $1)`, o.quiet().Seconds()).Scan(&open, &example)
	if err != nil {
		return fmt.Errorf("archive: look for streams that are still written to: %w", err)
	}
	if open > 0 {
		return &OpenStreamsError{Service: s.service, Low: p.Low, High: p.High, Streams: open, Example: example, Quiet: o.quiet()}
	}
	return nil
}

// archive does one part. The file is complete and verified before anything is changed.
func (s *session) archive(ctx context.Context, p eventstore.Part, o Options) (eventstore.Part, error) {
	h := Header{Format: format, Service: s.service, Low: p.Low, High: p.High}
	path, err := filepath.Abs(filepath.Join(o.Dir, h.name()))
	if err != nil {
		return p, fmt.Errorf("archive: %w", err)
	}
	if _, err := os.Stat(path); err == nil { // left by a crash, or another store's
		if err := s.verify(ctx, path, o.Progress); err != nil {
			return p, fmt.Errorf("%w; move it away", err)
		}
	} else if err := s.write(ctx, filepath.Dir(path), h, o.Progress); err != nil {
		return p, err
	}
	sum, size, err := digestOf(path)
	if err != nil {
		return p, err
	}
	p.File, p.SHA256, p.Bytes, p.Who, p.Attached = path, sum, size, o.Who, false
	if err := s.note(ctx, p); err != nil {
		return p, err
	}
	o.Progress(fmt.Sprintf("detaching positions %d to %d", p.Low, p.High-1))
	return p, s.remove(ctx, p.Low)
}

// write writes the file, reads it back, and gives it its name.
func (s *session) write(ctx context.Context, dir string, h Header, progress func(string)) error {
	w, err := create(dir, h)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(w.unfinished()) }()
	err = s.each(ctx, h.Low, func(e Event) error {
		if w.end.Events%100_000 == 0 {
			progress(fmt.Sprintf("writing %s: position %d", h.name(), e.Position))
		}
		return w.write(e)
	})
	if err != nil {
		_ = w.file.Close() // it is removed
		return fmt.Errorf("archive: write %s: %w", w.path, err)
	}
	if err := w.finish(); err != nil {
		return fmt.Errorf("archive: write %s: %w", w.path, err)
	}
	if err := s.verify(ctx, w.unfinished(), progress); err != nil {
		return err
	}
	return w.publish()
}

// each reads a part in the order of positions.
func (s *session) each(ctx context.Context, low int64, fn func(Event) error) error {
	rows, err := s.Query(ctx, "select position, stream, version, type, key, data::text, meta::text, recorded_at from "+table(low)+" order by position")
	if err != nil {
		return err
	}
	var e Event
	_, err = pgx.ForEachRow(rows, []any{&e.Position, &e.Stream, &e.Version, &e.Type, &e.Key, &e.Data, &e.Meta, &e.RecordedAt}, func() error {
		e.RecordedAt = e.RecordedAt.UTC()
		return fn(e)
	})
	return err
}

// verify reads a file back beside the table: both have the same events.
func (s *session) verify(ctx context.Context, path string, progress func(string)) error {
	r, err := open(path)
	if err != nil {
		return err
	}
	defer func() { _ = r.close() }()
	progress("reading back " + filepath.Base(path))
	if r.Service != s.service {
		return r.wrong("it is an archive of " + r.Service)
	}
	err = s.each(ctx, r.Low, func(stored Event) error {
		e, more, err := r.next()
		if err == nil && (!more || !e.equal(stored)) {
			err = r.wrong(fmt.Sprintf("it differs from the table at position %d", stored.Position))
		}
		return err
	})
	if err != nil {
		return err
	}
	if _, more, err := r.next(); err != nil || more {
		return errors.Join(err, r.wrong("it has more than the table"))
	}
	return nil
}
