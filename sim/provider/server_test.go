package provider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/feira-shop/feira/shared/pg/pgtest"
)

func TestApprovedCaptureAndRefunds(t *testing.T) {
	t.Parallel()
	c, db := start(t, nil)
	a := c.post(t, "/v1/authorizations", "a", authorization("tok_mastercard_ana1", "1999")).want(t, 201, "authorized")
	if a.fields.Card.Brand != "mastercard" || a.fields.Amount != 1999 {
		t.Errorf("answer %s", a.body)
	}
	path := "/v1/authorizations/" + a.fields.ID
	c.post(t, path+"/refunds", "r0", `{"amount":1}`).want(t, 402, "not_captured")
	c.post(t, path+"/capture", "c0", `{"amount":2000}`).want(t, 402, "amount_exceeds_authorized")
	c.post(t, path+"/capture", "c1", `{"amount":1999}`).want(t, 200, "captured")
	c.post(t, path+"/capture", "c2", `{"amount":1999}`).want(t, 402, "captured")
	c.post(t, path+"/void", "v1", "").want(t, 409, "captured")
	c.post(t, "/v1/voids", "v2", `{"authorization_key":"a"}`).want(t, 409, "captured")
	one := c.post(t, path+"/refunds", "r1", `{"amount":999}`).want(t, 201, "refunded")
	again := c.post(t, path+"/refunds", "r1", `{"amount": 999}`).want(t, 201, "refunded")
	if one.body != again.body || one.replayed || !again.replayed {
		t.Errorf("first %s (replayed %t), repeat %s (replayed %t)", one.body, one.replayed, again.body, again.replayed)
	}
	c.post(t, path+"/refunds", "r2", `{"amount":1001}`).want(t, 402, "amount_exceeds_captured")
	last := c.post(t, path+"/refunds", "r3", `{"amount":1000}`).want(t, 201, "refunded")
	if last.fields.RefundedSoFar != 1999 {
		t.Errorf("refunded so far: %s", last.body)
	}
	consistent(t, db)
	err := Ledger(t.Context(), db.Pool, func(a Authorization) error {
		if a.Key != "a" || a.Reference != "order-1" || a.Status != Captured || a.Captured != 1999 || a.Refunded != 1999 || a.Currency != "BRL" {
			return fmt.Errorf("the ledger has %+v", a)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestDeclinesAndFailures(t *testing.T) {
	t.Parallel()
	c, db := start(t, nil)
	for token, code := range map[string]string{"tok_declined_x": "card_declined", "tok_insufficient_funds_x": "insufficient_funds", "tok_expired_x": "expired_card"} {
		a := c.post(t, "/v1/authorizations", token, authorization(token, "5")).want(t, 201, "declined")
		if a.fields.DeclineCode != code {
			t.Errorf("%s: %s", token, a.body)
		}
		c.post(t, "/v1/authorizations/"+a.fields.ID+"/capture", token+"c", `{"amount":5}`).want(t, 402, "declined")
		c.post(t, "/v1/authorizations/"+a.fields.ID+"/void", token+"v", "").want(t, 200, "declined")
	}
	a := c.post(t, "/v1/authorizations", "cf", authorization("tok_capture_fails_x", "5")).want(t, 201, "authorized")
	refused := c.post(t, "/v1/authorizations/"+a.fields.ID+"/capture", "cf1", `{"amount":5}`).want(t, 402, "capture_declined")
	if again := c.post(t, "/v1/authorizations/"+a.fields.ID+"/capture", "cf1", `{"amount":5}`); again.body != refused.body || !again.replayed {
		t.Errorf("a refusal is an answer and must be remembered: %s", again.body)
	}
	c.post(t, "/v1/authorizations/"+a.fields.ID+"/void", "cf2", "").want(t, 200, "voided")
	a = c.post(t, "/v1/authorizations", "rf", authorization("tok_refund_fails_x", "5")).want(t, 201, "authorized")
	c.post(t, "/v1/authorizations/"+a.fields.ID+"/capture", "rf1", `{"amount":5}`).want(t, 200, "captured")
	c.post(t, "/v1/authorizations/"+a.fields.ID+"/refunds", "rf2", `{"amount":5}`).want(t, 402, "refund_declined")
	a = c.post(t, "/v1/authorizations", "d", authorization("tok_dispute_x", "5")).want(t, 201, "authorized")
	if got := c.post(t, "/v1/authorizations/"+a.fields.ID+"/capture", "d1", `{"amount":5}`).want(t, 200, "captured"); !got.fields.Disputed {
		t.Errorf("no inquiry was recorded: %s", got.body)
	}
	consistent(t, db)
}

func TestProcessingErrorTwiceThenApproved(t *testing.T) {
	t.Parallel()
	c, db := start(t, nil)
	body := authorization("tok_processing_error_x", "5")
	for range 2 {
		c.post(t, "/v1/authorizations", "k", body).want(t, 500, "processing_error")
	}
	c.post(t, "/v1/authorizations", "k", authorization("tok_processing_error_x", "6")).want(t, 422, "idempotency_key_reused")
	c.post(t, "/v1/authorizations", "k", body).want(t, 201, "authorized")
	if again := c.post(t, "/v1/authorizations", "k", body).want(t, 201, "authorized"); !again.replayed {
		t.Error("the fourth answer must be the third")
	}
	c.post(t, "/v1/authorizations", "other", body).want(t, 500, "processing_error") // counted per key
	consistent(t, db)
}

func TestTimeoutAfterChargeIsAnsweredOnTheRetry(t *testing.T) {
	t.Parallel()
	c, db := start(t, nil) // the answer takes a minute, the client waits half a second
	hurried := client{c.base, &http.Client{Timeout: 500 * time.Millisecond}}
	body := authorization("tok_timeout_after_charge_x", "5")
	if _, err := hurried.send(http.MethodPost, "/v1/authorizations", "k", body); err == nil {
		t.Fatal("the first answer came in time")
	}
	// The charge may still be on its way into the ledger, the repeat waits for it.
	first := c.post(t, "/v1/authorizations", "k", body).want(t, 201, "authorized")
	if !first.replayed || count(t, db, "select count(*) from entries") != 1 {
		t.Errorf("the retry charged again: %s", first.body)
	}
	looked := c.get(t, "/v1/requests/k").want(t, 200, "authorized")
	if looked.body != first.body {
		t.Errorf("looked up %s, answered %s", looked.body, first.body)
	}
}

func TestVoids(t *testing.T) {
	t.Parallel()
	c, db := start(t, nil)
	none := c.post(t, "/v1/voids", "v1", `{"authorization_key":"late"}`).want(t, 200, "voided")
	if !strings.Contains(none.body, `"authorization":null`) {
		t.Errorf("nothing was there to void: %s", none.body)
	}
	c.post(t, "/v1/authorizations", "late", authorization("tok_visa_x", "5")).want(t, 409, "voided")
	c.post(t, "/v1/authorizations", "early", authorization("tok_visa_x", "5")).want(t, 201, "authorized")
	some := c.post(t, "/v1/voids", "v2", `{"authorization_key":"early"}`).want(t, 200, "voided")
	if !strings.Contains(some.body, `"fingerprint":"card_`) || !strings.Contains(some.body, `"authorization":{`) {
		t.Errorf("the voided authorisation is missing: %s", some.body)
	}
	c.post(t, "/v1/voids", "v3", `{"authorization_key":"early"}`).want(t, 200, "voided")
	c.post(t, "/v1/authorizations", "early", authorization("tok_visa_x", "5")).want(t, 201, "authorized") // as it was answered
	c.post(t, "/v1/voids", "v4", `{"authorization_key":"v4"}`).want(t, 422, "same_key")

	// An authorisation that failed so far can be voided too, and then never succeeds.
	c.post(t, "/v1/authorizations", "failing", authorization("tok_processing_error_x", "5")).want(t, 500, "processing_error")
	c.post(t, "/v1/voids", "v5", `{"authorization_key":"failing"}`).want(t, 200, "voided")
	for range 3 {
		c.post(t, "/v1/authorizations", "failing", authorization("tok_processing_error_x", "5")).want(t, 409, "voided")
	}
	if held := count(t, db, "select count(*) from authorizations where status = 'authorized'"); held != 0 {
		t.Errorf("%d authorisations still hold money", held)
	}
	consistent(t, db)
}

func TestBadRequestsAreRefusedAndForgotten(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	c, db := start(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	for _, tc := range []struct {
		body   string
		status int
		code   string
	}{
		{`{`, 400, "invalid_json"},
		{authorization("tok_visa_x", "5") + "{}", 400, "invalid_json"},
		{authorization("tok_visa_x", `"5"`), 400, "invalid_json"},
		{authorization("tok_visa_x", "1.5"), 400, "invalid_json"},
		{`{"amount":5,"cvc":"1"}`, 400, "invalid_json"},
		{authorization("tok_visa_x", "0"), 422, "invalid_amount"},
		{authorization("tok_visa_x", "1000000000000"), 422, "invalid_amount"},
		{`{"amount":5,"currency":"XXZ","token":"tok_visa","reference":"r"}`, 422, "invalid_currency"},
		{`{"amount":5,"currency":"BRL","token":"tok_visa","reference":"a\u0000"}`, 422, "invalid_text"},
		{`{"amount":5,"currency":"BRL","token":"tok_visa","reference":"4242424242424242"}`, 422, "card_number"},
		{authorization("4242424242424242", "5"), 422, "card_number"},
		{authorization("tok_visa_4242424242424242", "5"), 422, "card_number"},
		{authorization("tok_nothing", "5"), 422, "invalid_token"},
		{authorization("tok_3ds_fails_x", "5"), 422, "not_supported"},
		{authorization("tok_webhook_late_x", "5"), 422, "not_supported"},
		{`"` + strings.Repeat("x", maxBody) + `"`, 413, "body_too_large"},
	} {
		got := c.post(t, "/v1/authorizations", "k", tc.body).want(t, tc.status, tc.code)
		if strings.Contains(got.body, "42424242") {
			t.Errorf("a card number in the answer: %s", got.body)
		}
	}
	c.post(t, "/v1/authorizations", "", authorization("tok_visa", "5")).want(t, 400, "missing_idempotency_key")
	c.post(t, "/v1/authorizations", strings.Repeat("k", 256), authorization("tok_visa", "5")).want(t, 400, "invalid_idempotency_key")
	c.post(t, "/v1/authorizations/nobody/capture", "k", `{"amount":5}`).want(t, 404, "not_found")
	c.get(t, "/v1/requests/k").want(t, 404, "not_found")
	c.get(t, "/v2").want(t, 404, "not_found")
	if n := count(t, db, "select count(*) from requests"); n != 0 {
		t.Errorf("%d refused requests were remembered", n)
	}
	c.post(t, "/v1/authorizations", `"k"`, authorization("tok_visa", "5")).want(t, 201, "authorized") // quoted is the same key
	c.post(t, "/v1/authorizations", "k", authorization("tok_visa", "6")).want(t, 422, "idempotency_key_reused")
	if strings.Contains(log.String(), "4242") || strings.Contains(log.String(), "tok_") {
		t.Errorf("the log has a token or card number:\n%s", log.String())
	}
}

func TestOnlyTheKeyLetsIn(t *testing.T) {
	t.Parallel()
	c, db := start(t, nil)
	for _, header := range []string{"", "Bearer ", "Bearer wrong", testKey, "Basic " + testKey} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.base+"/v1/requests/k", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", header)
		res, err := c.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%q got %d", header, res.StatusCode)
		}
	}
	if err := New(Options{Pool: db.Pool}).Ready(t.Context()); err == nil {
		t.Error("a provider without a key called itself ready")
	}
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	metrics := prometheus.NewPedanticRegistry()
	c, _ := start(t, func(o *Options) { o.Metrics = metrics })
	for _, path := range []string{"/livez", "/readyz"} {
		if got := c.get(t, path); got.status != 200 {
			t.Errorf("%s: %d", path, got.status)
		}
	}
	c.post(t, "/v1/authorizations", "k", authorization("tok_visa", "5"))
	families, err := metrics.Gather()
	if err != nil || len(families) != 2 {
		t.Errorf("%d metrics, %v", len(families), err)
	}
	empty := pgtest.New(t)
	if err := New(Options{Pool: empty.Pool, Key: testKey}).Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "migrated") {
		t.Errorf("a database without tables: %v", err)
	}
}

func TestADatabaseThatIsAwayIsSaidSo(t *testing.T) {
	t.Parallel()
	c, db := start(t, nil)
	c.post(t, "/v1/authorizations", "k", authorization("tok_visa", "5")).want(t, 201, "authorized")
	db.Pool.Close()
	c.post(t, "/v1/authorizations", "k", authorization("tok_visa", "5")).want(t, 503, "unavailable")
	c.get(t, "/v1/requests/k").want(t, 503, "unavailable")
	if got := c.get(t, "/readyz"); got.status != 503 {
		t.Errorf("ready without a database: %d", got.status)
	}
}

func TestCloseLetsDelayedAnswersGo(t *testing.T) {
	t.Parallel()
	s := New(Options{Delay: time.Hour})
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.delay(context.WithoutCancel(t.Context()))
	}()
	s.Close()
	s.Close()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal(errors.New("the answer is still being delayed"))
	}
}

// A key is looked up as it was sent, whatever it holds.
func TestKeysWithPercentSignsAreLookedUp(t *testing.T) {
	t.Parallel()
	c, _ := start(t, nil)
	for i, key := range []string{"a%41", "100%", "a/b%2F"} {
		c.post(t, "/v1/authorizations", key, authorization("tok_visa_"+strconv.Itoa(i), "100")).want(t, 201, "authorized")
		c.get(t, "/v1/requests/"+url.PathEscape(key)).want(t, 200, "authorized")
	}
}
