package eventstore

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// SQLSTATE codes that the functions of the store raise. FE001 belongs to the operator: a fenced checkpoint.
const (
	CodeConflict    = "FE002" // a stream was not at the expected version; becomes [*ConflictError]
	CodeAttemptLost = "FE003" // a job's attempt was not the running one; becomes [ErrAttemptLost]
)

// SQLSTATE codes of Postgres that are told apart here.
const (
	codeLockNotAvailable = "55P03" // lock_timeout
	codeDeadlock         = "40P01"
	codeSerialization    = "40001"
)

// Deterministic says whether the server refused data as such (SQLSTATE class 22 or 23): the same statement would
// be refused again. Every other failure is worth a retry, and so is the want of a part.
func Deterministic(err error) bool {
	var pe *pgconn.PgError
	if !errors.As(err, &pe) || len(pe.Code) != 5 || noPart(err) {
		return false
	}
	class := pe.Code[:2]
	return class == "22" || class == "23"
}

func hasCode(err error, codes ...string) bool {
	var pe *pgconn.PgError
	if !errors.As(err, &pe) {
		return false
	}
	for _, c := range codes {
		if pe.Code == c {
			return true
		}
	}
	return false
}

// typed turns the errors that the store's functions raise into those of this package.
func typed(err error) error {
	var pe *pgconn.PgError
	if !errors.As(err, &pe) {
		return err
	}
	switch pe.Code {
	case CodeAttemptLost:
		return fmt.Errorf("%w: %s", ErrAttemptLost, pe.Message)
	case CodeConflict:
		var d struct {
			Stream           string
			Expected, Actual int64
		}
		if json.Unmarshal([]byte(pe.Detail), &d) != nil {
			return err
		}
		return &ConflictError{Stream: d.Stream, Expected: d.Expected, Actual: d.Actual}
	}
	return err
}

// mayBeCommitted says whether a transaction whose last write ended with err could have been committed. Only an
// answer of severity ERROR, or a statement that never left, proves that it was not: a server that shuts down may
// say FATAL after the commit.
func mayBeCommitted(err error) bool {
	if err == nil || pgconn.SafeToRetry(err) {
		return false
	}
	var pe *pgconn.PgError
	if errors.As(err, &pe) {
		return pe.SeverityUnlocalized != "ERROR"
	}
	return true
}
