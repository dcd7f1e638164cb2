package pg

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/jackc/pgx/v5"
)

// databaseName is what [Server.CreateDatabase] takes. It leaves nothing to quote.
var databaseName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

// createLock is the advisory lock under which databases are made: two processes may make the same one.
const createLock = 0x66656972615f6462 // "feira_db"

// CreateDatabase makes a role and a database of that name, owned by the role and closed to all other roles. What
// exists is kept, so it can be called at every start.
func (s *Server) CreateDatabase(ctx context.Context, name string) error {
	if !databaseName.MatchString(name) || name == adminRole || name == "template0" || name == "template1" {
		return fmt.Errorf("create database: %q is not a usable name: expected lower-case letters, digits and _,"+
			" at most 63, starting with a letter, and none of Postgres' own", name)
	}
	conn, err := Connect(ctx, s.AdminDSN(), "create database", map[string]string{
		"statement_timeout": "60s", "lock_timeout": "30s", transactionTimeoutName: "0",
	})
	if err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if err := s.createDatabase(ctx, conn, name); err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	return nil
}

func (s *Server) createDatabase(ctx context.Context, conn *pgx.Conn, name string) error {
	if _, err := conn.Exec(ctx, "select pg_advisory_lock($1)", int64(createLock)); err != nil {
		return err
	}
	verb := "alter"
	if exists, err := found(ctx, conn, "select from pg_roles where rolname = $1", name); err != nil {
		return err
	} else if !exists {
		verb = "create"
	}
	role := fmt.Sprintf("%s role %s login password '%s'", verb, name, password(s.secret, name))
	if _, err := conn.Exec(ctx, role); err != nil {
		return err
	}
	if exists, err := found(ctx, conn, "select from pg_database where datname = $1", name); err != nil {
		return err
	} else if !exists {
		if _, err := conn.Exec(ctx, fmt.Sprintf("create database %s owner %s", name, name)); err != nil {
			return err
		}
	}
	_, err := conn.Exec(ctx, fmt.Sprintf("revoke all on database %s, postgres, template1 from public", name))
	return err
}

func found(ctx context.Context, conn *pgx.Conn, query, name string) (bool, error) {
	err := conn.QueryRow(ctx, query, name).Scan()
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}
