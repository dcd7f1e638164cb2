package shoppers

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/internal/seed"
	"github.com/feira-shop/feira/shared/money"
)

// fakeShop answers like the shop. Its orders move on by one step each time somebody asks for news.
type fakeShop struct {
	t        *testing.T
	base     string
	faulty   bool              // drops and refuses requests at random, before or after their effect
	stuck    bool              // orders never move
	forgets  bool              // answers a repeat with the order as it is now, and moves it before
	onOrder  func(n int)       // after each new order
	products map[string]int64  // available pieces
	receipts map[string]string // by key, the SKU

	mu     sync.Mutex
	orders map[string]*fakeOrder // by id, which is the key
	done   map[string]bool       // keys of other commands
}

type fakeOrder struct {
	api.Order
	asPlaced api.Order
	token    string
	left     int // questions until the hold ends
}

func newFakeShop(t *testing.T, change func(*fakeShop)) *fakeShop {
	t.Helper()
	f := &fakeShop{t: t, products: map[string]int64{}, receipts: map[string]string{}, orders: map[string]*fakeOrder{}, done: map[string]bool{}, onOrder: func(int) {}}
	for _, p := range seed.Products() {
		f.products[p.SKU] = p.Stock
	}
	if change != nil {
		change(f)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/orders", f.place)
	mux.HandleFunc("GET /v1/orders/{id}", f.news)
	for _, command := range []string{"release", "cancellation", "refunds"} {
		mux.HandleFunc("POST /v1/orders/{id}/"+command, func(w http.ResponseWriter, r *http.Request) { f.command(w, r, command) })
	}
	mux.HandleFunc("GET /v1/stock/{sku}", f.stock)
	mux.HandleFunc("POST /v1/stock/{sku}/receipts", f.receive)
	server := httptest.NewServer(f.faults(mux))
	t.Cleanup(server.Close)
	f.base = server.URL
	return f
}

// faults loses a third of the requests: a third of these before their effect, a third after it, and a third of
// them gets an error.
func (f *fakeShop) faults(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ok-") {
			f.send(w, http.StatusUnauthorized, api.Problem{Code: "unauthenticated"})
			return
		}
		if !f.faulty {
			next.ServeHTTP(w, r)
			return
		}
		switch rand.IntN(9) {
		case 0:
			panic(http.ErrAbortHandler)
		case 1:
			next.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		case 2:
			f.send(w, http.StatusServiceUnavailable, api.Problem{Code: "unavailable"})
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func (f *fakeShop) send(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func (f *fakeShop) place(w http.ResponseWriter, r *http.Request) {
	var c api.Checkout
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
		f.t.Error(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	key := r.Header.Get("Idempotency-Key")
	if o, known := f.orders[key]; known {
		w.Header().Set("Idempotent-Replayed", "true")
		if f.forgets {
			f.step(o)
			f.send(w, http.StatusCreated, o.Order)
			return
		}
		f.send(w, http.StatusCreated, o.asPlaced)
		return
	}
	o := &fakeOrder{token: c.Payment.Token, left: 20}
	o.Order = api.Order{
		Id: key, Customer: strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ok-"), Status: api.OrderStatusPlaced,
		FinancialStatus: api.FinancialStatusPending, Total: money.BRL(1000), Version: 1, PlacedAt: time.Now(),
	}
	o.asPlaced = o.Order
	for _, other := range f.orders {
		if other.token == o.token {
			o.hold()
		}
	}
	for _, l := range c.Lines {
		if l.Quantity > f.products[l.Sku] {
			o.cancel(api.FinancialStatusVoided, "out_of_stock")
		}
	}
	if o.Status != api.OrderStatusCancelled {
		for _, l := range c.Lines {
			f.products[l.Sku] -= l.Quantity
		}
	}
	f.orders[key] = o
	f.onOrder(len(f.orders))
	f.send(w, http.StatusCreated, o.asPlaced)
}

func (o *fakeOrder) hold() { o.Status = api.OrderStatusOnHold; o.Version++ }
func (o *fakeOrder) change(s api.OrderStatus, m api.FinancialStatus) {
	o.Status, o.FinancialStatus = s, m
	o.Version++
}
func (o *fakeOrder) cancel(m api.FinancialStatus, reason string) {
	o.change(api.OrderStatusCancelled, m)
	o.Reason = reason
}

// step moves an order on.
func (f *fakeShop) step(o *fakeOrder) {
	declined := strings.HasPrefix(o.token, "tok_declined") || strings.HasPrefix(o.token, "tok_insufficient")
	switch {
	case f.stuck:
	case o.Status == api.OrderStatusOnHold:
		if o.left--; o.left == 0 {
			o.cancel(api.FinancialStatusVoided, "duplicate_purchase")
		}
	case o.Status == api.OrderStatusCancelled && o.FinancialStatus == api.FinancialStatusPaid:
		o.cancel(api.FinancialStatusRefunded, o.Reason)
	case o.Status == api.OrderStatusPlaced && declined:
		o.cancel(api.FinancialStatusFailed, "payment_declined")
	case o.Status == api.OrderStatusPlaced:
		o.change(api.OrderStatusConfirmed, api.FinancialStatusAuthorized)
	case o.FinancialStatus == api.FinancialStatusAuthorized && strings.HasPrefix(o.token, "tok_capture_fails"):
		o.cancel(api.FinancialStatusVoided, "payment_declined")
	case o.FinancialStatus == api.FinancialStatusAuthorized:
		o.change(api.OrderStatusConfirmed, api.FinancialStatusPaid)
	case o.Refunded.Amount > 0:
		o.change(o.Status, api.FinancialStatusPartiallyRefunded)
	}
}

func (f *fakeShop) news(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	o := f.orders[r.PathValue("id")]
	if r.Header.Get("If-None-Match") == fmt.Sprintf(`"%d"`, o.Version) {
		f.step(o)
	}
	now, same := o.Order, r.Header.Get("If-None-Match") == fmt.Sprintf(`"%d"`, o.Version)
	f.mu.Unlock()
	if !same {
		f.send(w, http.StatusOK, now)
		return
	}
	select { // as long as nothing happens; shorter than the real shop
	case <-time.After(20 * time.Millisecond):
	case <-r.Context().Done():
	}
	w.WriteHeader(http.StatusNotModified)
}

func (f *fakeShop) command(w http.ResponseWriter, r *http.Request, command string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o, key := f.orders[r.PathValue("id")], r.Header.Get("Idempotency-Key")
	switch {
	case f.done[key]:
		f.send(w, http.StatusAccepted, o.Order)
		return
	case command == "release" && o.Status == api.OrderStatusOnHold:
		o.change(api.OrderStatusPlaced, o.FinancialStatus)
	case command == "cancellation" && o.Status != api.OrderStatusCancelled:
		money := o.FinancialStatus
		if money != api.FinancialStatusPaid {
			money = api.FinancialStatusVoided
		}
		o.cancel(money, "customer")
	case command == "refunds" && o.FinancialStatus == api.FinancialStatusPaid:
		var body api.Refund
		_ = json.NewDecoder(r.Body).Decode(&body)
		o.Refunded = body.Amount
		o.Version++
	default:
		f.send(w, http.StatusConflict, api.Problem{Code: "not_possible"})
		return
	}
	f.done[key] = true
	f.send(w, http.StatusAccepted, o.Order)
}

func (f *fakeShop) stock(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.send(w, http.StatusOK, api.Stock{Sku: r.PathValue("sku"), Available: f.products[r.PathValue("sku")]})
}

func (f *fakeShop) receive(w http.ResponseWriter, r *http.Request) {
	var body api.Receipt
	_ = json.NewDecoder(r.Body).Decode(&body)
	f.mu.Lock()
	defer f.mu.Unlock()
	sku, key := r.PathValue("sku"), r.Header.Get("Idempotency-Key")
	if _, known := f.receipts[key]; !known {
		f.receipts[key] = sku
		f.products[sku] += body.Quantity
	}
	f.send(w, http.StatusCreated, api.Stock{Sku: sku, Available: f.products[sku]})
}
