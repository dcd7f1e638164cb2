//go:build e2e

package e2e

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/url"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/internal/shop"
	"github.com/feira-shop/feira/internal/shoptest"
)

// startPostgres starts a server, or takes the one that is given, waits until it answers a query, and makes a database
// and a login for each service.
func (s *stack) startPostgres(ctx context.Context) error {
	s.admin = s.givenPostgres
	if s.admin == "" {
		port, err := freePort(ctx)
		if err != nil {
			return err
		}
		if err := s.startServer(ctx, port); err != nil {
			return err
		}
	}
	if err := s.postgresReady(ctx); err != nil {
		return err
	}
	return s.makeDatabases(ctx)
}

func (s *stack) startServer(ctx context.Context, port int) error {
	if s.postgres == embedded {
		m, err := s.embeddedOn(ctx, "postgres", port, "postgres")
		if err == nil {
			s.postgresOn, s.admin = m, m.admin
		}
		return err
	}
	password := rand.Text()
	b, image, err := startBox(ctx, s.docker, boxOptions{
		run: s.run, images: s.postgresImages, port: port, inside: "5432/tcp",
		env: map[string]string{"POSTGRES_PASSWORD": password}, cmd: []string{"postgres", "-c", "max_connections=300"},
	})
	if err != nil {
		return err
	}
	s.postgresOn = b
	s.admin = address("postgres", password, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), "postgres")
	s.tell("Postgres image %s", image)
	return nil
}

func address(role, password, host, database string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(role, password), Host: host, Path: "/" + database, RawQuery: "sslmode=disable"}
	return u.String()
}

// postgresReady waits until a query is answered.
func (s *stack) postgresReady(ctx context.Context) error {
	return await(ctx, "Postgres to answer a query", func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, s.admin)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
		return conn.QueryRow(ctx, "select").Scan()
	})
}

func databaseOf(run, service string) string { return "e2e_" + run + "_" + service }

// makeDatabases gives each service a database that no other service's login can connect to.
func (s *stack) makeDatabases(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.admin)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var version string
	if err := conn.QueryRow(ctx, "show server_version").Scan(&version); err != nil {
		return err
	}
	host := net.JoinHostPort(conn.Config().Host, strconv.Itoa(int(conn.Config().Port)))
	s.tell("Postgres %s at %s", version, host)
	for _, service := range append(shop.Names(), shoptest.Provider) {
		name, password := databaseOf(s.run, service), rand.Text()
		for _, sql := range []string{
			fmt.Sprintf("create role %s login password '%s'", name, password),
			fmt.Sprintf("create database %s owner %s", name, name),
			fmt.Sprintf("revoke all on database %s from public", name),
		} {
			if _, err := conn.Exec(ctx, sql); err != nil {
				return fmt.Errorf("make the database of %s: %w", service, err)
			}
		}
		s.env = append(s.env, postgresOf(service)+"="+address(name, password, host, name))
	}
	return nil
}
