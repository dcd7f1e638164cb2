package pg

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

func TestARestartKeepsDataAndAddress(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	s := start(t, Options{Dir: dir})
	if err := s.CreateDatabase(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	dsn, admin, port := s.DSN("shop"), s.AdminDSN(), s.Port()
	execute(t, dsn, "create table notes as select 7 as n")
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	s = start(t, Options{Dir: dir, Port: port})
	if s.DSN("shop") != dsn || s.AdminDSN() != admin {
		t.Error("the address changed over a restart")
	}
	if n := count(t, dsn, "select n from notes"); n != 7 {
		t.Errorf("read %d, expected 7", n)
	}
	if _, err := os.Stat(filepath.Join(dir, strconv.Itoa(s.install.major), "PG_VERSION")); err != nil {
		t.Errorf("the data is not in a directory named by the major version: %v", err)
	}
}

func TestOnlyNoSyncGivesUpDurability(t *testing.T) {
	t.Parallel()
	for _, noSync := range []bool{false, true} {
		s := &Server{opts: Options{NoSync: noSync}}
		if got := strings.Contains(strings.Join(s.arguments(), " "), "fsync=off"); got != noSync {
			t.Errorf("NoSync %v: fsync off is %v", noSync, got)
		}
	}
}

func TestTheServerListensOnLoopbackWithPasswordsOnly(t *testing.T) {
	t.Parallel()
	s, _ := database(t, "settings")
	for setting, want := range map[string]string{
		"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "password_encryption": "scram-sha-256",
	} {
		if n := count(t, s.AdminDSN(), "select count(*) from pg_settings where name = '"+setting+
			"' and setting = '"+want+"'"); n != 1 {
			t.Errorf("%s is not %q", setting, want)
		}
	}
	if n := count(t, s.AdminDSN(), "select count(*) from pg_hba_file_rules where auth_method <> 'scram-sha-256'"+
		" and type <> 'local'"); n != 0 {
		t.Errorf("%d rules let somebody in without a password", n)
	}
	if n := count(t, s.AdminDSN(), "select count(*) from pg_authid where rolcanlogin"+
		" and rolpassword not like 'SCRAM-SHA-256$%'"); n != 0 {
		t.Errorf("%d roles have no scram password", n)
	}
	info, err := os.Stat(filepath.Join(s.opts.Dir, secretFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the secret is open to others: %v %v", info.Mode(), err)
	}
}

func TestADatabaseIsClosedToOtherRoles(t *testing.T) {
	t.Parallel()
	database(t, "shop")
	s, own := database(t, "stock")
	execute(t, own, "create table own (n int)") // the owner may do everything
	for _, dsn := range []string{
		s.address("stock", "shop"), s.address("stock", "postgres"), s.address("stock", "template1"),
		strings.Replace(s.DSN("shop"), password(s.secret, "shop"), "guess", 1),
	} {
		conn, err := Connect(t.Context(), dsn, "test", nil)
		if err == nil {
			_ = conn.Close(t.Context())
			t.Errorf("%s lets in who must stay out", dsn)
		}
	}
	if n := count(t, s.AdminDSN(), "select count(*) from pg_roles where rolname = 'stock'"+
		" and (rolsuper or rolcreatedb or rolcreaterole or rolreplication)"); n != 0 {
		t.Error("a service's role may do more than own its database")
	}
}

func TestCreateDatabaseMayBeRepeated(t *testing.T) {
	t.Parallel()
	s, _ := database(t, "other")
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			if err := s.CreateDatabase(t.Context(), "often"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	execute(t, s.DSN("often"), "create table notes (n int)")
	if err := s.CreateDatabase(t.Context(), "often"); err != nil {
		t.Fatal(err)
	}
	if n := count(t, s.DSN("often"), "select count(*) from notes"); n != 0 {
		t.Error("the table is not what it was")
	}
	for _, name := range []string{"", "postgres", "template1", "Shop", "a b", "a;b", `a"b`, strings.Repeat("a", 64)} {
		if err := s.CreateDatabase(t.Context(), name); err == nil {
			t.Errorf("the name %q was taken", name)
		}
	}
}

func TestABusyPortIsNamed(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	port := ln.Addr().(*net.TCPAddr).Port
	dir := openDir(t)
	_, err = Start(t.Context(), Options{Dir: dir, Port: port, NoSync: true})
	var busy *PortBusyError
	if !errors.As(err, &busy) || busy.Port != port {
		t.Fatalf("expected a PortBusyError of %d, got %v", port, err)
	}
	_ = ln.Close()
	start(t, Options{Dir: dir, Port: port}) // the refused start gave the directory back
}

func TestADirectoryThatCannotBeUsedIsNamed(t *testing.T) {
	t.Parallel()
	closed := filepath.Join(openDir(t), "closed")
	mode := os.FileMode(0o700) // closed to the account that root hands Postgres to
	if os.Geteuid() != 0 {
		mode = 0o500
	}
	if err := os.Mkdir(closed, mode); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", filepath.Join(closed, "pg")} {
		_, err := Start(t.Context(), Options{Dir: dir, NoSync: true})
		var unusable *DirError
		if !errors.As(err, &unusable) || unusable.Dir != dir || unusable.Do == "" {
			t.Errorf("%q: expected a DirError, got %v", dir, err)
		}
	}
}

// A start that was killed while it made the data directory left this.
func TestAHalfMadeDataDirectoryIsMadeAgain(t *testing.T) {
	t.Parallel()
	shared, _ := database(t, "half")
	dir := openDir(t)
	half := filepath.Join(dir, strconv.Itoa(shared.install.major)+".new", "base")
	if err := os.MkdirAll(half, 0o700); err != nil {
		t.Fatal(err)
	}
	s := start(t, Options{Dir: dir})
	if n := count(t, s.AdminDSN(), "select 1"); n != 1 {
		t.Error("no answer")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.new")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestALostSecretIsNamed(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	if err := start(t, Options{Dir: dir}).Stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, secretFile)); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Options{Dir: dir, NoSync: true})
	var unusable *DirError
	if !errors.As(err, &unusable) || !strings.Contains(unusable.Reason, secretFile) {
		t.Errorf("expected a DirError about the secret, got %v", err)
	}
}

func TestATemporaryDirectoryGoesWithItsServer(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openDir(t), "temporary")
	s := start(t, Options{Dir: dir, Temporary: true})
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory is still there: %v", err)
	}
}
