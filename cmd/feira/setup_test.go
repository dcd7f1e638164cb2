package main_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/feira-shop/feira/shared/pg"
)

// What setup makes is what the other commands take: its key signs tokens, and its logins get their databases.
func TestSetupPreparesADeployment(t *testing.T) {
	t.Parallel()
	folder := newFolder(t)
	server, err := pg.Start(t.Context(), pg.Options{Dir: filepath.Join(folder, "postgres"), NoSync: true, Temporary: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	dir := filepath.Join(folder, "secrets")
	secrets := []string{"setup", "--dir=" + dir, fmt.Sprintf("--server=127.0.0.1:%d", server.Port())}
	has(t, call(t, nil, secrets...).ok(t), "orders/feira.env", "postgres/password")
	has(t, call(t, nil, secrets...).ok(t), "all secrets are there")

	env := []string{"FEIRA_ENV_FILE=" + dir + "/tools/feira.env", "FEIRA_POSTGRES_SERVER=" + server.AdminDSN()}
	has(t, call(t, env, "token").ok(t), "ey")
	has(t, call(t, env, "setup", "databases").ok(t), "made the login and database of orders", "made the login and database of provider")
	has(t, call(t, env, "setup", "databases").ok(t), "all databases are there")
	has(t, call(t, env, "migrate", "orders", "--no-topics").ok(t), "migrated orders")

	call(t, nil, "setup", "--dir="+dir, "--owner=feira").fails(t, "--owner", "65532:65532")
	call(t, nil, "setup", "--dir="+dir, "--server=somewhere").fails(t, "somewhere", "host:port")
	call(t, nil, "setup", "databases", "--server="+server.AdminDSN()).fails(t, "FEIRA_POSTGRES_PROVIDER")
	nobody := fmt.Sprintf("--server=postgres://postgres@127.0.0.1:%d/postgres", server.Port())
	call(t, env, "setup", "databases", nobody, "--password-file="+filepath.Join(dir, "orders", "jwks.json")).fails(t, "the database server", "password authentication failed")
}
