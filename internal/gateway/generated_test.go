package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/feira-shop/feira/api"
	orders "github.com/feira-shop/feira/services/orders/api"
	"github.com/feira-shop/feira/shared/auth"
	"github.com/feira-shop/feira/shared/web"
)

// shop is an orders service without any order: it shows how generated server and web fit together.
type shop struct {
	orders.StrictServerInterface // what the test does not call
	got                          chan orders.PlaceOrderRequestObject
}

var errSoldOut = errors.New("select from stock: 0 rows")

func (s shop) PlaceOrder(_ context.Context, req orders.PlaceOrderRequestObject) (orders.PlaceOrderResponseObject, error) {
	key, err := web.IdempotencyKey(req.Params.IdempotencyKey)
	if err != nil {
		return nil, err
	}
	if key == "sold-out" {
		return nil, errSoldOut
	}
	_, applied := web.Wait(req.Params.Prefer)
	s.got <- req
	return orders.PlaceOrder201JSONResponse{
		Body:    orders.Order{Id: "o-" + key, Version: 1, Lines: []orders.OrderLine{}},
		Headers: orders.PlaceOrder201ResponseHeaders{ETag: web.ETag(1), Location: "/v1/orders/o-" + key, PreferenceApplied: applied},
	}, nil
}

// follow is the answer of an event stream, in place of the generated one: it has the request's context.
type follow struct{ ctx context.Context }

func (f follow) VisitGetOrderEventsResponse(w http.ResponseWriter) error {
	return web.ServeEvents(f.ctx, w, func(_ context.Context, s *web.EventStream) error {
		return s.Send(web.Event{ID: "1", Name: "shop.feira.order.placed.v1", Data: []byte(`{}`)})
	})
}

func (s shop) GetOrderEvents(ctx context.Context, _ orders.GetOrderEventsRequestObject) (orders.GetOrderEventsResponseObject, error) {
	if web.WantsEvents(ctx) {
		return follow{ctx}, nil
	}
	return nil, web.NewError(web.NotFound, "", "")
}

// newRouter is a service's router as it is in production, and the key that its tokens are signed with.
func newRouter(t *testing.T, service string) (chi.Router, *auth.Key) {
	t.Helper()
	spec, err := api.Spec()
	if err != nil {
		t.Fatal(err)
	}
	key, err := auth.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := auth.StaticVerifier(key.JWKS(), auth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := web.New(web.Options{Name: service, Spec: spec, Tags: []string{service}, Auth: verifier})
	if err != nil {
		t.Fatal(err)
	}
	return r, key
}

func newShop(t *testing.T) (h http.Handler, token string, got chan orders.PlaceOrderRequestObject) {
	t.Helper()
	r, key := newRouter(t, "orders")
	got = make(chan orders.PlaceOrderRequestObject, 1)
	malformed, failed := web.Malformed(nil), web.Failures(nil, web.Is(errSoldOut, web.NewError(web.Conflict, "sold_out", "Sold out.")))
	r.Mount("/", orders.HandlerWithOptions(
		orders.NewStrictHandlerWithOptions(shop{got: got}, nil, orders.StrictHTTPServerOptions{
			RequestErrorHandlerFunc: malformed, ResponseErrorHandlerFunc: failed,
		}),
		orders.ChiServerOptions{ErrorHandlerFunc: malformed}))
	token, err := key.Sign("ana", []auth.Role{auth.Customer}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return newGateway(t, map[string]http.Handler{"orders": r}), token, got
}

const checkout = `{"lines":[{"sku":"CAFE-500","quantity":2}],"payment":{"method":"card","token":"tok_visa_ana1"},"shipping_address":{"name":"Ana","street":"Rua 1","city":"São Paulo","postal_code":"01310-100","country":"BR"},"email":"ana@example.com"}`

func TestGeneratedServerAndClient(t *testing.T) {
	t.Parallel()
	h, token, got := newShop(t)
	srv := httptest.NewServer(h)
	defer srv.Close()
	client, err := api.NewClientWithResponses(srv.URL, api.WithHTTPClient(srv.Client()), api.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	var body api.Checkout
	if err := json.Unmarshal([]byte(checkout), &body); err != nil {
		t.Fatal(err)
	}
	prefer := "wait=99"
	resp, err := client.PlaceOrderWithResponse(context.Background(), &api.PlaceOrderParams{IdempotencyKey: `"k1"`, Prefer: &prefer}, body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.JSON201 == nil || resp.JSON201.Id != "o-k1" {
		t.Fatalf("%d %s", resp.StatusCode(), resp.Body)
	}
	header := resp.HTTPResponse.Header
	if header.Get("ETag") != `"1"` || header.Get("Preference-Applied") != "wait=10" || header.Values("Idempotent-Replayed") != nil {
		t.Errorf("headers %v", header)
	}
	if req := <-got; req.Body.Lines[0].Quantity != 2 || req.Body.Email != "ana@example.com" {
		t.Errorf("the service got %+v", req.Body)
	}
	resp, err = client.PlaceOrderWithResponse(context.Background(), &api.PlaceOrderParams{IdempotencyKey: "sold-out"}, body)
	if err != nil {
		t.Fatal(err)
	}
	p := resp.ApplicationproblemJSONDefault
	if p == nil || p.Status != http.StatusConflict || p.Code != "sold_out" || strings.Contains(string(resp.Body), "stock: 0") {
		t.Errorf("%d %s", resp.StatusCode(), resp.Body)
	}
}

// JSON Schema takes 2.0 for an integer; Go does not decode it. Either way it is the client's error, by name.
func TestWhatOnlyTheGeneratedCodeRefuses(t *testing.T) {
	t.Parallel()
	h, token, _ := newShop(t)
	for _, quantity := range []string{"2.0", "2e0", "9.9999999999999999999"} {
		body := strings.Replace(checkout, `"quantity":2`, `"quantity":`+quantity, 1)
		w := ask(h, http.MethodPost, "/v1/orders", body, "Authorization", "Bearer "+token, "Idempotency-Key", "k", "Content-Type", "application/json")
		var p web.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		if w.Code != http.StatusBadRequest || !strings.HasSuffix(p.Param, "quantity") {
			t.Errorf("%s: %d %+v", quantity, w.Code, p)
		}
	}
}

func TestEventStreamInPlaceOfTheGeneratedAnswer(t *testing.T) {
	t.Parallel()
	h, token, _ := newShop(t)
	w := ask(h, http.MethodGet, order+"/events", "", "Authorization", "Bearer "+token, "Accept", "text/event-stream")
	if want := "retry: 2000\n\nid: 1\nevent: shop.feira.order.placed.v1\ndata: {}\n\n"; w.Body.String() != want {
		t.Errorf("%d %q", w.Code, w.Body)
	}
	if w := ask(h, http.MethodGet, order+"/events", "", "Authorization", "Bearer "+token); w.Code != http.StatusNotFound {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
