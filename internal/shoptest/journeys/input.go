package journeys

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/feira-shop/feira/internal/shoptest"
	"github.com/feira-shop/feira/shared/events"
)

// cardNumber passes the Luhn check.
const cardNumber = "4111111111111111"

// form is a good checkout as text, to be spoilt in one place.
func form(t *testing.T, sku, token string) map[string]any {
	t.Helper()
	var f map[string]any
	text, err := json.Marshal((&shoptest.Customer{ID: "ana"}).Checkout(sku, 1, token))
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func encode(t *testing.T, f map[string]any) io.Reader {
	t.Helper()
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReader(string(text))
}

func line(f map[string]any) map[string]any    { return f["lines"].([]any)[0].(map[string]any) }
func payment(f map[string]any) map[string]any { return f["payment"].(map[string]any) }
func address(f map[string]any) map[string]any { return f["shipping_address"].(map[string]any) }

func with(object func(map[string]any) map[string]any, field string, value any) func(map[string]any) {
	return func(f map[string]any) { object(f)[field] = value }
}

func whole(f map[string]any) map[string]any { return f }

// badCheckouts are spoilt in one place each; the answer names it.
var badCheckouts = []struct {
	name   string
	spoil  func(map[string]any)
	status int
	code   string
	param  string
}{
	{"quantity below nothing", with(line, "quantity", -1), 400, "invalid_request", "lines.0.quantity"},
	{"quantity of nothing", with(line, "quantity", 0), 400, "invalid_request", "lines.0.quantity"},
	{"half a piece", with(line, "quantity", 1.5), 400, "invalid_request", "lines.0.quantity"},
	{"quantity as text", with(line, "quantity", "2"), 400, "invalid_request", "lines.0.quantity"},
	{"quantity of null", with(line, "quantity", nil), 400, "invalid_request", "lines.0.quantity"},
	{"quantity of 10^18", with(line, "quantity", json.Number("1000000000000000000")), 400, "invalid_request", "lines.0.quantity"},
	{"quantity of 1e400", with(line, "quantity", json.Number("1e400")), 400, "invalid_request", "lines.0.quantity"},
	{"quantity missing", func(f map[string]any) { delete(line(f), "quantity") }, 400, "missing_field", "lines.0.quantity"},
	{"one piece too many", with(line, "quantity", 10_001), 400, "invalid_request", "lines.0.quantity"},
	{"product nobody knows", with(line, "sku", "NO-SUCH-THING"), 422, "unknown_sku", "lines.0.sku"},
	{"no lines", with(whole, "lines", []any{}), 400, "invalid_request", "lines"},
	{"lines of null", with(whole, "lines", nil), 400, "invalid_request", "lines"},
	{"10,000 lines", func(f map[string]any) {
		lines := make([]any, 10_000)
		for i := range lines {
			lines[i] = line(f)
		}
		f["lines"] = lines
	}, 400, "invalid_request", "lines"},
	{"unknown field", with(whole, "gift", true), 400, "unknown_field", "gift"},
	{"price in the body", with(line, "unit_price", map[string]any{"amount": 1, "currency": "BRL"}), 400, "unknown_field", "lines.0.unit_price"},
	{"total in the body", with(whole, "total", 1), 400, "unknown_field", "total"},
	{"card number", with(payment, "token", cardNumber), 422, "card_number_refused", "payment.token"},
	{"card number with spaces", with(payment, "token", "4111 1111 1111 1111"), 422, "card_number_refused", "payment.token"},
	{"card number as token", with(payment, "token", "tok_"+cardNumber), 422, "card_number_refused", "payment.token"},
	{"card number in a token", with(payment, "token", "tok_visa_"+cardNumber), 422, "card_number_refused", "payment.token"},
	{"NUL in a token", with(payment, "token", "tok_visa\x00"), 400, "invalid_request", "payment.token"},
	{"another form of token", with(payment, "token", "tok_VISA"), 422, "invalid_token", "payment.token"},
	{"no token", func(f map[string]any) { delete(payment(f), "token") }, 422, "invalid_token", "payment.token"},
	{"3-D Secure", with(payment, "token", "tok_3ds_ana"), 422, "not_supported", "payment.token"},
	{"Pix", func(f map[string]any) { f["payment"] = map[string]any{"method": "pix"} }, 422, "not_supported", "payment.method"},
	{"coupon", with(whole, "coupon", "SUMMER"), 422, "not_supported", "coupon"},
	{"instalments", with(whole, "instalments", 2), 422, "not_supported", "instalments"},
	{"NUL in a name", with(address, "name", "Ana\x00Souza"), 400, "invalid_request", "shipping_address.name"},
	{"line break in a name", with(address, "name", "Ana\r\nBcc: x@example.com"), 400, "invalid_request", "shipping_address.name"},
	{"name that is too long", with(address, "name", strings.Repeat("a", 201)), 400, "invalid_request", "shipping_address.name"},
	{"no address", func(f map[string]any) { delete(f, "shipping_address") }, 400, "missing_field", "shipping_address"},
	{"e-mail that is none", with(whole, "email", "ana"), 400, "invalid_request", "email"},
}

func badInput(t *testing.T, s *shoptest.Shop) {
	t.Parallel()
	sku := s.Product(t, 2_000, 10)
	for _, c := range badCheckouts {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := form(t, sku, s.Card("tok_visa"))
			c.spoil(f)
			ana := s.Customer(t)
			refused(t, post(t, ana, nil, encode(t, f)), c.status, c.code, c.param)
			nothingRecorded(t, ana)
		})
	}
}

// post sends a checkout with a good token and a fresh key, unless the headers say otherwise.
func post(t *testing.T, c *shoptest.Customer, header map[string]string, body io.Reader) shoptest.Answer {
	t.Helper()
	all := map[string]string{"Authorization": "Bearer " + c.Token, "Idempotency-Key": c.Shop.Key()}
	for name, value := range header {
		all[name] = value
	}
	return c.Shop.Do(t, http.MethodPost, "/v1/orders", all, body)
}

func refused(t *testing.T, a shoptest.Answer, status int, code, param string) {
	t.Helper()
	p := a.Problem
	if a.Status != status || p.Status != status || p.Code != code || p.Param != param || p.RequestId == "" || p.Title == "" {
		t.Errorf("the answer is %d %.300s; want %d %s at %q", a.Status, a.Body, status, code, param)
	}
	for _, leak := range []string{"pgx", "SQL", "goroutine", "127.0.0.1", ".go:"} {
		if strings.Contains(a.Body, leak) {
			t.Errorf("the answer speaks of %s: %.300s", leak, a.Body)
		}
	}
}

// nothingRecorded fails the test if an event of the customer's exists.
func nothingRecorded(t *testing.T, c *shoptest.Customer) {
	t.Helper()
	var n int
	err := c.Shop.Pool("orders").QueryRow(t.Context(), "select count(*) from events where meta ->> 'actor' = $1", c.ID).Scan(&n)
	if err != nil || n != 0 {
		t.Errorf("%d events of the customer were recorded, %v", n, err)
	}
}

// badBodies cannot be spoilt forms: they are no JSON, too much, or said to be something else.
func badBodies(t *testing.T, s *shoptest.Shop) {
	t.Parallel()
	sku, ana := s.Product(t, 2_000, 10), s.Customer(t)
	good, err := json.Marshal(form(t, sku, s.Card("tok_visa")))
	if err != nil {
		t.Fatal(err)
	}
	text := string(good)
	for _, c := range []struct {
		name   string
		header map[string]string
		body   string
		status int
		code   string
		param  string
	}{
		{"half of it", nil, text[:len(text)/2], 400, "invalid_json", ""},
		{"two of it", nil, text + text, 400, "invalid_json", ""},
		{"a list", nil, "[" + text + "]", 400, "invalid_request", ""},
		{"nothing", nil, " ", 400, "missing_body", ""},
		{"no Unicode", nil, strings.Replace(text, "Souza", "\xff\xfe", 1), 400, "invalid_json", ""},
		{"a field twice", nil, strings.Replace(text, `"quantity":1`, `"quantity":1,"quantity":2`, 1), 400, "duplicate_field", "lines.0.quantity"},
		{"10 MB", nil, strings.Replace(text, "Souza", strings.Repeat("a", 10<<20), 1), 413, "too_large", ""},
		{"a name of 1 MB", nil, strings.Replace(text, "Souza", strings.Repeat("a", 1<<20), 1), 413, "too_large", ""},
		{"no key", map[string]string{"Idempotency-Key": ""}, text, 400, "missing_parameter", "Idempotency-Key"},
		{"a key that is too long", map[string]string{"Idempotency-Key": strings.Repeat("k", 256)}, text, 400, "invalid_request", "Idempotency-Key"},
		{"a form", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, text, 415, "unsupported_media_type", "Content-Type"},
	} {
		refused(t, post(t, ana, c.header, strings.NewReader(c.body)), c.status, c.code, c.param)
		if t.Failed() {
			t.Fatalf("that was %s", c.name)
		}
	}
	nothingRecorded(t, ana)
}

// anyText: what people write is kept as they wrote it.
func anyText(t *testing.T, s *shoptest.Shop) {
	t.Parallel()
	sku := s.Product(t, 2_000, 10)
	for _, name := range []string{"Zoë \U0001F389 \U0001F469\u200d\U0001F467", "\u200fأنا\u200e \u202eabc", "Ana \u0301 \U0001F1E7\U0001F1F7", "<script>alert('x')</script> \" \\ %s"} {
		ana := s.Customer(t)
		body := ana.Checkout(sku, 1, s.Card("tok_visa"))
		body.ShippingAddress.Name = name
		o := ana.Place(t, s.Key(), body)
		for _, r := range s.Events(t, "orders") {
			if e, ok := r.Event.(events.OrderPlaced); ok && e.Order == o.Id && e.Personal.Address.Name != name {
				t.Errorf("%q was kept as %q", name, e.Personal.Address.Name)
			}
		}
		ana.Await(t, o, "decided", decided)
	}
}

// NoCardNumbers runs when the [Together] have ended: what was refused as a card number is in no table, and not in the log.
func NoCardNumbers(t *testing.T, s *shoptest.Shop, log string) {
	t.Helper()
	if strings.Contains(log, cardNumber) || strings.Contains(log, "4111 1111") {
		t.Error("a card number is in the log")
	}
	var n int
	err := s.Pool("orders").QueryRow(t.Context(), "select count(*) from events where data::text like '%"+cardNumber+"%'").Scan(&n)
	if err != nil || n != 0 {
		t.Errorf("%d events hold a card number, %v", n, err)
	}
	if !strings.Contains(log, `"status":`+strconv.Itoa(http.StatusUnprocessableEntity)) {
		t.Error("the log does not tell of refused requests at all, so it proves nothing")
	}
}
