package web

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/feira-shop/feira/shared/auth"
)

func TestGoodRequestsReachTheHandlerUnchanged(t *testing.T) {
	t.Parallel()
	b := newBed(t, echo, nil)
	for name, body := range map[string]string{
		"checkout":          checkout(),
		"pix":               checkout(`"card","token":"tok_visa_ana1"`, `"pix"`),
		"emoji":             checkout("Ana Souza", "Ana 🛒 Souza"),
		"right to left":     checkout("Ana Souza", "\u202eAna\u200f"),
		"surrogate pair":    checkout("Ana Souza", `Ana \ud83d\uDED2`),
		"escaped backslash": checkout("Ana Souza", `Ana \\ud83d`),
		"200 lines":         checkout(`{"sku":"CAFE-500","quantity":2}`, strings.Repeat(`{"sku":"A","quantity":1},`, 199)+`{"sku":"A","quantity":10000}`),
	} {
		if w := b.call(http.MethodPost, "/v1/orders", body); w.Code != http.StatusOK || w.Body.String() != body {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

func TestBadCheckoutsAreRefusedByName(t *testing.T) {
	t.Parallel()
	b := newBed(t, never(t), nil)
	quantity := func(v string) string { return checkout(`"quantity":2`, `"quantity":`+v) }
	const q = "lines.0.quantity"
	for _, c := range []struct{ name, body, param, code string }{
		{"quantity -1", quantity("-1"), q, "invalid_request"},
		{"quantity 0", quantity("0"), q, "invalid_request"},
		{"quantity 1.5", quantity("1.5"), q, "invalid_request"},
		{"quantity text", quantity(`"2"`), q, "invalid_request"},
		{"quantity null", quantity("null"), q, "invalid_request"},
		{"quantity 10^18", quantity("1000000000000000000"), q, "invalid_request"},
		{"quantity 1e400", quantity("1e400"), q, "invalid_request"},
		{"quantity 10001", quantity("10001"), q, "invalid_request"},
		{"quantity missing", checkout(`,"quantity":2`, ""), q, "missing_field"},
		{"quantity twice", quantity(`2,"quantity":3`), q, "duplicate_field"},
		{"sku empty", checkout("CAFE-500", ""), "lines.0.sku", "invalid_request"},
		{"sku with a path", checkout("CAFE-500", "../etc"), "lines.0.sku", "invalid_request"},
		{"sku long", checkout("CAFE-500", strings.Repeat("A", 65)), "lines.0.sku", "invalid_request"},
		{"lines empty", checkout(`{"sku":"CAFE-500","quantity":2}`, ""), "lines", "invalid_request"},
		{"lines null", checkout(`[{"sku":"CAFE-500","quantity":2}]`, "null"), "lines", "invalid_request"},
		{"lines missing", checkout(`"lines":[{"sku":"CAFE-500","quantity":2}],`, ""), "lines", "missing_field"},
		{"10,000 lines", checkout(`{"sku":"CAFE-500","quantity":2}`, strings.Repeat(`{"sku":"A","quantity":1},`, 9999)+`{"sku":"A","quantity":1}`), "lines", "invalid_request"},
		{"price in the line", checkout(`"quantity":2`, `"quantity":2,"price":1`), "lines.0.price", "unknown_field"},
		{"price in the body", checkout(`"email"`, `"total":1,"email"`), "total", "unknown_field"},
		{"field in another case", checkout(`"email"`, `"Email":"x","email"`), "Email", "unknown_field"},
		{"long unknown field", checkout(`"email"`, `"`+strings.Repeat("é", 1000)+`":1,"email"`), strings.Repeat("é", 32) + "…", "unknown_field"},
		{"object twice", checkout(`"email"`, `"shipping_address":{},"email"`), "shipping_address", "duplicate_field"},
		{"method unknown", checkout(`"card"`, `"cash"`), "payment.method", "invalid_request"},
		{"token with a control character", checkout("tok_visa_ana1", `tok_\u0007`), "payment.token", "invalid_request"},
		{"e-mail", checkout("ana@example.com", "ana"), "email", "invalid_request"},
		{"e-mail with a line end", checkout("ana@example.com", `ana@example.com\nBcc: x@y`), "email", "invalid_request"},
		{"NUL", checkout("Ana Souza", `Ana\u0000Souza`), "shipping_address.name", "invalid_request"},
		{"raw NUL", checkout("Ana Souza", "Ana\x00Souza"), "", "invalid_json"},
		{"1 MB name", checkout("Ana Souza", strings.Repeat("a", 1000000)), "shipping_address.name", "invalid_request"},
		{"not UTF-8", checkout("Ana Souza", "Ana \xff"), "", "invalid_json"},
		{"half a surrogate", checkout("Ana Souza", `Ana \ud83d`), "", "invalid_json"},
		{"low surrogate alone", checkout("Ana Souza", `Ana \\\udc00x`), "", "invalid_json"},
		{"coupon with NUL", checkout(`"email"`, `"coupon":"\u0000","email"`), "coupon", "invalid_request"},
		{"instalments 0", checkout(`"email"`, `"instalments":0,"email"`), "instalments", "invalid_request"},
		{"broken JSON", `{"lines":`, "", "invalid_json"},
		{"two values", checkout() + checkout(), "", "invalid_json"},
		{"trailing comma", checkout(`"ana@example.com"}`, `"ana@example.com",}`), "", "invalid_json"},
		{"null", "null", "", "invalid_request"},
		{"list", "[]", "", "invalid_request"},
		{"text", `"x"`, "", "invalid_request"},
		{"empty object", "{}", "lines", "missing_field"},
		{"no body", "", "", "missing_body"},
		{"blank body", " \n", "", "missing_body"},
		{"nested without end", strings.Repeat("[", 100000), strings.TrimSuffix(strings.Repeat("0.", 32), ".")[:63] + "…", "invalid_request"},
	} {
		w := b.call(http.MethodPost, "/v1/orders", c.body)
		if p := problem(t, w, http.StatusBadRequest); p.Code != c.code || strings.TrimSuffix(p.Param, "…") != strings.TrimSuffix(c.param, "…") {
			t.Errorf("%s: code %q, param %q, detail %q", c.name, p.Code, p.Param, p.Detail)
		} else if w.Body.Len() > 600 || strings.Contains(p.Detail, "4111") {
			t.Errorf("%s: the answer repeats the input: %s", c.name, w.Body)
		}
	}
}

func TestTooLargeAndOtherBodies(t *testing.T) {
	t.Parallel()
	b := newBed(t, never(t), nil)
	large := checkout("Ana Souza", strings.Repeat("a", DefaultMaxBody))
	if p := problem(t, b.call(http.MethodPost, "/v1/orders", large), http.StatusRequestEntityTooLarge); p.Code != "too_large" {
		t.Errorf("%+v", p)
	}
	// Declared too large, it is not even read; without a length, it is read up to the limit.
	for name, body := range map[string]io.Reader{"declared": unreadable{t}, "chunked": strings.NewReader(large)} {
		r := httptest.NewRequest(http.MethodPost, "/v1/orders", body)
		r.ContentLength = map[string]int64{"declared": DefaultMaxBody + 1, "chunked": -1}[name]
		r.Header.Set("Authorization", "Bearer "+b.tokens[auth.Customer])
		r.Header.Set("Idempotency-Key", "k1")
		w := httptest.NewRecorder()
		b.handler.ServeHTTP(w, r)
		problem(t, w, http.StatusRequestEntityTooLarge)
	}
	for _, ct := range []string{"Content-Type: ", "Content-Type: text/plain", "Content-Type: application/x-www-form-urlencoded", "Content-Type: ;"} {
		if p := problem(t, b.call(http.MethodPost, "/v1/orders", checkout(), ct), http.StatusUnsupportedMediaType); p.Param != "Content-Type" {
			t.Errorf("%s: %+v", ct, p)
		}
	}
	if p := problem(t, b.call(http.MethodPost, order+"/release", `{"force":true}`), http.StatusBadRequest); p.Detail == "" {
		t.Errorf("%+v", p)
	}
}

func TestOptionalBodies(t *testing.T) {
	t.Parallel()
	b := newBed(t, echo, nil)
	for path, bodies := range map[string][]string{
		order + "/release":      {"", "{}"},
		order + "/cancellation": {"", "{}", `{"reason":"changed my mind"}`},
	} {
		for _, body := range bodies {
			if w := b.call(http.MethodPost, path, body); w.Code != http.StatusOK {
				t.Errorf("%s %q: %d %s", path, body, w.Code, w.Body)
			}
		}
	}
}

func TestParameters(t *testing.T) {
	t.Parallel()
	b := newBed(t, never(t), nil)
	for _, c := range []struct{ method, path, header, param, code string }{
		{"POST", "/v1/orders", "Idempotency-Key: ", "Idempotency-Key", "missing_parameter"},
		{"POST", "/v1/orders", "Idempotency-Key: é", "Idempotency-Key", "invalid_request"},
		{"POST", "/v1/orders", "Idempotency-Key: " + strings.Repeat("k", 258), "Idempotency-Key", "invalid_request"},
		{"GET", "/v1/orders?limit=0", "", "limit", "invalid_request"},
		{"GET", "/v1/orders?limit=101", "", "limit", "invalid_request"},
		{"GET", "/v1/orders?limit=x", "", "limit", "invalid_request"},
		{"GET", "/v1/orders?limit=1&limit=2", "", "limit", "invalid_request"},
		{"GET", "/v1/orders?limit=", "", "limit", "invalid_request"},
		{"GET", "/v1/orders?after=%00", "", "after", "invalid_request"},
		{"GET", "/v1/orders?customer=a%0Ab", "", "customer", "invalid_request"},
		{"GET", "/v1/orders/42", "", "id", "invalid_request"},
		{"GET", "/v1/orders/%00", "", "id", "invalid_request"},
		{"GET", "/v1/products/a%2Fb", "", "sku", "invalid_request"},
		{"GET", "/v1/products/a%2500", "", "sku", "invalid_request"}, // the generated code unescapes once more
		{"GET", order + "/events?version=0", "", "version", "invalid_request"},
		{"GET", order + "/events?version=99999999999999999999", "", "version", "invalid_request"},
		{"GET", order + "/events?at=yesterday", "", "at", "invalid_request"},
		{"GET", order + "/events", "Last-Event-ID: x", "Last-Event-ID", "invalid_request"},
	} {
		body := ""
		if c.method == http.MethodPost {
			body = checkout()
		}
		p := problem(t, b.call(c.method, c.path, body, c.header), http.StatusBadRequest)
		if p.Param != c.param || p.Code != c.code {
			t.Errorf("%s %s %q: %+v", c.method, c.path, c.header, p)
		}
	}
}

func TestGoodParameters(t *testing.T) {
	t.Parallel()
	b := newBed(t, echo, nil)
	for _, path := range []string{
		"/v1/orders?limit=100&after=abc", order, order + "/events?version=3", order + "/events?at=2026-03-01T12:00:00Z",
		"/v1/products/%41BC", "/v1/customers/ana@example.com/loyalty", "/v1/orders?unknown=is+ignored",
	} {
		if w := b.call(http.MethodGet, path, "", "If-None-Match: \"3\"", "Prefer: wait=5"); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	product := `{"name":"Café","description":"a\nb","price":{"amount":1,"currency":"BRL"},"active":true}`
	if w := b.call(http.MethodPut, "/v1/products/CAFE", product, "Authorization: Bearer "+b.tokens[auth.Operator]); w.Code != http.StatusOK {
		t.Errorf("PUT: %d %s", w.Code, w.Body)
	}
}

func FuzzDecodeJSON(f *testing.F) {
	for _, s := range []string{checkout(), `{"a":1,"a":2}`, `[1,[2,{"x":null}]]`, `"\ud800"`, `"\ud83d\ude00"`, `\`, `"\u`, "\xff", "{}{}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, e := decodeJSON([]byte(s))
		if (v != nil) && e != nil {
			t.Fatalf("a value and an error: %v, %v", v, e)
		}
		if e != nil && e.Kind != Invalid {
			t.Fatalf("kind %v", e.Kind)
		}
		// The two readers agree on what is good, and on its names.
		slow, slowly := readSlowly([]byte(s))
		if e == nil && (slowly != nil || count(v) != count(slow)) {
			t.Fatalf("slowly: %v, %v", slow, slowly)
		}
	})
}
