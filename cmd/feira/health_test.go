package main_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The health check of a container: exit code 0 only when the process next to it is ready.
func TestHealthSaysWhetherTheProcessIsReady(t *testing.T) {
	t.Parallel()
	ready := true
	process := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || !ready {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"status":"not ready","checks":{"orders: relay":"failing","orders: database":"ok"}}`))
		}
	}))
	defer process.Close()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(process.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	for _, listen := range []string{"127.0.0.1:", "0.0.0.0:", ":"} { // as a process may have been told to listen
		has(t, call(t, []string{"FEIRA_LISTEN=" + listen + port}, "health").ok(t), "ready")
	}
	ready = false
	said := call(t, nil, "health", "--listen=:"+port)
	said.fails(t, "503", "orders: relay")
	if strings.Contains(said.errors, "database") {
		t.Errorf("it blames what is well: %s", said.errors)
	}
	process.Close()
	call(t, nil, "health", "--listen=:"+port).fails(t, "nobody answers")
	call(t, nil, "health", "--listen=orders").fails(t, "--listen", "orders")
}

func TestVersion(t *testing.T) {
	t.Parallel()
	has(t, call(t, nil, "--version").ok(t), "feira ", "revision ", "go1.")
}

// Told to stop while it waits for its database, a process ends at once, and in order.
func TestAProcessStopsBeforeItHasStarted(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	came := make(chan struct{})
	go func() {
		if c, err := silent.Accept(); err == nil {
			close(came)
			_, _ = io.Copy(io.Discard, c) // until the process ends
		}
	}()
	dsn := "FEIRA_POSTGRES=postgres://feira@" + silent.Addr().String() + "/{service}?sslmode=disable"
	p := start(t, []string{dsn}, "run", "loyalty", "--listen=127.0.0.1:0", "--kafka=127.0.0.1:1", "--behind-gateway", "--jwks="+keySet(t))
	select {
	case <-came:
	case <-time.After(patience):
		t.Fatal("it does not ask for its database")
	}
	if code, took := p.stop(syscall.SIGTERM); code != 0 || took > 10*time.Second {
		t.Errorf("exit code %d after %s", code, took)
	}
}
