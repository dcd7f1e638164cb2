package pg

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// helperVariable turns the test binary into a process that owns a server on the directory it names.
const helperVariable = "FEIRA_PG_TEST_OWNER"

// patience bounds what a test waits for on a loaded machine.
const patience = time.Minute

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperVariable); dir != "" {
		os.Exit(ownServer(dir))
	}
	code := m.Run()
	if common.server != nil {
		if err := common.server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// common is the server of the tests that need none of their own.
var common struct {
	sync.Mutex
	server *Server
}

// database makes one on the common server.
func database(t *testing.T, name string) (s *Server, dsn string) {
	t.Helper()
	common.Lock()
	defer common.Unlock()
	if common.server == nil {
		dir, err := os.MkdirTemp("", "feira-pg-test-")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if common.server, err = Start(ctx, Options{Dir: dir, NoSync: true, Temporary: true}); err != nil {
			t.Fatal(err)
		}
	}
	if err := common.server.CreateDatabase(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	return common.server, common.server.DSN(name)
}

// ownServer starts a server, says "ready <dsn>" or "error <text>", and lives until its standard input ends.
func ownServer(dir string) int {
	temporary := os.Getenv(helperVariable+"_TEMPORARY") != ""
	s, err := Start(context.Background(), Options{Dir: dir, NoSync: true, Temporary: temporary})
	if err == nil {
		err = s.CreateDatabase(context.Background(), "shop")
	}
	if err != nil {
		fmt.Println("error", strings.ReplaceAll(err.Error(), "\n", " "))
		return 1
	}
	fmt.Println("ready", s.DSN("shop"))
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := s.Stop(); err != nil {
		fmt.Println("error", err)
		return 1
	}
	return 0
}

// owner is another process that owns a server.
type owner struct {
	cmd    *exec.Cmd
	answer string // what it said
	stdin  io.Closer
}

// startOwner runs this test binary again, as the ordinary user uid when it is not 0.
func startOwner(t *testing.T, dir string, uid uint32, env ...string) *owner {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if uid != 0 {
		binary = copyBinary(t, binary)
	}
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), append(env, helperVariable+"="+dir)...)
	cmd.Stderr = os.Stderr
	if uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		cmd.Dir = "/"
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	o := &owner{cmd: cmd, stdin: stdin}
	t.Cleanup(o.kill)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the owner said nothing: %v", err)
	}
	o.answer = strings.TrimSpace(line)
	return o
}

// dsn is the address of the owner's database.
func (o *owner) dsn(t *testing.T) string {
	t.Helper()
	dsn, ok := strings.CutPrefix(o.answer, "ready ")
	if !ok {
		t.Fatalf("the owner did not start a server: %s", o.answer)
	}
	return dsn
}

func (o *owner) kill() {
	_ = o.cmd.Process.Kill()
	_ = o.cmd.Wait()
}

func copyBinary(t *testing.T, binary string) string {
	t.Helper()
	content, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(openDir(t), "owner")
	// Nobody may fork meanwhile: a child would have the file open for writing, and it could not be executed.
	syscall.ForkLock.RLock()
	err = os.WriteFile(path, content, 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// openDir is a temporary directory that Postgres' account may enter, which t.TempDir is not.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "feira-pg-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// start runs a server that the test stops at its end.
func start(t *testing.T, opts Options) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	opts.NoSync = true
	s, err := Start(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	return s
}

// startShop runs a server in a new directory with a database "shop".
func startShop(t *testing.T) *Server {
	t.Helper()
	s := start(t, Options{Dir: openDir(t)})
	if err := s.CreateDatabase(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	return s
}

// execute runs one statement in a session of its own.
func execute(t *testing.T, dsn, sql string) {
	t.Helper()
	conn, err := Connect(t.Context(), dsn, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// count reads one number in a session of its own.
func count(t *testing.T, dsn, sql string) int {
	t.Helper()
	conn, err := Connect(t.Context(), dsn, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var n int
	if err := conn.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// postmaster is the process number in the directory's pid file.
func postmaster(t *testing.T, data string) int {
	t.Helper()
	pid, err := strconv.Atoi(pidFile(data)[0])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// await waits until ok, for what has no signal: another process' end.
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

func gone(pid int) bool { return syscall.Kill(pid, 0) == syscall.ESRCH }
