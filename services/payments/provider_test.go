package payments

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestAnswersBecomeCommands: what each answer of the provider means, and which are none.
func TestAnswersBecomeCommands(t *testing.T) {
	t.Parallel()
	authorize := func(p *Provider) (any, error) {
		return p.Authorize(t.Context(), AuthorizeJob{Payment: "p1", Amount: brl(5500), Token: "tok_visa", Key: "k"})
	}
	capture := func(p *Provider) (any, error) {
		return p.Capture(t.Context(), CaptureJob{Authorization: "a/1", Amount: brl(5500), Key: "k"})
	}
	void := func(p *Provider) (any, error) {
		return p.Void(t.Context(), VoidJob{AuthorizationKey: "k", Key: "v"})
	}
	refund := func(p *Provider) (any, error) {
		return p.Refund(t.Context(), RefundJob{Authorization: "a/1", Amount: brl(100), Key: "k"})
	}
	const card = `"card":{"fingerprint":"card-1","brand":"visa","last_four":"4242"}`
	for name, c := range map[string]answer{
		"authorized":         {authorize, 201, `{"id":"a1","status":"authorized","amount":5500,` + card + `}`, Authorized{Authorization: "a1", Card: visa}},
		"another amount":     {authorize, 201, `{"id":"a1","status":"authorized","amount":5501,` + card + `}`, nil},
		"declined":           {authorize, 201, `{"status":"declined","decline_code":"expired",` + card + `}`, Declined{Code: "expired", Card: visa}},
		"bad token":          {authorize, 422, `{"code":"unknown_token"}`, Declined{Code: "unknown_token"}},
		"key reused":         {authorize, 422, `{"code":"idempotency_key_reused"}`, nil},
		"voided before":      {authorize, 409, `{"code":"voided"}`, Blocked{}},
		"conflict":           {authorize, 409, `{"code":"other"}`, nil},
		"unauthorized":       {authorize, 401, `{"code":"unauthorized"}`, nil},
		"failure":            {authorize, 500, `{"code":"processing_error"}`, nil},
		"a proxy's page":     {authorize, 502, `<html>`, nil},
		"redirect":           {authorize, 302, ``, nil},
		"no JSON":            {authorize, 201, `ok`, nil},
		"unknown status":     {authorize, 201, `{"status":"pending"}`, nil},
		"captured":           {capture, 200, `{"status":"captured"}`, Captured{}},
		"capture refused":    {capture, 402, `{"code":"capture_declined"}`, CaptureRefused{Code: "capture_declined"}},
		"captured before":    {capture, 402, `{"code":"captured"}`, Captured{}},
		"captured meanwhile": {capture, 409, `{"code":"captured"}`, Captured{}},
		"capture of voided":  {capture, 409, `{"code":"voided"}`, CaptureRefused{Code: "voided"}},
		"capture in doubt":   {capture, 409, `{"code":"request_in_progress"}`, nil},
		"capture conflict":   {capture, 409, `<html>`, nil},
		"capture of nothing": {capture, 404, `{"code":"not_found"}`, nil},
		"voided":             {void, 200, `{"status":"voided","authorization":{"id":"a1",` + card + `}}`, Voided{Card: visa}},
		"nothing to void":    {void, 200, `{"status":"voided","authorization":null}`, Voided{}},
		"void of captured":   {void, 409, `{"code":"captured"}`, nil},
		"refunded":           {refund, 201, `{"status":"refunded"}`, Refunded{Key: "k"}},
		"refund refused":     {refund, 402, `{"code":"refund_declined"}`, RefundRefused{Key: "k", Code: "refund_declined"}},
		"refund invalid":     {refund, 422, `{"code":"invalid"}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.check(t)
		})
	}
}

// answer is one of the provider's, and the command that it becomes.
type answer struct {
	ask    func(*Provider) (any, error)
	status int
	body   string
	want   any // nil: no outcome
}

func (c answer) check(t *testing.T) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.Header.Get("Authorization") != "Bearer secret" || r.Header.Get("Idempotency-Key") == "" {
			t.Errorf("sent %s with %v", r.Method, r.Header)
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(c.status)
		_, _ = w.Write([]byte(c.body))
	}))
	defer server.Close()
	cmd, err := c.ask(clientOf(t, server.URL, time.Minute))
	if (err != nil) != (c.want == nil) || cmd != c.want {
		t.Fatalf("got %#v, %v", cmd, err)
	}
	var refusal *ProviderError
	if errors.As(err, &refusal) && answered(err) != (c.status < 500) {
		t.Errorf("answered is %v for status %d", answered(err), c.status)
	}
	if err != nil && strings.Contains(err.Error(), "tok_visa") {
		t.Errorf("the error shows the token: %v", err)
	}
}

func clientOf(t *testing.T, url string, timeout time.Duration) *Provider {
	t.Helper()
	p := NewProvider(url, "secret", timeout)
	t.Cleanup(p.http.CloseIdleConnections)
	return p
}

// TestRequestsSayWhatIsAsked checks the bodies and paths that a provider sees.
func TestRequestsSayWhatIsAsked(t *testing.T) {
	t.Parallel()
	seen := map[string]map[string]any{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		seen[r.URL.EscapedPath()+" "+r.Header.Get("Idempotency-Key")] = body
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	p := clientOf(t, server.URL+"/", time.Minute)
	_, _ = p.Authorize(t.Context(), AuthorizeJob{Payment: "p1", Amount: brl(5500), Token: "tok_visa", Key: "k1"})
	_, _ = p.Capture(t.Context(), CaptureJob{Authorization: "a/1", Amount: brl(5500), Key: "k2"})
	_, _ = p.Void(t.Context(), VoidJob{AuthorizationKey: "k1", Key: "k3"})
	_, _ = p.Refund(t.Context(), RefundJob{Authorization: "a/1", Amount: brl(100), Key: "k4"})
	got, err := json.Marshal(seen)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"/v1/authorizations k1":{"amount":5500,"currency":"BRL","reference":"p1","token":"tok_visa"},` +
		`"/v1/authorizations/a%2F1/capture k2":{"amount":5500},"/v1/authorizations/a%2F1/refunds k4":{"amount":100},` +
		`"/v1/voids k3":{"authorization_key":"k1"}}`
	if string(got) != want {
		t.Errorf("asked\n%s, expected\n%s", got, want)
	}
}

func TestASilentProviderIsNotWaitedForLong(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the client is gone
		<-r.Context().Done()
	}))
	defer server.Close()
	_, err := clientOf(t, server.URL, 50*time.Millisecond).Void(context.Background(), VoidJob{Key: "k"})
	if err == nil || answered(err) {
		t.Errorf("got %v, which must count against the provider", err)
	}
}

func TestConfigNamesAllThatIsWrong(t *testing.T) {
	t.Parallel()
	if err := (Config{ProviderURL: "http://127.0.0.1:1", ProviderKey: "k"}).Validate(); err != nil {
		t.Error(err)
	}
	err := Config{ProviderURL: "127.0.0.1:1", Timeout: -1}.Validate()
	for _, part := range []string{"address", "key", "timeout"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not named in %v", part, err)
		}
	}
}
