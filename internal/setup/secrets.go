package setup

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/feira-shop/feira/shared/auth"
)

// Names of folders and files, see the package's description.
const (
	Tools    = "tools"
	Provider = "provider"
	Server   = "postgres"

	EnvFile      = "feira.env"
	KeySetFile   = "jwks.json"
	TokenKeyFile = "token.pem"
	PasswordFile = "password"
)

// Secrets are what a deployment must not share with others.
type Secrets struct {
	Dir      string   // where the folders are made
	SeenAt   string   // where each part will see its own folder; "": where it is made
	Services []string // each gets a folder and a database; the provider gets its own besides
	Postgres string   // host:port of the database server, as the services reach it
	Owner    *Owner   // whom folders and files are given to; nil: whoever makes them
}

// Owner is a user and group by number, as containers have them.
type Owner struct{ UID, GID int }

// ParseOwner reads "65532:65532"; "" is nil.
func ParseOwner(s string) (*Owner, error) {
	if s == "" {
		return nil, nil //nolint:nilnil // no owner is a choice, not a failure
	}
	var o Owner
	if n, err := fmt.Sscanf(s, "%d:%d", &o.UID, &o.GID); err != nil || n != 2 || fmt.Sprintf("%d:%d", o.UID, o.GID) != s || o.UID < 0 || o.GID < 0 {
		return nil, fmt.Errorf("%q is not an owner: expected numbers of a user and a group, such as 65532:65532", s)
	}
	return &o, nil
}

// Write makes what is missing, keeps what is there, and returns the files that it wrote, relative to Dir.
func (s Secrets) Write() (written []string, err error) {
	if _, _, err := net.SplitHostPort(s.Postgres); err != nil {
		return nil, fmt.Errorf("the database server %q must be host:port, such as postgres:5432: %w", s.Postgres, err)
	}
	f := &folder{dir: s.Dir, owner: s.Owner}
	known, err := s.known()
	if err != nil {
		return nil, err
	}
	all, err := s.complete(known)
	if err != nil {
		return nil, err
	}
	// What holds everything comes first: whatever else a crash leaves out follows from it in the next run.
	f.write(Tools, EnvFile, all.only(nil).text())
	keySet := f.tokenKey()
	f.write(Tools, KeySetFile, keySet)
	for _, name := range append([]string{Provider}, s.Services...) {
		f.write(name, EnvFile, all.only(mine(name)).set("FEIRA_JWKS", s.seen(name, KeySetFile)).text())
		f.write(name, KeySetFile, keySet)
	}
	if !f.has(Server, PasswordFile) {
		f.write(Server, PasswordFile, []byte(newPassword()+"\n"))
	}
	return f.written, f.err
}

// mine says which variables a part gets.
func mine(name string) func(variable string) bool {
	return func(variable string) bool {
		return variable == Variable(name) || variable == providerKey && (name == Provider || name == "payments")
	}
}

const providerKey = "FEIRA_PROVIDER_KEY"

// Variable names the variable that holds the address of a service's database.
func Variable(service string) string { return "FEIRA_POSTGRES_" + strings.ToUpper(service) }

func (s Secrets) seen(part, file string) string {
	if s.SeenAt != "" {
		return filepath.Join(s.SeenAt, file)
	}
	return filepath.Join(s.Dir, part, file)
}

// known reads what a run before has made.
func (s Secrets) known() (environment, error) {
	path := filepath.Join(s.Dir, Tools, EnvFile)
	raw, err := os.ReadFile(path) //nolint:gosec // the folder is the operator's own configuration
	if errors.Is(err, fs.ErrNotExist) {
		return environment{}, nil
	}
	if err != nil {
		return environment{}, fmt.Errorf("read the secrets: %w", err)
	}
	return parse(path, string(raw))
}

// complete gives every part its secrets, those it has already first.
func (s Secrets) complete(known environment) (environment, error) {
	all := known
	for _, name := range append([]string{Provider}, s.Services...) {
		password := newPassword()
		if had := known.get(Variable(name)); had != "" {
			u, err := url.Parse(had)
			if err != nil || u.User == nil {
				return all, fmt.Errorf("%s in %s is no address with a password: restore it, or remove the line to have a new password made", Variable(name), filepath.Join(s.Dir, Tools, EnvFile))
			}
			password, _ = u.User.Password()
		}
		dsn := url.URL{Scheme: "postgres", User: url.UserPassword(name, password), Host: s.Postgres, Path: "/" + name}
		all = all.set(Variable(name), dsn.String())
	}
	if all.get(providerKey) == "" {
		all = all.set(providerKey, newPassword())
	}
	return all.set("FEIRA_TOKEN_KEY", s.seen(Tools, TokenKeyFile)).set("FEIRA_JWKS", s.seen(Tools, KeySetFile)), nil
}

// newPassword has 192 random bits, in characters that addresses and files take as they are.
func newPassword() string {
	var b [24]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// tokenKey gives the public half of the key that signs tokens, and makes the key where there is none.
func (f *folder) tokenKey() []byte {
	if f.err != nil || !f.make(Tools) {
		return nil
	}
	had := f.has(Tools, TokenKeyFile)
	path := filepath.Join(f.dir, Tools, TokenKeyFile)
	key, err := auth.LoadOrCreateKey(path)
	if err != nil {
		f.err = err
		return nil
	}
	if !had {
		f.written = append(f.written, filepath.Join(Tools, TokenKeyFile))
	}
	f.give(path)
	return key.JWKS()
}
