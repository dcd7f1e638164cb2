package main_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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
