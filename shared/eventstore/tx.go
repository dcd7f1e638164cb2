package eventstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// rollbackTimeout bounds giving a transaction up. The server ends it anyway when the connection goes.
const rollbackTimeout = 2 * time.Second

// ErrTxDone says that a transaction was used after Commit or Rollback.
var ErrTxDone = errors.New("eventstore: the transaction has ended; begin another")

// ErrLockOrder says that streams were to be locked after other rows, which deadlocks with those who do it right.
var ErrLockOrder = errors.New("eventstore: Load locks streams, so it comes first and once in a transaction")

// Tx is a transaction of an operator or of [Store.Within]. The order of locks is that of the methods:
// Load streams, then the service's own rows (Query, Exec, Later), then Append and Commit.
// It is not safe for concurrent use.
type Tx struct {
	store   *Store
	conn    *pgxpool.Conn // a bare connection: a pgx.Tx does not see a commit inside a batch
	undo    func()        // sends a rollback, on a context that outlives the caller's
	begun   bool
	locked  bool // Load or Exec was called
	done    bool
	loaded  map[string]bool
	later   []statement
	appends []Append
}

type statement struct {
	sql  string
	args []any
}

// Begin opens a transaction in which streams are locked, changed and appended to. Nothing is sent before
// its first statement. The caller must end it with Commit or Rollback.
func (s *Store) Begin(ctx context.Context) (*Tx, error) { return s.BeginIn(ctx, s.pool) }

// BeginIn is Begin with a connection of another pool to the same database.
func (s *Store) BeginIn(ctx context.Context, pool *pgxpool.Pool) (*Tx, error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("eventstore: begin: %w", err)
	}
	lasting := context.WithoutCancel(ctx)
	return &Tx{store: s, conn: conn, undo: func() {
		ctx, cancel := context.WithTimeout(lasting, rollbackTimeout)
		defer cancel()
		// On an error the connection is not idle, and the pool throws it away.
		_, _ = conn.Exec(ctx, "rollback")
	}}, nil
}

// Load locks streams in sorted order (missing ones are inserted at version 0) and returns them by name.
// Call it once, before anything else.
func (t *Tx) Load(ctx context.Context, streams []string) (map[string]Stream, error) {
	if t.locked {
		return nil, ErrLockOrder
	}
	t.locked = true
	loaded := make(map[string]Stream, len(streams))
	t.loaded = make(map[string]bool, len(streams))
	if len(streams) == 0 {
		return loaded, nil
	}
	rows, err := t.Query(ctx, "select stream, version, shape, state from es_load($1)", streams)
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(rows, scanStream)
	if err != nil {
		return nil, fmt.Errorf("eventstore: load streams: %w", err)
	}
	for _, s := range all {
		loaded[s.Name] = s
		t.loaded[s.Name] = true
	}
	return loaded, nil
}

// Query runs a query in the transaction. The rows must be closed before the next statement.
func (t *Tx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if t.done {
		return nil, ErrTxDone
	}
	if t.begun {
		return t.conn.Query(ctx, sql, args...)
	}
	t.begun = true
	batch := &pgx.Batch{}
	batch.Queue("begin")
	batch.Queue(sql, args...)
	results := t.conn.SendBatch(ctx, batch)
	if _, err := results.Exec(); err != nil {
		return nil, errors.Join(err, results.Close())
	}
	rows, err := results.Query()
	if err != nil {
		rows.Close()
		return nil, errors.Join(err, results.Close())
	}
	return &batchRows{Rows: rows, results: results}, nil
}

// Exec runs a statement in the transaction.
func (t *Tx) Exec(ctx context.Context, sql string, args ...any) error {
	t.locked = true
	rows, err := t.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	rows.Close()
	return rows.Err()
}

// Later queues a statement that is sent together with the commit, before the appends.
func (t *Tx) Later(sql string, args ...any) { t.later = append(t.later, statement{sql, args}) }

// Restate queues a state that was folded anew from a stream's events, of the same version: after its shape changed,
// or when the kept one is wrong. Load the stream first.
func (t *Tx) Restate(s Stream) {
	t.Later("update streams set shape = $3, state = $4::text::json where stream = $1 and version = $2",
		s.Name, s.Version, s.Shape, string(s.State))
}

// Append queues requests for the commit. At most one per stream, and once streams were loaded, only to those.
func (t *Tx) Append(all ...Append) { t.appends = append(t.appends, all...) }

// Commit writes everything queued and commits, in one write to the server. call is the SQL function that does
// it: "es_commit", or one that takes further leading parameters args, as the operator's "op_commit" does; its
// last parameter is of type es_appends.
//
// Errors: [*ConflictError] and [ErrAttemptLost] when a request was refused, [ErrUnknown] when the connection was
// lost and the commit may have happened, else the server's own. After any error the transaction is over.
func (t *Tx) Commit(ctx context.Context, call string, args ...any) error {
	if t.done {
		return ErrTxDone
	}
	defer t.Rollback()
	a, err := t.encode()
	if err != nil {
		return err
	}
	if !t.begun && len(t.later) == 0 && len(t.appends) == 0 && len(args) == 0 {
		return nil
	}
	if err := t.send(ctx, call, args, a); err != nil {
		t.store.wantPart(err)
		if mayBeCommitted(err) {
			return fmt.Errorf("%w: %w", ErrUnknown, err)
		}
		return typed(err)
	}
	t.written()
	return nil
}

// written tells everybody that the transaction's appends are committed.
func (t *Tx) written() {
	if len(t.appends) == 0 {
		return
	}
	for i := range t.appends {
		t.store.metrics.appended(t.appends[i].Events)
		t.store.wrote(len(t.appends[i].Events))
	}
	t.store.committed(queuesOf(t.appends))
}

// encode checks the requests and turns them into arrays.
func (t *Tx) encode() (*arrays, error) {
	a := &arrays{}
	seen := make(map[string]bool, len(t.appends))
	for i := range t.appends {
		r := &t.appends[i]
		if err := r.check(); err != nil {
			return nil, err
		}
		if seen[r.Stream] {
			return nil, &InvalidError{Stream: r.Stream, Reason: "one request per stream and transaction; chain the commands in memory"}
		}
		seen[r.Stream] = true
		if len(t.loaded) > 0 && !t.loaded[r.Stream] {
			// It would be inserted or locked after those and after the service's own rows.
			return nil, &InvalidError{Stream: r.Stream, Reason: "other streams were loaded and this one was not, so it would be locked out of order; load all streams of a transaction at once"}
		}
		a.add(r)
	}
	return a, nil
}

// send writes one batch and reads every answer.
func (t *Tx) send(ctx context.Context, call string, args []any, a *arrays) error {
	batch := &pgx.Batch{}
	if !t.begun {
		batch.Queue("begin")
	}
	for _, s := range t.later {
		batch.Queue(s.sql, s.args...)
	}
	if len(t.appends) > 0 || len(args) > 0 || call != callCommit {
		batch.Queue(callSQL(call, len(args), ""), append(append([]any{}, args...), a.args()...)...)
	}
	batch.Queue("commit")
	t.begun = true
	results := t.conn.SendBatch(ctx, batch)
	var tag pgconn.CommandTag
	for range batch.Len() {
		var err error
		if tag, err = results.Exec(); err != nil {
			_ = results.Close() // says the same again
			return err
		}
	}
	if err := results.Close(); err != nil {
		return err
	}
	if tag.String() != "COMMIT" { // a failed transaction answers "commit" with ROLLBACK
		return fmt.Errorf("eventstore: commit was answered with %q: an earlier statement of the transaction had failed", tag)
	}
	return nil
}

// Rollback gives the transaction up; after Commit it does nothing.
func (t *Tx) Rollback() {
	if t.done {
		return
	}
	t.done = true
	pc := t.conn.Conn().PgConn()
	if t.begun && !pc.IsClosed() && pc.TxStatus() != 'I' {
		t.undo()
	}
	t.conn.Release()
}

// batchRows are the rows of a transaction's first statement, which shares a batch with "begin".
type batchRows struct {
	pgx.Rows
	results pgx.BatchResults
	err     error
}

func (r *batchRows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	r.Close()
	return false
}

func (r *batchRows) Close() {
	r.Rows.Close()
	if err := r.results.Close(); r.err == nil {
		r.err = err
	}
}

func (r *batchRows) Err() error {
	if err := r.Rows.Err(); err != nil {
		return err
	}
	return r.err
}
