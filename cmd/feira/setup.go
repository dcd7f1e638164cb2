package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/feira-shop/feira/internal/setup"
	"github.com/feira-shop/feira/internal/shop"
)

type setupCmd struct {
	Secrets   setupSecretsCmd   `cmd:"" default:"withargs" help:"Make passwords and keys, a folder of them for each part of the deployment. What is there is kept."`
	Databases setupDatabasesCmd `cmd:"" help:"Make a login and a database for each service, closed to all others. What is there is kept."`
}

type setupSecretsCmd struct {
	Dir    string `env:"FEIRA_SECRETS" required:"" type:"path" placeholder:"DIR" help:"Where the folders are made."`
	SeenAt string `name:"seen-at" env:"FEIRA_SECRETS_SEEN_AT" placeholder:"DIR" help:"Where each part will see its own folder, such as a mount in a container (default: where it is made)."`
	Server string `env:"FEIRA_SECRETS_POSTGRES" default:"127.0.0.1:5432" placeholder:"HOST:PORT" help:"The database server, as the services reach it."`
	Owner  string `env:"FEIRA_SECRETS_OWNER" placeholder:"UID:GID" help:"Whom the files are given to (default: whoever runs this)."`
}

// Run makes the secrets that are missing.
func (c *setupSecretsCmd) Run() error {
	owner, err := setup.ParseOwner(c.Owner)
	if err != nil {
		return fmt.Errorf("--owner: %w", err)
	}
	secrets := setup.Secrets{Dir: c.Dir, SeenAt: c.SeenAt, Services: shop.Names(), Postgres: c.Server, Owner: owner}
	written, err := secrets.Write()
	if err != nil {
		return err
	}
	for _, file := range written {
		fmt.Println("wrote", filepath.Join(c.Dir, file))
	}
	if len(written) == 0 {
		fmt.Println("all secrets are there")
	}
	return nil
}

type setupDatabasesCmd struct {
	databases `embed:""`

	Server       string `env:"FEIRA_POSTGRES_SERVER" required:"" placeholder:"DSN" help:"Address of the server for somebody who may make logins and databases: postgres://postgres@HOST:PORT/postgres."`
	PasswordFile string `env:"FEIRA_POSTGRES_PASSWORD_FILE" type:"path" placeholder:"FILE" help:"Holds that somebody's password (default: it is in the address)."`
}

// Run makes the logins and databases that are missing.
func (c *setupDatabasesCmd) Run(ctx context.Context) error {
	done, err := setup.Databases{
		Server: c.Server, PasswordFile: c.PasswordFile, Services: append([]string{setup.Provider}, shop.Names()...), DSN: c.dsn,
	}.Ensure(ctx)
	for _, what := range done {
		fmt.Println("made", what)
	}
	if err == nil && len(done) == 0 {
		fmt.Println("all databases are there")
	}
	return errors.Join(err)
}
