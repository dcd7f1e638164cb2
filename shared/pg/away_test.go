package pg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestAway(t *testing.T) {
	t.Parallel()
	_, refused := pgx.Connect(t.Context(), "postgres://nobody@127.0.0.1:1/none")
	for _, c := range []struct {
		err  error
		away bool
	}{
		{refused, true},
		{fmt.Errorf("read a row: %w", io.ErrUnexpectedEOF), true},
		{&pgconn.PgError{Code: "57P03"}, true}, // starting up
		{&pgconn.PgError{Code: "53300"}, true}, // too many connections
		{&pgconn.PgError{Code: "08006"}, true},
		{&pgconn.PgError{Code: "57014"}, false}, // a statement that took too long
		{&pgconn.PgError{Code: "23505"}, false},
		{errors.New("anything else"), false},
		{nil, false},
	} {
		if Away(c.err) != c.away {
			t.Errorf("%v: away is not %v", c.err, c.away)
		}
	}
}

// What a session gets whose server has ended it.
func TestAnEndedSessionIsAway(t *testing.T) {
	t.Parallel()
	_, dsn := database(t, "ended")
	conn, err := Connect(t.Context(), dsn, "ended", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	pool := openPool(t, dsn, PoolOptions{MaxConns: 1})
	if _, err := pool.Exec(t.Context(), "select pg_terminate_backend($1, 10000)", conn.PgConn().PID()); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "select 1"); !Away(err) {
		t.Errorf("%v is not recognised", err)
	}
}
