package pg

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestTwoStartsOnOneDirectory(t *testing.T) {
	t.Parallel()
	s := startShop(t)
	_, err := Start(t.Context(), Options{Dir: s.opts.Dir, NoSync: true})
	var busy *InUseError
	if !errors.As(err, &busy) || busy.PID != os.Getpid() {
		t.Errorf("the same process: expected an InUseError of %d, got %v", os.Getpid(), err)
	}
	other := startOwner(t, s.opts.Dir, 0)
	if !strings.Contains(other.answer, "in use by process "+strconv.Itoa(os.Getpid())) {
		t.Errorf("another process: %s", other.answer)
	}
	if n := count(t, s.DSN("shop"), "select 1"); n != 1 {
		t.Error("the first server suffered")
	}
	if err := RemoveUnused(s.opts.Dir); !errors.As(err, &busy) {
		t.Errorf("a used directory would have been removed: %v", err)
	}
}

// A killed owner cannot stop its server: the kernel does, also with a session in the middle of a statement, and
// the next start waits until it has.
func TestAKilledOwnerTakesItsServerWithIt(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	first := startOwner(t, dir, 0)
	dsn := first.dsn(t)
	execute(t, dsn, "create table notes as select 7 as n")
	conn, err := Connect(t.Context(), dsn, "busy", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	ended := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.Background(), "select pg_sleep(60)")
		ended <- err
	}()
	pid := postmaster(t, data(t, dir))
	await(t, "the busy session", func() bool {
		return count(t, dsn, "select count(*) from pg_stat_activity where query like 'select pg_sleep%'") == 1
	})

	first.kill()
	s := start(t, Options{Dir: dir})
	await(t, "the old server's end", func() bool { return gone(pid) }) // it has ended; init must still say so
	if err := <-ended; err == nil {
		t.Error("the session outlived the server")
	}
	if n := count(t, s.DSN("shop"), "select n from notes"); n != 7 {
		t.Errorf("read %d, expected 7", n)
	}
}

func TestAKilledOwnersTemporaryDirectoryIsRemoved(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openDir(t), "temporary")
	owner := startOwner(t, dir, 0, helperVariable+"_TEMPORARY=1")
	owner.dsn(t)
	pid := postmaster(t, data(t, dir))
	owner.kill()
	await(t, "the removal", func() bool {
		_, err := os.Stat(dir)
		return os.IsNotExist(err)
	})
	await(t, "the server's end", func() bool { return gone(pid) })
}

// Where no kernel does it (macOS), the janitor ends the server.
func TestTheJanitorEndsWhatItIsTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, dismissed := range []bool{true, false} {
		server := exec.Command("sleep", "600")
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { _ = server.Wait(); close(ended) }()
		j, err := hire("INT", server.Process.Pid, dir)
		if err != nil {
			t.Fatal(err)
		}
		if dismissed {
			j.dismiss()
			if gone(server.Process.Pid) {
				t.Error("a dismissed janitor ended the server")
			}
			_ = server.Process.Kill()
			<-ended
			continue
		}
		_ = j.pipe.Close() // as when this process is killed
		<-ended
		if err := j.cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory is still there: %v", err)
	}
}

func TestAKilledPostmasterIsReplaced(t *testing.T) {
	t.Parallel()
	s := startShop(t)
	execute(t, s.DSN("shop"), "create table notes as select 7 as n")
	if err := syscall.Kill(s.proc.cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	if err := s.Stop(); err == nil {
		t.Error("the stop of a killed server says nothing about it")
	}
	next := start(t, Options{Dir: s.opts.Dir})
	if n := count(t, next.DSN("shop"), "select n from notes"); n != 7 {
		t.Errorf("read %d, expected 7", n)
	}
}

// A backend that lives on without its postmaster could still write, so the directory stays closed until it ends.
func TestABackendLeftBehindKeepsTheDirectoryClosed(t *testing.T) {
	t.Parallel()
	s := startShop(t)
	conn, err := Connect(t.Context(), s.DSN("shop"), "left behind", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	backend := int(conn.PgConn().PID())
	if err := errors.Join(syscall.Kill(backend, syscall.SIGSTOP),
		syscall.Kill(s.proc.cmd.Process.Pid, syscall.SIGKILL)); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	_ = s.Stop()

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = Start(ctx, Options{Dir: s.opts.Dir, NoSync: true})
	var busy *InUseError
	if !errors.As(err, &busy) {
		t.Errorf("expected an InUseError while the backend lives, got %v", err)
	}
	if err := syscall.Kill(backend, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	start(t, Options{Dir: s.opts.Dir})
}

// The first boot works for root, as every test here when root runs them, and for an ordinary user.
func TestAnOrdinaryUserMayStartAServer(t *testing.T) {
	t.Parallel()
	var uid uint32
	dir := openDir(t)
	if os.Geteuid() == 0 {
		nobody, err := user.Lookup("nobody")
		if err != nil {
			t.Fatal(err)
		}
		number, err := strconv.ParseUint(nobody.Uid, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		uid = uint32(number)
		if err := os.Chown(dir, int(uid), int(uid)); err != nil {
			t.Fatal(err)
		}
	}
	owner := startOwner(t, dir, uid)
	if n := count(t, owner.dsn(t), "select 1"); n != 1 {
		t.Error("no answer")
	}
	_ = owner.stdin.Close()
	if err := owner.cmd.Wait(); err != nil {
		t.Errorf("the ordinary user's stop: %v", err)
	}
}

// data is the only data directory below dir.
func data(t *testing.T, dir string) string {
	t.Helper()
	majors := dataMajors(dir)
	if len(majors) != 1 {
		t.Fatalf("data of versions %v, expected one", majors)
	}
	return filepath.Join(dir, strconv.Itoa(majors[0]))
}
