package pg

import (
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"
)

// Away says whether an error shows that the server cannot be reached, goes down, comes up, or takes no more sessions: the
// same call may go well in a moment. SQLSTATE classes 08 (connection), 53 (resources) and 57P (operator intervention).
func Away(err error) bool {
	var refused *pgconn.PgError
	if errors.As(err, &refused) && len(refused.Code) == 5 {
		return refused.Code[:2] == "08" || refused.Code[:2] == "53" || refused.Code[:3] == "57P"
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}
