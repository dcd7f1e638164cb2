package setup

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// addresses are of services on the tests' server, each with the password "secret-of-<service>" and what is added.
func addresses(more string) func(service string) (string, error) {
	return func(service string) (string, error) {
		u := url.URL{Scheme: "postgres", User: url.UserPassword(service, "secret-of-"+service+more), Host: fmt.Sprintf("127.0.0.1:%d", server.Port()), Path: "/" + service}
		return u.String(), nil
	}
}

func ensureAll(t *testing.T, d Databases) []string {
	t.Helper()
	done, err := d.Ensure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// try connects as a login to a database.
func try(t *testing.T, d Databases, login, database string) error {
	t.Helper()
	dsn, _ := d.DSN(login)
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Database = database
	conn, err := pgx.ConnectConfig(t.Context(), cfg)
	if err != nil {
		return err
	}
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), "create table if not exists own (); drop table own")
	return err
}

func TestEachLoginOpensItsOwnDatabaseOnly(t *testing.T) {
	t.Parallel()
	d := Databases{Server: server.AdminDSN(), Services: []string{"first", "second-one", "third"}, DSN: addresses("")}
	if done := ensureAll(t, d); len(done) != 3 {
		t.Errorf("made %v", done)
	}
	for _, login := range d.Services {
		for _, database := range append([]string{"postgres", "template1"}, d.Services...) {
			err := try(t, d, login, database)
			if own := login == database; own != (err == nil) || !own && !strings.Contains(err.Error(), "permission denied for database") {
				t.Errorf("%s opens %s: %v", login, database, err)
			}
		}
	}
	if done := ensureAll(t, d); len(done) != 0 {
		t.Errorf("the second time it made %v", done)
	}
}

func TestAChangedPasswordIsBroughtToTheServer(t *testing.T) {
	t.Parallel()
	d := Databases{Server: server.AdminDSN(), Services: []string{"moved"}, DSN: addresses("")}
	ensureAll(t, d)
	old := d
	d.DSN = addresses("-renewed")
	if err := try(t, d, "moved", "moved"); err == nil {
		t.Fatal("the server takes any password, so this test shows nothing")
	}
	if done := ensureAll(t, d); len(done) != 1 {
		t.Errorf("made %v", done)
	}
	if err := try(t, d, "moved", "moved"); err != nil {
		t.Error(err)
	}
	if err := try(t, old, "moved", "moved"); err == nil {
		t.Error("the old password is still taken")
	}
}

func TestThePasswordOfTheServerComesFromAFile(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(server.AdminDSN())
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	u.User = url.User(u.User.Username())
	d := Databases{Server: u.String(), PasswordFile: file, Services: []string{"filed"}, DSN: addresses("")}
	if done := ensureAll(t, d); len(done) != 1 {
		t.Errorf("made %v", done)
	}
	d.PasswordFile += ".gone"
	if _, err := d.Ensure(t.Context()); err == nil || !strings.Contains(err.Error(), "password") {
		t.Errorf("%v", err)
	}
}

// Neither the server's log nor its tables nor errors ever have a password.
func TestThePasswordStaysSecret(t *testing.T) {
	t.Parallel()
	admin, err := url.Parse(server.AdminDSN())
	if err != nil {
		t.Fatal(err)
	}
	query := admin.Query()
	query.Set("log_statement", "all")
	admin.RawQuery = query.Encode()
	ensureAll(t, Databases{Server: admin.String(), Services: []string{"hidden"}, DSN: addresses("")})
	var logged bool
	err = filepath.WalkDir(serverFiles, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil // files come and go while a server runs
		}
		raw, _ := os.ReadFile(path)
		logged = logged || bytes.Contains(raw, []byte(`create role "hidden" login password 'SCRAM-SHA-256$4096:`))
		if bytes.Contains(raw, []byte("secret-of-hidden")) {
			t.Errorf("%s has the password", path)
		}
		return nil
	})
	if err != nil || !logged {
		t.Errorf("the server logged nothing, so this test shows nothing: %v", err)
	}
	for _, dsn := range []string{
		"postgres://other:geheim@127.0.0.1/wrong", "postgres://wrong:geheim@127.0.0.1/other", "postgres://wrong@127.0.0.1/wrong", "postgres://wrong:geheim@127.0.0.1:port/wrong",
	} {
		d := Databases{Server: server.AdminDSN(), Services: []string{"wrong"}, DSN: func(string) (string, error) { return dsn, nil }}
		if _, err := d.Ensure(t.Context()); err == nil || !strings.Contains(err.Error(), "the database of wrong") || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v", dsn, err)
		}
	}
}
