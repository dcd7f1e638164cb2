package setup

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/auth"
)

func secretsIn(dir string) Secrets {
	return Secrets{Dir: dir, SeenAt: "/secrets", Services: []string{"orders", "payments"}, Postgres: "postgres:5432"}
}

// contents are all files below a folder, by their path.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil || path == dir {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %#o, so others can read it", path, info.Mode().Perm())
		}
		if entry.IsDir() {
			return nil
		}
		raw, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[name] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func write(t *testing.T, s Secrets) (files map[string]string, written []string) {
	t.Helper()
	written, err := s.Write()
	if err != nil {
		t.Fatal(err)
	}
	return contents(t, s.Dir), written
}

func TestEachPartGetsItsOwnSecretsOnly(t *testing.T) {
	t.Parallel()
	files, written := write(t, secretsIn(t.TempDir()))
	names := func(file string) (list []string) {
		e, err := parse(file, files[file])
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range e.lines {
			list = append(list, v.name)
		}
		slices.Sort(list)
		return list
	}
	for file, want := range map[string][]string{
		"orders/feira.env":   {"FEIRA_JWKS", "FEIRA_POSTGRES_ORDERS"},
		"payments/feira.env": {"FEIRA_JWKS", "FEIRA_POSTGRES_PAYMENTS", "FEIRA_PROVIDER_KEY"},
		"provider/feira.env": {"FEIRA_JWKS", "FEIRA_POSTGRES_PROVIDER", "FEIRA_PROVIDER_KEY"},
		"tools/feira.env": {
			"FEIRA_JWKS", "FEIRA_POSTGRES_ORDERS", "FEIRA_POSTGRES_PAYMENTS", "FEIRA_POSTGRES_PROVIDER", "FEIRA_PROVIDER_KEY", "FEIRA_TOKEN_KEY",
		},
	} {
		if got := names(file); !slices.Equal(got, want) {
			t.Errorf("%s has %v, expected %v", file, got, want)
		}
	}
	if len(files) != len(written) || len(files) != 4+4+2 {
		t.Errorf("%d files, %d written: %v", len(files), len(written), written)
	}
	passwords := map[string]bool{}
	for _, file := range []string{"orders/feira.env", "payments/feira.env", "provider/feira.env"} {
		e, _ := parse(file, files[file])
		part := filepath.Dir(file)
		u, err := url.Parse(e.get(Variable(part)))
		if err != nil || u.User.Username() != part || u.Path != "/"+part || u.Host != "postgres:5432" {
			t.Errorf("%s: %v %v", file, u, err)
			continue
		}
		password, _ := u.User.Password()
		passwords[password] = true
	}
	passwords[strings.TrimSpace(files["postgres/password"])] = true
	passwords[strings.Split(files["payments/feira.env"], "PROVIDER_KEY=")[1][:32]] = true
	for p := range passwords {
		if len(p) < 32 {
			t.Errorf("the password %q is short", p)
		}
	}
	if len(passwords) != 5 {
		t.Errorf("passwords are shared: %d of 5 differ", len(passwords))
	}
}

func TestTokensOfTheToolsAreVerifiedByEveryPart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files, _ := write(t, secretsIn(dir))
	key, err := auth.LoadKey(filepath.Join(dir, Tools, TokenKeyFile))
	if err != nil {
		t.Fatal(err)
	}
	token, err := key.Sign("ana", []auth.Role{auth.Customer}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"orders", "payments", "provider", "tools"} {
		verifier, err := auth.StaticVerifier([]byte(files[part+"/jwks.json"]), auth.Options{})
		if err == nil {
			_, err = verifier.Verify(token)
		}
		if err != nil {
			t.Errorf("%s: %v", part, err)
		}
	}
}

func TestASecondRunWritesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before, _ := write(t, secretsIn(dir))
	after, written := write(t, secretsIn(dir))
	if len(written) > 0 {
		t.Errorf("wrote %v", written)
	}
	for file, content := range before {
		if after[file] != content {
			t.Errorf("%s was changed", file)
		}
	}
}

// Whatever of a first run is missing is made from what is there, so that the parts still agree.
func TestARunGoesOnWhereOneWasInterrupted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before, _ := write(t, secretsIn(dir))
	for file := range before {
		if file == "tools/feira.env" || file == "tools/token.pem" || file == "postgres/password" {
			continue
		}
		if err := os.Remove(filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
		after, written := write(t, secretsIn(dir))
		if !slices.Equal(written, []string{file}) || after[file] != before[file] {
			t.Errorf("without %s: wrote %v", file, written)
		}
	}
}

func TestANewServiceGetsItsSecretsAndTheOthersKeepTheirs(t *testing.T) {
	t.Parallel()
	s := secretsIn(t.TempDir())
	before, _ := write(t, s)
	s.Services = append(s.Services, "stamps")
	after, written := write(t, s)
	slices.Sort(written)
	if want := []string{"stamps/feira.env", "stamps/jwks.json", "tools/feira.env"}; !slices.Equal(written, want) {
		t.Errorf("wrote %v, expected %v", written, want)
	}
	if after["orders/feira.env"] != before["orders/feira.env"] || !strings.HasPrefix(after["tools/feira.env"], before["tools/feira.env"]) {
		t.Error("secrets that were there have changed")
	}
}

func TestAnotherAddressKeepsThePasswords(t *testing.T) {
	t.Parallel()
	s := secretsIn(t.TempDir())
	before, _ := write(t, s)
	s.Postgres = "db.example:6432"
	after, _ := write(t, s)
	if want := strings.ReplaceAll(before["orders/feira.env"], "postgres:5432", "db.example:6432"); after["orders/feira.env"] != want {
		t.Errorf("%s\n%s", after["orders/feira.env"], want)
	}
}

func TestWrongSettingsAndFilesAreNamed(t *testing.T) {
	t.Parallel()
	s := secretsIn(t.TempDir())
	s.Postgres = "postgres"
	if _, err := s.Write(); err == nil || !strings.Contains(err.Error(), "host:port") {
		t.Errorf("%v", err)
	}
	for _, content := range []string{"FEIRA_POSTGRES_ORDERS\n", "FEIRA_POSTGRES_ORDERS=postgres:5432/orders\n"} {
		s := secretsIn(t.TempDir())
		path := filepath.Join(s.Dir, Tools, EnvFile)
		err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Write(); err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", content, err)
		}
		if raw, _ := os.ReadFile(path); string(raw) != content {
			t.Errorf("what could not be read was overwritten: %q", raw)
		}
	}
}

func TestOwners(t *testing.T) {
	t.Parallel()
	if o, err := ParseOwner("65532:1000"); err != nil || *o != (Owner{65532, 1000}) {
		t.Errorf("%v %v", o, err)
	}
	if o, err := ParseOwner(""); err != nil || o != nil {
		t.Errorf("%v %v", o, err)
	}
	for _, s := range []string{"feira", "1", "1:", ":1", "1:2:3", "-1:2", "1:2 "} {
		if o, err := ParseOwner(s); err == nil {
			t.Errorf("%q is %v", s, o)
		}
	}
	s := secretsIn(t.TempDir())
	s.Owner = &Owner{os.Getuid(), os.Getgid()} // the only one that everybody may give to
	write(t, s)
}
