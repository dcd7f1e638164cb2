package journeys

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/internal/shoptest"
	"github.com/feira-shop/feira/shared/auth"
)

// othersOrders: to everybody else an order is not there, whatever they want of it.
func othersOrders(t *testing.T, s *shoptest.Shop) {
	t.Parallel()
	sku, ana, eve := s.Product(t, 2_000, 10), s.Customer(t), s.Customer(t)
	o := ana.AwaitMoney(t, ana.Buy(t, sku, 1, s.Card("tok_visa")), api.FinancialStatusPaid)
	for _, c := range []struct{ method, path, body string }{
		{http.MethodGet, "", ""},
		{http.MethodGet, "/events", ""},
		{http.MethodGet, "/events?version=1", ""},
		{http.MethodPost, "/cancellation", `{"reason":"mine now"}`},
		{http.MethodPost, "/refunds", `{"reason":"mine now"}`},
		{http.MethodPost, "/release", ""},
	} {
		header := map[string]string{"Authorization": "Bearer " + eve.Token}
		if c.method == http.MethodPost {
			header["Idempotency-Key"] = s.Key()
		}
		a := s.Do(t, c.method, "/v1/orders/"+o.Id+c.path, header, strings.NewReader(c.body))
		refused(t, a, http.StatusNotFound, "not_found", "")
	}
	live := s.Do(t, http.MethodGet, "/v1/orders/"+o.Id+"/events", map[string]string{"Authorization": "Bearer " + eve.Token, "Accept": "text/event-stream"}, nil)
	refused(t, live, http.StatusNotFound, "not_found", "")
	points := s.Do(t, http.MethodGet, "/v1/customers/"+ana.ID+"/loyalty", map[string]string{"Authorization": "Bearer " + eve.Token}, nil)
	refused(t, points, http.StatusNotFound, "not_found", "")
	if len(orders(t, eve)) != 0 {
		t.Error("eve sees orders in her list")
	}
	nothingRecorded(t, eve)
	if now := told(t, ana, o.Id, api.GetOrderEventsParams{}).Order; now.Version != o.Version {
		t.Errorf("the order changed: %+v", now)
	}
	put := s.Do(t, http.MethodPut, "/v1/products/"+sku, map[string]string{"Authorization": "Bearer " + eve.Token},
		strings.NewReader(`{"name":"Free","description":"","price":{"amount":1,"currency":"BRL"},"active":true}`))
	refused(t, put, http.StatusForbidden, "forbidden", "")
}

// badTokens: whoever is not known is nobody.
func badTokens(t *testing.T, s *shoptest.Shop) {
	t.Parallel()
	sku, ana := s.Product(t, 2_000, 10), s.Customer(t)
	body := form(t, sku, s.Card("tok_visa"))
	claims := jwt.MapClaims{
		"sub": ana.ID, "roles": []string{"customer", "operator"}, "iss": auth.Issuer, "aud": auth.Audience,
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	stranger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good, _, err := jwt.NewParser().ParseUnverified(ana.Token, jwt.MapClaims{})
	if err != nil {
		t.Fatal(err)
	}
	forge := func(m jwt.SigningMethod, key any) string {
		token := jwt.NewWithClaims(m, claims)
		token.Header["kid"] = good.Header["kid"]
		signed, err := token.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return "Bearer " + signed
	}
	for name, value := range map[string]string{
		"no token":           "",
		"expired":            "Bearer " + s.Token(t, ana.ID, auth.Customer, -time.Minute),
		"unsigned":           forge(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType),
		"by the public half": forge(jwt.SigningMethodHS256, []byte(s.JWKS())),
		"by a stranger":      forge(jwt.SigningMethodES256, stranger),
		"tampered":           "Bearer " + ana.Token[:len(ana.Token)-4] + "AAAA",
		"another scheme":     "Basic " + ana.Token,
		"not even a token":   "Bearer x",
	} {
		a := post(t, ana, map[string]string{"Authorization": value}, encode(t, body))
		if a.Status != http.StatusUnauthorized || a.Problem.Param != "Authorization" || a.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: %d %v %s", name, a.Status, a.Header, a.Body)
		}
	}
	nothingRecorded(t, ana)
}
