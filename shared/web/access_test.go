package web

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/feira-shop/feira/shared/auth"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	b := newBed(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _ := auth.FromContext(r.Context())
		_, _ = w.Write([]byte(c.Subject))
	}), nil)
	if w := b.call(http.MethodGet, order, ""); w.Code != http.StatusOK || w.Body.String() != "ana" {
		t.Errorf("good token: %d %s", w.Code, w.Body)
	}
	expired, err := b.key.Sign("ana", []auth.Role{auth.Customer}, -time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ header, code, challenge string }{
		"none":    {"Authorization: ", "unauthenticated", `Bearer realm="feira"`},
		"basic":   {"Authorization: Basic YTpi", "unauthenticated", `Bearer realm="feira"`},
		"expired": {"Authorization: Bearer " + expired, "invalid_token", `Bearer realm="feira", error="invalid_token", error_description="expired"`},
		"nonsense": {"Authorization: Bearer x.y.z", "invalid_token",
			`Bearer realm="feira", error="invalid_token", error_description="malformed"`},
	} {
		w := b.call(http.MethodGet, order, "", c.header)
		p := problem(t, w, http.StatusUnauthorized)
		if p.Code != c.code || w.Header().Get("WWW-Authenticate") != c.challenge {
			t.Errorf("%s: %+v, %s", name, p, w.Header().Get("WWW-Authenticate"))
		}
	}
}

func TestRolesComeFromTheDescription(t *testing.T) {
	t.Parallel()
	b := newBed(t, echo, nil)
	operator := "Authorization: Bearer " + b.tokens[auth.Operator]
	nobody, err := b.key.Sign("ana", nil, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	const receipts, body = "/v1/stock/CAFE-500/receipts", `{"quantity":1}`
	problem(t, b.call(http.MethodPost, receipts, body), http.StatusForbidden)
	problem(t, b.call(http.MethodGet, order, "", "Authorization: Bearer "+nobody), http.StatusForbidden)
	if w := b.call(http.MethodPost, receipts, body, operator); w.Code != http.StatusOK {
		t.Errorf("operator: %d %s", w.Code, w.Body)
	}
	// Open to anyone, but a bad token is pointed out.
	if w := b.call(http.MethodGet, "/v1/products", "", "Authorization: "); w.Code != http.StatusOK {
		t.Errorf("open: %d %s", w.Code, w.Body)
	}
	problem(t, b.call(http.MethodGet, "/v1/products", "", "Authorization: Bearer x"), http.StatusUnauthorized)
}

// A body is not read before its sender is known.
func TestRefusalsComeBeforeTheBody(t *testing.T) {
	t.Parallel()
	b := newBed(t, never(t), nil)
	r := httptest.NewRequest(http.MethodPost, "/v1/orders", unreadable{t})
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	problem(t, w, http.StatusUnauthorized)
}

type unreadable struct{ t *testing.T }

func (u unreadable) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, errors.New("unreadable")
}

func TestUnknownPathsAndMethods(t *testing.T) {
	t.Parallel()
	b := newBed(t, never(t), nil)
	for _, path := range []string{"/", "/v1", "/v1/order", "/v1/orders/", "//v1/orders", "/v1/orders/a/b", "/openapi.yaml"} {
		problem(t, b.call(http.MethodGet, path, ""), http.StatusNotFound)
	}
	w := b.call(http.MethodDelete, "/v1/orders", "")
	if problem(t, w, http.StatusMethodNotAllowed); w.Header().Get("Allow") != "GET, POST" {
		t.Errorf("Allow: %s", w.Header().Get("Allow"))
	}
	problem(t, b.call("BREW", "/v1/orders", ""), http.StatusMethodNotAllowed)
}

func TestRateLimitIsPerCustomer(t *testing.T) {
	t.Parallel()
	b := newBed(t, echo, func(o *Options) { o.Rate = RateLimit{Requests: 3, Window: time.Hour} })
	other, err := b.key.Sign("bia", []auth.Role{auth.Customer}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if w := b.call(http.MethodGet, order, ""); w.Code != http.StatusOK {
			t.Fatalf("request %d: %d", i, w.Code)
		}
	}
	w := b.call(http.MethodGet, order, "")
	if p := problem(t, w, http.StatusTooManyRequests); p.Code != "too_many_requests" || w.Header().Get("Retry-After") != "3600" {
		t.Errorf("%+v, Retry-After %s", p, w.Header().Get("Retry-After"))
	}
	if w := b.call(http.MethodGet, order, "", "Authorization: Bearer "+other); w.Code != http.StatusOK {
		t.Errorf("another customer is limited too: %d", w.Code)
	}
}

func TestAddressOfTheCaller(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "10.0.0.1:1234"
	r.Header.Add("X-Forwarded-For", "6.6.6.6, 7.7.7.7")
	direct, proxied := &layers{}, &layers{Options: Options{Proxied: true}}
	if got := direct.caller(r); got != "ip:10.0.0.1" {
		t.Errorf("a client chose its own address: %s", got)
	}
	if got := proxied.caller(r); got != "ip:7.7.7.7" {
		t.Errorf("behind the gateway: %s", got)
	}
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	fail := Failures(nil)
	b := newBed(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		fail(w, r, r.Context().Err())
	}), func(o *Options) { o.Timeout = time.Millisecond })
	if p := problem(t, b.call(http.MethodGet, order, ""), http.StatusServiceUnavailable); p.Code != "timeout" {
		t.Errorf("%+v", p)
	}
}

func TestEventStreamsHaveNoDeadline(t *testing.T) {
	t.Parallel()
	b := newBed(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ends := r.Context().Deadline(); ends == WantsEvents(r.Context()) {
			t.Errorf("%s: deadline %v", r.Header.Get("Accept"), ends)
		}
	}), nil)
	for accept, streams := range map[string]bool{
		"text/event-stream": true, "text/event-stream;q=0.9, application/json": true,
		"application/json": false, "*/*": false, "application/json, text/event-stream": false,
	} {
		_ = streams
		b.call(http.MethodGet, order+"/events", "", "Accept: "+accept)
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept", accept)
		if prefersEvents(r) != streams {
			t.Errorf("%s: %v", accept, !streams)
		}
	}
}

func TestCORS(t *testing.T) {
	t.Parallel()
	preflight := []string{"Origin: https://shop.example", "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization,idempotency-key", "Authorization: "}
	closed := newBed(t, echo, nil)
	if w := closed.call(http.MethodOptions, "/v1/orders", "", preflight...); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("without origins: %d", w.Code)
	}
	b := newBed(t, echo, func(o *Options) { o.Origins = []string{"https://shop.example"} })
	w := b.call(http.MethodOptions, "/v1/orders", "", preflight...)
	if w.Code != http.StatusOK || w.Header().Get("Access-Control-Allow-Origin") != "https://shop.example" {
		t.Errorf("preflight: %d %v", w.Code, w.Header())
	}
	w = b.call(http.MethodGet, order, "", "Origin: https://evil.example")
	if w.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("another origin: %v", w.Header())
	}
}

func TestWrongOptionsAndDescriptionsAreRefusedAtStart(t *testing.T) {
	t.Parallel()
	key, err := auth.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := auth.StaticVerifier(key.JWKS(), auth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	spec := func(operation string) *openapi3.T {
		s, err := openapi3.NewLoader().LoadFromData([]byte(`{"openapi":"3.0.3","info":{"title":"t","version":"1"},"paths":{"/a":{"get":` + operation + `}}}`))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(context.Background()); err != nil {
			t.Fatal(err)
		}
		return s
	}
	const ok = `"responses":{"200":{"description":"ok"}}`
	for name, o := range map[string]Options{
		"no spec":                  {},
		"rate without window":      {Spec: spec(`{"security":[],` + ok + `}`), Rate: RateLimit{Requests: 1}},
		"closed, nobody may":       {Spec: spec(`{"security":[{}],` + ok + `}`), Auth: verifier},
		"open, but roles":          {Spec: spec(`{"security":[],"x-roles":["operator"],` + ok + `}`), Auth: verifier},
		"roles are text":           {Spec: spec(`{"security":[{}],"x-roles":"operator",` + ok + `}`), Auth: verifier},
		"closed, nothing verifies": {Spec: spec(`{"security":[{}],"x-roles":["operator"],` + ok + `}`)},
		"body is a form":           {Spec: spec(`{"security":[],"requestBody":{"content":{"text/plain":{"schema":{"type":"string"}}}},` + ok + `}`)},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: accepted", name)
		} else if !strings.HasPrefix(err.Error(), "web: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
