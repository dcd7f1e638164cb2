package pg

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// Options say where and how a server runs.
type Options struct {
	Dir       string       // everything of the server; made when missing; one server at a time
	Port      int          // on 127.0.0.1; 0: any free one
	NoSync    bool         // no fsync: for tests only, since a power cut then loses everything
	Temporary bool         // remove Dir when the server stops or the process that started it is gone
	MaxConns  int          // max_connections of the server; 0: 300
	Cache     string       // where fetched binaries are kept; "": the machine's cache folder
	Log       *slog.Logger // nil: discard
	Progress  io.Writer    // is told of a download; nil: nobody
}

// Names and limits of a server.
const (
	adminRole          = "postgres" // superuser; no service connects as it
	defaultServerConns = 300
	portTries          = 5
)

// Server is a running Postgres. It ends with the process that started it, however that one ends.
type Server struct {
	opts    Options
	install installation
	account account
	data    string
	port    int
	secret  []byte
	locks   *locks
	proc    *process
	janitor *janitor
	stop    func() error // once
}

// Start runs a server on opts.Dir and returns when it accepts connections; ctx bounds the start only. A first
// start takes about a second, more when the binaries must be fetched; later ones about a tenth of it. Errors:
// [*InUseError], [*PortBusyError], [*NoBinariesError], [*DirError], [*StartError].
func Start(ctx context.Context, opts Options) (*Server, error) {
	if opts.Dir == "" {
		return nil, &DirError{Reason: "no directory was given", Do: "set one"}
	}
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, &DirError{Dir: opts.Dir, Reason: err.Error(), Do: "give an absolute path"}
	}
	opts.Dir = dir
	opts.MaxConns = cmp.Or(opts.MaxConns, defaultServerConns)
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{opts: opts}
	s.stop = sync.OnceValue(s.end)
	if err := s.start(ctx); err != nil {
		if s.locks != nil && opts.Temporary {
			err = errors.Join(err, os.RemoveAll(opts.Dir))
		}
		if s.locks != nil {
			s.locks.release()
		}
		return nil, err
	}
	return s, nil
}

func (s *Server) start(ctx context.Context) (err error) {
	began := time.Now()
	if s.account, err = prepareDir(s.opts.Dir); err != nil {
		return err
	}
	if s.locks, err = acquire(ctx, s.opts.Dir); err != nil {
		return err
	}
	if s.install, err = choose(ctx, s.opts, s.account); err != nil {
		return err
	}
	s.data = filepath.Join(s.opts.Dir, strconv.Itoa(s.install.major))
	if s.secret, err = loadSecret(s.opts.Dir, s.data); err != nil {
		return err
	}
	if err := s.initialise(ctx); err != nil {
		return err
	}
	if err := removeStalePid(s.data); err != nil {
		return err
	}
	if err := s.launch(ctx); err != nil {
		return err
	}
	s.opts.Log.Debug("postgres started", "port", s.port, "dir", s.data, "version", s.install.version,
		"after", time.Since(began).Round(time.Millisecond))
	return nil
}

// launch starts the postmaster, on another port when a free one was taken before Postgres could bind it.
func (s *Server) launch(ctx context.Context) error {
	for try := 1; ; try++ {
		port, err := pickPort(ctx, s.opts.Port)
		if err != nil {
			return err
		}
		s.port = port
		proc, err := s.run(ctx)
		if err == nil {
			s.proc = proc
			return nil
		}
		var busy *PortBusyError
		if !errors.As(err, &busy) || s.opts.Port != 0 || try == portTries {
			return err
		}
	}
}

// pickPort proves that the wanted port can be bound, or finds a free one.
func pickPort(ctx context.Context, port int) (int, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return 0, &PortBusyError{Port: port, Err: err}
	}
	defer func() { _ = ln.Close() }()
	addr, ok := ln.Addr().(*net.TCPAddr)
	if !ok {
		return 0, fmt.Errorf("unexpected listener address %v", ln.Addr())
	}
	return addr.Port, nil
}

// DSN is the address of the database name for the role of that name. It stays the same over restarts when the
// directory is kept and the port is fixed. The database must have been made by [Server.CreateDatabase].
func (s *Server) DSN(name string) string { return s.address(name, name) }

// AdminDSN is the address of the superuser, for administration by a person.
func (s *Server) AdminDSN() string { return s.address(adminRole, adminRole) }

// Port is the port on 127.0.0.1.
func (s *Server) Port() int { return s.port }

// Done is closed when the server has ended, by [Server.Stop] or by itself.
func (s *Server) Done() <-chan struct{} { return s.proc.done }

func (s *Server) address(role, database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(role, password(s.secret, role)),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Stop ends the server, open sessions included, and gives the directory back. It may be called again.
func (s *Server) Stop() error { return s.stop() }

func (s *Server) end() error {
	err := s.proc.stop()
	if s.opts.Temporary {
		err = errors.Join(err, os.RemoveAll(s.opts.Dir))
	}
	s.janitor.dismiss()
	s.locks.release()
	return err
}

// secretFile holds the random bytes that all passwords are derived from.
const secretFile = "secret"

// loadSecret reads the directory's secret, and makes it for a directory that has no data yet.
func loadSecret(dir, data string) ([]byte, error) {
	path := filepath.Join(dir, secretFile)
	secret, err := os.ReadFile(path) //nolint:gosec // the caller chose the directory
	if err == nil && len(secret) == sha256.Size {
		return secret, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, &DirError{Dir: dir, Reason: err.Error(), Do: "run as the user who made it"}
	}
	if _, err := os.Stat(data); err == nil {
		return nil, &DirError{Dir: dir, Reason: "its file secret is missing or damaged, so nobody can log in",
			Do: "restore it, or remove the directory to start empty"}
	}
	secret = make([]byte, sha256.Size)
	_, _ = rand.Read(secret)
	if err := os.WriteFile(path, secret, 0o600); err != nil {
		return nil, &DirError{Dir: dir, Reason: err.Error(), Do: "make it writable"}
	}
	return secret, nil
}

// password derives a role's password, so that it can be named before and without asking the database.
func password(secret []byte, role string) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(role))
	return hex.EncodeToString(mac.Sum(nil)[:20])
}
