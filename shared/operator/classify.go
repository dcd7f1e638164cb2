package operator

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/feira-shop/feira/shared/eventstore"
)

// class says what to do about an error of a transaction that was rolled back.
type class int

const (
	transient     class = iota // try again, for as long as it takes
	deterministic              // halve, and park the one event
	tooLong                    // halve, and try again
)

// SQLSTATE codes by which the server ends a transaction that takes too long.
const (
	codeIdleInTransaction  = "25P03"
	codeTransactionTimeout = "25P04"
	codeStatementTimeout   = "57014"
)

// classify is deliberately narrow: taking a deterministic error for transient holds a partition up where
// everybody sees it; the reverse would park good events.
func classify(err error) class {
	var pe *pgconn.PgError
	if errors.As(err, &pe) {
		switch pe.Code {
		case codeIdleInTransaction, codeTransactionTimeout, codeStatementTimeout:
			return tooLong
		}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return transient
	}
	var rejected *RejectedError
	var large *eventstore.TooLargeError
	var invalid *eventstore.InvalidError
	var archived *eventstore.ArchivedError // until a person brings it back: only what needs it waits
	if errors.As(err, &rejected) || errors.As(err, &large) || errors.As(err, &invalid) || errors.As(err, &archived) || eventstore.Deterministic(err) {
		return deterministic
	}
	return transient
}
