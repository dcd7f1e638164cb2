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

// server is a Postgres of these tests' own, since databases and logins belong to a whole server; serverFiles is where
// all its files are.
var (
	server      *pg.Server
	serverFiles string
)

func TestMain(m *testing.M) { os.Exit(runWithServer(m)) }

func runWithServer(m *testing.M) int {
	// Not below a test's own folder: where the tests run as root, Postgres' user must be able to enter.
	var err error
	if serverFiles, err = os.MkdirTemp("", "feira-setup-test-"); err == nil {
		defer func() { _ = os.RemoveAll(serverFiles) }()
		err = os.Chmod(serverFiles, 0o755)
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		server, err = pg.Start(ctx, pg.Options{Dir: filepath.Join(serverFiles, "postgres"), NoSync: true, Temporary: true})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = server.Stop() }()
	return m.Run()
}
