package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"go.uber.org/goleak"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/shared/web"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const order = "/v1/orders/6b1f6c3e-58a5-5c07-9d1c-3a8f0f6f2f10"

// named answers with the name of a service, and what it was asked.
func named(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Request-Id", r.Header.Get("X-Request-Id"))
		w.Header().Set("ETag", `"3"`)
		_, _ = w.Write([]byte(name + " " + r.Method + " " + r.URL.RequestURI() + " " + string(body)))
	})
}

func newGateway(t *testing.T, services map[string]http.Handler) http.Handler {
	t.Helper()
	spec, err := api.Spec()
	if err != nil {
		t.Fatal(err)
	}
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("the live page")) })
	g, err := New(Options{Spec: spec, Source: api.Source(), Services: services, Page: page})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// proxied puts a service behind an address.
func proxied(t *testing.T, h http.Handler) http.Handler {
	t.Helper()
	srv := httptest.NewServer(h)
	p, err := Proxy(strings.TrimPrefix(srv.URL, "http://"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	return p
}

func ask(h http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestRequestsReachTheServiceOfTheirPath(t *testing.T) {
	t.Parallel()
	g := newGateway(t, map[string]http.Handler{
		"orders": named("orders"), "catalog": proxied(t, named("catalog")), "inventory": named("inventory"), "loyalty": proxied(t, named("loyalty")),
	})
	for _, c := range []struct{ method, path, body, want string }{
		{"POST", "/v1/orders", "{}", "orders POST /v1/orders {}"},
		{"GET", "/v1/orders?limit=1&after=x", "", "orders GET /v1/orders?limit=1&after=x "},
		{"GET", order, "", "orders GET " + order + " "},
		{"DELETE", order, "", "orders DELETE " + order + " "}, // which answers 405 with Allow
		{"POST", order + "/refunds", `{"a":1}`, "orders POST " + order + `/refunds {"a":1}`},
		{"PUT", "/v1/products/A%2FB", "x", "catalog PUT /v1/products/A%2FB x"},
		{"GET", "/v1/stock/CAFE", "", "inventory GET /v1/stock/CAFE "},
		{"GET", "/v1/customers/ana/loyalty", "", "loyalty GET /v1/customers/ana/loyalty "},
		{"GET", "/", "", "the live page"},
		{"GET", "/live.js", "", "the live page"},
	} {
		w := ask(g, c.method, c.path, c.body, "X-Request-Id", "r-1")
		if w.Code != http.StatusOK || w.Body.String() != c.want {
			t.Errorf("%s %s: %d %q", c.method, c.path, w.Code, w.Body)
		}
		if got := w.Header().Values("X-Request-Id"); len(got) != 1 || got[0] != "r-1" {
			t.Errorf("%s %s: request ids %v", c.method, c.path, got)
		}
	}
}

// A router made by web.New behind the gateway routes by itself, keeps the request's name, and says which methods
// a path has.
func TestAServicesOwnRouterInProcess(t *testing.T) {
	t.Parallel()
	r, _ := newRouter(t, "catalog")
	inner := chi.NewRouter() // as the generated server has one
	inner.Get("/v1/products/{sku}", func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(chi.URLParam(r, "sku") + " " + web.RequestID(r.Context())))
	})
	r.Mount("/", inner)
	g := newGateway(t, map[string]http.Handler{"catalog": r})
	if w := ask(g, http.MethodGet, "/v1/products/CAFE", "", "X-Request-Id", "r-1"); w.Body.String() != "CAFE r-1" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	w := ask(g, http.MethodDelete, "/v1/products/CAFE", "")
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, PUT" {
		t.Errorf("%d, Allow %q", w.Code, w.Header().Get("Allow"))
	}
}

func TestWhatNobodyAnswers(t *testing.T) {
	t.Parallel()
	dead, err := Proxy("127.0.0.1:1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := newGateway(t, map[string]http.Handler{"orders": dead})
	for path, want := range map[string]struct {
		status int
		code   string
	}{
		order:             {503, "service_unreachable"},
		"/v1/stock/CAFE":  {503, "service_not_running"},
		"/v1/nothing":     {404, "not_found"},
		"/v1/orders/a/b/": {404, "not_found"},
	} {
		w := ask(g, http.MethodGet, path, "")
		var p web.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if w.Code != want.status || p.Code != want.code || p.RequestID == "" || p.RequestID != w.Header().Get("X-Request-Id") {
			t.Errorf("%s: %d %+v", path, w.Code, p)
		}
		if strings.Contains(w.Body.String(), "127.0.0.1") {
			t.Errorf("%s: the answer shows an address: %s", path, w.Body)
		}
	}
}

func TestDescriptionAndPage(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil)
	if w := ask(g, http.MethodGet, "/openapi.yaml", ""); w.Body.String() != string(api.Source()) {
		t.Error("/openapi.yaml is another description")
	}
	for _, path := range []string{"/docs", "/docs/start.js"} {
		if w := ask(g, http.MethodGet, path, ""); w.Code != http.StatusOK {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

func TestWrongBackendsAreRefusedAtStart(t *testing.T) {
	t.Parallel()
	spec, err := api.Spec()
	if err != nil {
		t.Fatal(err)
	}
	var unknown *UnknownServiceError
	if _, err := New(Options{Spec: spec, Services: map[string]http.Handler{"order": named("x")}}); !errors.As(err, &unknown) {
		t.Errorf("%v", err)
	}
	for _, address := range []string{"", "http://", "://x"} {
		if _, err := Proxy(address, nil, nil); err == nil {
			t.Errorf("%q is an address", address)
		}
	}
}

func TestForwardedHeadersAreOurOwn(t *testing.T) {
	t.Parallel()
	p := proxied(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.Host + " " + strings.Join(r.Header.Values("X-Forwarded-For"), "|")))
	}))
	w := ask(p, http.MethodGet, "http://shop.example/v1/orders", "", "X-Forwarded-For", "6.6.6.6")
	if got := w.Body.String(); got != "shop.example 192.0.2.1" { // httptest's client
		t.Errorf("%s", got)
	}
}

// streaming is a service that sends heartbeats until its client leaves.
func streaming(left chan<- struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(left)
		w.Header().Set("Content-Type", "text/event-stream")
		beat := time.NewTicker(10 * time.Millisecond)
		defer beat.Stop()
		for {
			_, _ = w.Write([]byte(":\n\n"))
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-beat.C:
			}
		}
	})
}

func TestEventStreamsPassThroughAndOutliveDeadlines(t *testing.T) {
	t.Parallel()
	const bound = 50 * time.Millisecond
	left := make(chan struct{})
	front := httptest.NewUnstartedServer(newGateway(t, map[string]http.Handler{"orders": proxied(t, streaming(left))}))
	front.Config.ReadTimeout, front.Config.WriteTimeout = bound, bound
	front.Start()
	defer front.Close()
	resp, err := front.Client().Get(front.URL + order + "/events")
	if err != nil {
		t.Fatal(err)
	}
	lines, begin := bufio.NewScanner(resp.Body), time.Now()
	for time.Since(begin) < 5*bound {
		if !lines.Scan() {
			t.Fatalf("the stream ended after %v: %v", time.Since(begin), lines.Err())
		}
	}
	_ = resp.Body.Close()
	<-left // the service sees that the client is gone
}

func TestDrainingEndsEventStreams(t *testing.T) {
	t.Parallel()
	left := make(chan struct{})
	g := newGateway(t, map[string]http.Handler{"orders": proxied(t, streaming(left))})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	var log bytes.Buffer // has a line only when somebody had to be cut off
	go func() { ended <- web.ServeListener(ctx, l, g, slog.New(slog.NewTextHandler(&log, nil))) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + l.Addr().String() + order + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := resp.Body.Read(make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	stop()
	<-left
	_, _ = io.Copy(io.Discard, resp.Body)
	if err := <-ended; err != nil || log.Len() > 0 {
		t.Errorf("%v, %s", err, log.String())
	}
}
