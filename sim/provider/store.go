package provider

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// transactionLimit bounds one request's work in the database. A client that gives up does not end it: an effect
// that was begun is finished, and its answer is there for the repeat.
const transactionLimit = 10 * time.Second

type store struct {
	pool *pgxpool.Pool
	// beforeCommit and afterCommit are where tests kill the process.
	beforeCommit, afterCommit func()

	mu     sync.Mutex
	secret []byte // of the cards' fingerprints, once it was read
}

// reply is an answer as it is sent.
type reply struct {
	status   int
	body     []byte // JSON
	replayed bool   // it is the answer to an earlier request
	late     bool
}

// do runs a command once per key: effect and answer in one transaction, or the answer that is there already.
// Whoever comes with a key that is being worked on waits for the first. An error means that the outcome is
// unknown; the same request with the same key finds it out.
func (s *store) do(ctx context.Context, key string, c command) (reply, *Problem, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), transactionLimit)
	defer cancel()
	request, err := fingerprint(c)
	if err != nil {
		return reply{}, nil, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return reply{}, nil, err
	}
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return reply{}, nil, err
	}
	defer func() { _ = tx.Rollback(ctx) }()

	keys := []string{key}
	if k := c.authorizationKey(); k != "" {
		keys = append(keys, k)
	}
	own, st, err := lock(ctx, tx, keys, key, c)
	if err != nil {
		return reply{}, nil, err
	}
	if own.request != nil && !bytes.Equal(own.request, request) {
		return reply{}, keyReused(), nil
	}
	if own.answered() {
		return reply{status: *own.status, body: own.body, replayed: true}, nil, nil
	}
	eff, problem := c.decide(st, id.String())
	if problem != nil {
		return reply{}, problem, nil
	}
	out, err := write(ctx, tx, key, request, eff)
	if err != nil {
		return reply{}, nil, err
	}
	s.beforeCommit()
	if err := tx.Commit(ctx); err != nil {
		return reply{}, nil, err
	}
	s.afterCommit()
	return out, nil, nil
}

// claim is the row of a key.
type claim struct {
	request  []byte
	failures int
	status   *int
	body     []byte
}

func (c claim) answered() bool { return c.status != nil }

// lock claims the keys and locks the authorisation, in one round trip. Every request locks in this order, and
// the statements sort the keys, so none waits for another in a circle.
func lock(ctx context.Context, tx pgx.Tx, keys []string, own string, c command) (mine claim, st state, err error) {
	batch := &pgx.Batch{}
	batch.Queue(claimKeysSQL, keys)
	batch.Queue(lockKeysSQL, keys).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var key string
			var row claim
			if err := rows.Scan(&key, &row.request, &row.failures, &row.status, &row.body); err != nil {
				return err
			}
			if key == own {
				mine = row
			}
		}
		return rows.Err()
	})
	if c.authorizationID() != "" || c.authorizationKey() != "" {
		batch.Queue(lockAuthorizationSQL, c.authorizationID(), c.authorizationKey()).Query(func(rows pgx.Rows) error {
			a, err := pgx.CollectExactlyOneRow(rows, scanAuthorization)
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			st.authorization = &a
			return err
		})
	}
	err = tx.SendBatch(ctx, batch).Close()
	st.failures = mine.failures
	return mine, st, err
}

// write queues everything an effect changes and sends it in one round trip.
func write(ctx context.Context, tx pgx.Tx, key string, request []byte, eff effect) (reply, error) {
	body, err := json.Marshal(eff.body)
	if err != nil {
		return reply{}, err
	}
	batch := &pgx.Batch{}
	if a := eff.authorization; a != nil {
		batch.Queue(saveAuthorizationSQL, a.ID, a.Key, a.Reference, a.Status, a.DeclineCode, a.Card.Fingerprint, a.Card.Brand,
			a.Card.LastFour, a.Behaviour, a.Amount, a.Currency, a.Captured, a.Refunded, a.Disputed)
	}
	if e := eff.entry; e != nil {
		batch.Queue(addEntrySQL, e.ID, e.Authorization, e.Kind, e.Amount, key)
	}
	if eff.voidKey != "" {
		p := voidedKey().titled()
		answer, err := json.Marshal(p)
		if err != nil {
			return reply{}, err
		}
		batch.Queue(voidKeySQL, eff.voidKey, p.Status, answer)
	}
	if eff.failed {
		batch.Queue(countFailureSQL, key, request)
	} else {
		batch.Queue(rememberAnswerSQL, key, request, eff.status, body)
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return reply{}, err
	}
	return reply{status: eff.status, body: body, late: eff.late}, nil
}

// answer looks up what was answered under a key.
func (s *store) answer(ctx context.Context, key string) (reply, bool, error) {
	var out reply
	err := s.pool.QueryRow(ctx, answerSQL, key).Scan(&out.status, &out.body)
	if errors.Is(err, pgx.ErrNoRows) {
		return out, false, nil
	}
	return out, err == nil, err
}

// fingerprintKey reads the key of the fingerprints, once.
func (s *store) fingerprintKey(ctx context.Context) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.secret != nil {
		return s.secret, nil
	}
	err := s.pool.QueryRow(ctx, "select secret from fingerprint_key").Scan(&s.secret)
	if err != nil {
		return nil, fmt.Errorf("provider: the key of the card fingerprints cannot be read (was the database migrated?): %w", err)
	}
	return s.secret, nil
}

// Ledger calls each with every authorisation there is, oldest first, to compare with what clients believe.
func Ledger(ctx context.Context, pool *pgxpool.Pool, each func(Authorization) error) error {
	rows, err := pool.Query(ctx, ledgerSQL)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		a, err := scanAuthorization(rows)
		if err != nil {
			return err
		}
		if err := each(a); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Entries calls each with every effect there ever was, oldest first, to compare with what the ledger stands at.
func Entries(ctx context.Context, pool *pgxpool.Pool, each func(Entry) error) error {
	rows, err := pool.Query(ctx, entriesSQL)
	if err != nil {
		return err
	}
	var e Entry
	_, err = pgx.ForEachRow(rows, []any{&e.ID, &e.Authorization, &e.Kind, &e.Amount}, func() error { return each(e) })
	return err
}

func scanAuthorization(row pgx.CollectableRow) (a Authorization, err error) {
	err = row.Scan(&a.ID, &a.Key, &a.Reference, &a.Status, &a.DeclineCode, &a.Card.Fingerprint, &a.Card.Brand, &a.Card.LastFour,
		&a.Behaviour, &a.Amount, &a.Currency, &a.Captured, &a.Refunded, &a.Disputed)
	return a, err
}

// fingerprint tells a repeat from another request with the same key. It is made of what was asked for, so
// white space and the order of fields do not matter.
func fingerprint(c command) ([]byte, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(append([]byte(c.operation()+" "), text...))
	return sum[:], nil
}
