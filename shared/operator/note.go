package operator

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Note writes to the audit what somebody did by hand, in the transaction in which it is done. name is an operator, or
// another part of a service, such as orders.relay.
func Note(ctx context.Context, tx pgx.Tx, name, action, who, detail string) error {
	_, err := tx.Exec(ctx, "insert into operator_audit (operator, action, who, detail) values ($1, $2, $3, $4)", name, action, who, detail)
	return err
}
