package pgtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/feira-shop/feira/shared/pg"
)

// server is the test process' Postgres.
type server struct {
	*pg.Server
	mu        sync.Mutex
	templates map[string]func(context.Context) error // by name: migrates at the first call
}

// maxConns is what several whole shops at once need: some 70 connections each.
const maxConns = 500

// single starts the server at the first call, and again after a stop.
type single struct {
	mu      sync.Mutex
	current *server
}

var shared single

func (s *single) get() (*server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil {
		return s.current, nil
	}
	base := baseDir()
	removeOld(base)
	dir, err := makeTemp(base)
	if err != nil {
		return nil, err
	}
	// Not the context of the test that happens to be first: the others wait for this start too.
	ctx, cancel := context.WithTimeout(context.Background(), prepareTimeout)
	defer cancel()
	started, err := pg.Start(ctx, pg.Options{Dir: dir, NoSync: true, Temporary: true, MaxConns: maxConns, Progress: os.Stderr})
	if err != nil {
		return nil, err
	}
	s.current = &server{Server: started, templates: map[string]func(context.Context) error{}}
	return s.current, nil
}

func (s *single) stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		return nil
	}
	err := s.current.Stop()
	s.current = nil
	return err
}

// template names the database that has the migrations of sets, and makes it at the first call.
func (s *server) template(ctx context.Context, sets []pg.Set) (string, error) {
	name, err := templateName(sets)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	prepare, ok := s.templates[name]
	if !ok {
		prepare = once(func(ctx context.Context) error {
			if err := s.CreateDatabase(ctx, name); err != nil {
				return err
			}
			return pg.Migrate(ctx, s.DSN(name), sets...)
		})
		s.templates[name] = prepare
	}
	s.mu.Unlock()
	return name, prepare(ctx)
}

// once runs fn until it has succeeded once; callers wait for each other.
func once(fn func(context.Context) error) func(context.Context) error {
	var mu sync.Mutex
	done := false
	return func(ctx context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		if done {
			return nil
		}
		if err := fn(ctx); err != nil {
			return err
		}
		done = true
		return nil
	}
}

// templateName is a digest of what the migrations say, so that equal sets share a template.
func templateName(sets []pg.Set) (string, error) {
	sum := sha256.New()
	for _, set := range sets {
		fmt.Fprintf(sum, "set %q\n", set.Name)
		files, err := fs.Glob(set.FS, "*.sql")
		if err != nil {
			return "", err
		}
		for _, file := range files {
			text, err := fs.ReadFile(set.FS, file)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(sum, "%q %d\n%s", file, len(text), text)
		}
	}
	return "template_" + hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// clone copies the template. The default strategy (wal_log) makes no checkpoint, so copies do not wait for it.
func (s *server) clone(ctx context.Context, template, name string) error {
	conn, err := pg.Connect(ctx, s.AdminDSN(), "pgtest", map[string]string{"statement_timeout": "60s", "lock_timeout": "60s"})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, fmt.Sprintf("create database %s template %s owner %s", name, template, template))
	return err
}

const dirPrefix = "feira-pgtest-"

// memoryNeeded is the room that /dev/shm must have to be used: a server's files and what tests put into it.
const memoryNeeded = 1 << 30

func baseDir() string {
	const memory = "/dev/shm"
	var st syscall.Statfs_t
	if err := syscall.Statfs(memory, &st); err == nil && st.Bavail*uint64(st.Bsize) >= memoryNeeded {
		return memory
	}
	return os.TempDir()
}

// makeTemp makes a directory that Postgres' account may enter when the tests run as root.
func makeTemp(base string) (string, error) {
	dir, err := os.MkdirTemp(base, dirPrefix)
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755) //nolint:gosec // the data in it is closed
}

// justMade is the age below which a directory may belong to a process that has not locked it yet.
const justMade = time.Minute

// removeOld removes what a test process left behind whose janitor was killed too.
func removeOld(base string) {
	dirs, _ := filepath.Glob(filepath.Join(base, dirPrefix+"*"))
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > justMade {
			_ = pg.RemoveUnused(dir) // a refusal means that it is used, or another user's
		}
	}
}
