package pgtest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/pg"
)

// victimVariable turns the test binary into a test process that waits to be killed.
const victimVariable = "FEIRA_PGTEST_VICTIM"

const patience = time.Minute

func TestMain(m *testing.M) { Main(m) }

func set(name, sql string) pg.Set {
	return pg.Set{Name: name, FS: fstest.MapFS{"00001_" + name + ".sql": {Data: []byte("-- +goose Up\n" + sql + "\n")}}}
}

func notes() pg.Set { return set("notes", "create table notes (id int primary key);") }

func TestEachTestHasItsOwnDatabase(t *testing.T) {
	t.Parallel()
	for i := range 8 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			db := New(t, notes(), set("own", "create table own (n int);"))
			if _, err := db.Pool.Exec(t.Context(), "insert into notes values (1)"); err != nil {
				t.Fatal(err) // a shared database would refuse the second 1
			}
			if _, err := db.Pool.Exec(t.Context(), "alter table own add m int"); err != nil {
				t.Fatal(err) // only its owner may
			}
		})
	}
}

func TestADatabaseWithoutMigrationsIsEmpty(t *testing.T) {
	t.Parallel()
	db := New(t)
	var tables int
	if err := db.Pool.QueryRow(t.Context(), "select count(*) from pg_tables where schemaname = 'public'").Scan(&tables); err != nil {
		t.Fatal(err)
	}
	if tables != 0 {
		t.Errorf("found %d tables", tables)
	}
}

func TestTheAddressLeadsToTheSameDatabase(t *testing.T) {
	t.Parallel()
	db := New(t, notes())
	if _, err := db.Pool.Exec(t.Context(), "insert into notes values (7)"); err != nil {
		t.Fatal(err)
	}
	conn, err := pg.Connect(t.Context(), db.DSN, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	var id int
	if err := conn.QueryRow(t.Context(), "select id from notes").Scan(&id); err != nil || id != 7 {
		t.Errorf("read %d, %v", id, err)
	}
	// What a service may migrate later it may migrate here.
	if err := pg.Migrate(t.Context(), db.DSN, notes(), set("later", "create table later (n int);")); err != nil {
		t.Error(err)
	}
}

func TestTemplatesAreSharedByContentAndOrder(t *testing.T) {
	t.Parallel()
	name := func(sets ...pg.Set) string {
		name, err := templateName(sets)
		if err != nil {
			t.Fatal(err)
		}
		return name
	}
	a, b := set("a", "select 1;"), set("b", "select 1;")
	if name(a, b) != name(set("a", "select 1;"), set("b", "select 1;")) {
		t.Error("equal sets have templates of their own")
	}
	others := map[string]bool{name(a, b): true, name(b, a): true, name(a): true, name(): true,
		name(set("a", "select 2;")): true, name(set("c", "select 1;")): true}
	if len(others) != 6 {
		t.Error("different sets share a template")
	}
}

func TestMigrationsRunOnce(t *testing.T) {
	t.Parallel()
	slow := set("slow", "select pg_sleep(2); create table notes (id int);")
	New(t, slow)
	began := time.Now()
	New(t, slow)
	if took := time.Since(began); took > 2*time.Second { // a copy takes milliseconds, see the benchmark
		t.Errorf("the second database took %v: its migrations ran again", took)
	}
}

// BenchmarkNew is the cost of a database, its pool and the first connection included.
func BenchmarkNew(b *testing.B) {
	New(b, notes())
	for b.Loop() {
		New(b, notes())
	}
}

// recorder is a test whose failure is wanted.
type recorder struct {
	testing.TB
	failed string
}

func (r *recorder) Helper()                        {}
func (r *recorder) Errorf(format string, a ...any) { r.failed = fmt.Sprintf(format, a...) }

func TestAConnectionThatIsNotGivenBackFailsTheTest(t *testing.T) {
	t.Parallel()
	db := New(t)
	conn, err := db.Pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{TB: t}
	closePool(r, db.Pool, 10*time.Millisecond)
	if !strings.Contains(r.failed, "1 connections were not given back") {
		t.Errorf("said %q", r.failed)
	}
	conn.Release()
}

// TestVictim is what the killed process of the next test runs.
func TestVictim(t *testing.T) {
	if os.Getenv(victimVariable) == "" {
		return // run by the next test only
	}
	db := New(t, notes())
	fmt.Println("ready", db.DSN)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestAKilledTestProcessLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "-test.run=^TestVictim$")
	cmd.Env = append(os.Environ(), victimVariable+"=1")
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	dsn, ok := strings.CutPrefix(strings.TrimSpace(line), "ready ")
	if err != nil || !ok {
		t.Fatalf("the other process said %q, %v", line, err)
	}
	dir := dataDirectory(t, dsn)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	await(t, "the end of the server", func() bool {
		conn, err := pg.Connect(t.Context(), dsn, "test", nil)
		if err == nil {
			_ = conn.Close(t.Context())
		}
		return err != nil
	})
	await(t, "the removal of "+dir, func() bool {
		_, err := os.Stat(dir)
		return os.IsNotExist(err)
	})
}

// dataDirectory finds the server's directory by the port that its address names.
func dataDirectory(t *testing.T, dsn string) string {
	t.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(baseDir(), dirPrefix+"*", "*", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(text), fmt.Sprintf("\n%d\n", cfg.Port)) {
			return filepath.Dir(filepath.Dir(file))
		}
	}
	t.Fatalf("none of %v is of port %d", files, cfg.Port)
	return ""
}

func TestOnlyOldAndUnusedDirectoriesAreRemoved(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	old := time.Now().Add(-2 * justMade)
	dirs := map[string]bool{} // whether it must stay
	for _, name := range []string{"old", "young", "used"} {
		dir := filepath.Join(base, dirPrefix+name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		dirs[dir] = name != "old"
		if name == "used" {
			holdLock(t, filepath.Join(dir, "owner.lock"))
		}
		if name != "young" {
			if err := os.Chtimes(dir, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	removeOld(base)
	for dir, stays := range dirs {
		if _, err := os.Stat(dir); os.IsNotExist(err) == stays {
			t.Errorf("%s: stays is %v, got %v", filepath.Base(dir), stays, err)
		}
	}
}

func holdLock(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
}

// await waits for what has no signal: another process' end.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not happen in %v", what, patience)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
