package load

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feira-shop/feira/api"
)

// shop counts what must be fresh in every order.
type shop struct {
	mu                           sync.Mutex
	keys, cards, customers, skus map[string]bool
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var c api.Checkout
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil || r.URL.Path != "/v1/orders" || len(c.Lines) != 1 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[r.Header.Get("Idempotency-Key")] = true
	s.cards[c.Payment.Token] = true
	s.customers[r.Header.Get("Authorization")] = true
	s.skus[c.Lines[0].Sku] = true
	o := api.Order{Status: api.OrderStatusPlaced}
	if r.Header.Get("Prefer") == "wait=5" {
		o.Status = api.OrderStatusConfirmed
		if len(s.keys)%2 == 0 {
			o.Status, o.Reason = api.OrderStatusCancelled, "out_of_stock"
		}
	}
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(o)
}

func serve(t *testing.T, h http.Handler, change func(*CheckoutOptions)) Summary {
	t.Helper()
	server := httptest.NewServer(h)
	defer server.Close()
	o := CheckoutOptions{BaseURL: server.URL + "/", Token: func(who string) string { return who }, Customers: 7}
	if change != nil {
		change(&o)
	}
	do, closeClient, err := Checkout(o)
	if err != nil {
		t.Fatal(err)
	}
	defer closeClient()
	return run1(t, Options{Do: do, Rate: 200, Duration: 250 * time.Millisecond})
}

func newShop() *shop {
	return &shop{keys: map[string]bool{}, cards: map[string]bool{}, customers: map[string]bool{}, skus: map[string]bool{}}
}

func TestOrdersAreFresh(t *testing.T) {
	t.Parallel()
	s := newShop()
	for range 2 {
		if got := serve(t, s, nil); got.OK == 0 || got.OK != got.Sent || got.Words["201"] != got.OK {
			t.Fatalf("%+v", got)
		}
	}
	if len(s.keys) < 50 || len(s.cards) != len(s.keys) || len(s.customers) != 14 || len(s.skus) < 40 {
		t.Errorf("%d keys, %d cards, %d customers, %d products in two runs", len(s.keys), len(s.cards), len(s.customers), len(s.skus))
	}
}

func TestWaitingTellsWhatBecameOfTheOrder(t *testing.T) {
	t.Parallel()
	got := serve(t, newShop(), func(o *CheckoutOptions) { o.Wait = 5 * time.Second })
	if got.Words["201 confirmed"] == 0 || got.Words["201 confirmed"] != got.OK || got.Words["201 cancelled out_of_stock"] != got.Failed || got.Failed == 0 {
		t.Errorf("%+v", got)
	}
}

func TestNoOtherServerIsSpokenTo(t *testing.T) {
	t.Parallel()
	other := newShop()
	elsewhere := httptest.NewServer(other)
	defer elsewhere.Close()
	got := serve(t, http.RedirectHandler(elsewhere.URL+"/v1/orders", http.StatusTemporaryRedirect), nil)
	if got.OK != 0 || got.Words["307"] != got.Sent || len(other.keys) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestProblemsAreCountedByCode(t *testing.T) {
	t.Parallel()
	got := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
		_ = json.NewEncoder(w).Encode(api.Problem{Code: "rate_limited"})
	}), nil)
	if got.OK != 0 || got.Words["429 rate_limited"] != got.Sent {
		t.Errorf("%+v", got)
	}
}

func TestCheckoutOptionsAreChecked(t *testing.T) {
	t.Parallel()
	_, _, err := Checkout(CheckoutOptions{BaseURL: "ftp://shop", Wait: time.Minute})
	for _, want := range []string{"BaseURL", "Token", "Wait"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}
