package setup

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/pg"
)

// server is a Postgres of these tests' own, since databases and logins belong to a whole server.
var server *pg.Server

func TestMain(m *testing.M) { os.Exit(runWithServer(m)) }

func runWithServer(m *testing.M) int {
	// Not below a test's own folder: where the tests run as root, Postgres' user must be able to enter.
	dir, err := os.MkdirTemp("", "feira-setup-test-")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		err = os.Chmod(dir, 0o755)
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		server, err = pg.Start(ctx, pg.Options{Dir: filepath.Join(dir, "pg"), NoSync: true, Temporary: true})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = server.Stop() }()
	return m.Run()
}
