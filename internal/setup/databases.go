package setup

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/xdg-go/scram"

	"github.com/feira-shop/feira/shared/pg"
)

// Databases makes a login and a database for each service. Nobody but its owner can connect to it.
type Databases struct {
	Server       string   // address of the server's database postgres, of somebody who may make roles and databases
	PasswordFile string   // of that somebody; "": the password is in Server
	Services     []string // names of the logins and databases
	DSN          func(service string) (string, error)
}

// oneAtATime is the advisory lock that the session of [Databases.Ensure] holds: the server refuses to change the rights
// of a database twice at once.
const oneAtATime = 0x66656972615f7375 // "feira_su"

// Ensure makes what is missing, gives logins the passwords that their addresses say, and returns what it did. A
// database that its service can open already is left as it is.
func (d Databases) Ensure(ctx context.Context) (done []string, err error) {
	server, err := d.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("the database server: %w", err)
	}
	defer func() { _ = server.Close(context.WithoutCancel(ctx)) }()
	if _, err := server.Exec(ctx, "select pg_advisory_lock($1)", int64(oneAtATime)); err != nil {
		return nil, fmt.Errorf("the database server: %w", err)
	}
	for _, name := range d.Services {
		dsn, err := d.DSN(name)
		if err != nil {
			return done, err
		}
		did, err := ensure(ctx, server, name, dsn)
		if err != nil {
			return done, fmt.Errorf("the database of %s: %w", name, err)
		}
		if did != "" {
			done = append(done, did)
		}
	}
	return done, nil
}

func (d Databases) connect(ctx context.Context) (*pgx.Conn, error) {
	dsn := d.Server
	if d.PasswordFile != "" {
		raw, err := os.ReadFile(d.PasswordFile)
		if err != nil {
			return nil, fmt.Errorf("read the password: %w", err)
		}
		u, err := url.Parse(dsn)
		if err != nil || u.User == nil {
			return nil, errors.New("with a password file the address must be postgres://USER@HOST:PORT/postgres")
		}
		u.User = url.UserPassword(u.User.Username(), strings.TrimSpace(string(raw)))
		dsn = u.String()
	}
	return pg.Connect(ctx, dsn, "feira-setup", map[string]string{"statement_timeout": "60s", "lock_timeout": "30s"})
}

// ensure brings one login and its database to what the address says.
func ensure(ctx context.Context, server *pgx.Conn, name, dsn string) (did string, err error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return "", errors.New("its address cannot be read") // pgx's error may show the password
	}
	if cfg.User != name || cfg.Database != name || cfg.Password == "" {
		return "", fmt.Errorf("its address must have the login %q with a password, and the database %q", name, name)
	}
	id := pgx.Identifier{name}.Sanitize()
	var statements []string
	role, database, err := exist(ctx, server, name)
	if err != nil {
		return "", err
	}
	if !role || !opens(ctx, dsn) {
		verifier, err := verifier(name, cfg.Password)
		if err != nil {
			return "", err
		}
		statements = append(statements, verb(role)+" role "+id+" login password '"+verifier+"'")
	}
	if !database {
		statements = append(statements, "create database "+id+" owner "+id)
	}
	if len(statements) > 0 {
		did = "the login and database of " + name
	}
	// Whoever is not named here may not even connect.
	statements = append(statements, "revoke all on database "+id+", postgres, template1 from public")
	for _, s := range statements {
		if _, err := server.Exec(ctx, s); err != nil {
			return "", err
		}
	}
	return did, nil
}

func exist(ctx context.Context, server *pgx.Conn, name string) (role, database bool, err error) {
	err = server.QueryRow(ctx, `select exists (select from pg_roles where rolname = $1),
		exists (select from pg_database where datname = $1)`, name).Scan(&role, &database)
	return role, database, err
}

func verb(exists bool) string {
	if exists {
		return "alter"
	}
	return "create"
}

// opens says whether the address works as it is.
func opens(ctx context.Context, dsn string) bool {
	conn, err := pg.Connect(ctx, dsn, "feira-setup", nil)
	if err != nil {
		return false
	}
	return conn.Close(ctx) == nil
}

// iterations of SCRAM are Postgres' own default.
const iterations = 4096

// verifier is what Postgres keeps of a password. Sent in its place, it keeps the password out of the server's log.
func verifier(name, password string) (string, error) {
	client, err := scram.SHA256.NewClient(name, password, "")
	if err != nil {
		return "", fmt.Errorf("the password cannot be used: %w", err)
	}
	var salt [16]byte
	_, _ = rand.Read(salt[:]) // never fails: crypto/rand ends the process instead
	stored, err := client.GetStoredCredentialsWithError(scram.KeyFactors{Salt: string(salt[:]), Iters: iterations})
	if err != nil {
		return "", fmt.Errorf("the password cannot be used: %w", err)
	}
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", iterations, b64(salt[:]), b64(stored.StoredKey), b64(stored.ServerKey)), nil
}
