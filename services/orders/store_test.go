package orders

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/feira-shop/feira/services/orders/api"
	"github.com/feira-shop/feira/shared/auth"
	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/money"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/pg"
	"github.com/feira-shop/feira/shared/pg/pgtest"
	"github.com/feira-shop/feira/shared/web"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// open gives the handlers over a running store on a database of its own, with two products for sale.
func open(t *testing.T) *handlers {
	t.Helper()
	own, err := fs.Sub(migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	db := pgtest.New(t, eventstore.Migrations(), pg.Set{Name: "orders", FS: own})
	store := eventstore.New(db.Pool, eventstore.Options{Service: "orders", Registry: events.NewRegistry()})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- store.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("store: %v", err)
		}
	})
	h := &handlers{store: store, cfg: Config{}.withDefaults(), now: func() time.Time { return noon }}
	h.hear(t, events.ProductChanged{SKU: "CAFE-500", Name: "Coffee", Price: money.BRL(2990), Active: true},
		events.ProductChanged{SKU: "MEL-250", Name: "Honey", Price: money.BRL(1999), Active: true})
	return h
}

// hear hands product changes to the replica, as one batch.
func (h *handlers) hear(t *testing.T, changes ...events.ProductChanged) {
	t.Helper()
	err := h.store.Within(t.Context(), func(ctx context.Context, tx *eventstore.Tx) error {
		batch := make([]operator.Record, len(changes))
		for i, c := range changes {
			batch[i].Event = c
		}
		return replica{}.Apply(ctx, tx, batch)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func as(t *testing.T, subject string, roles ...auth.Role) context.Context {
	t.Helper()
	return auth.WithClaims(t.Context(), auth.Claims{Subject: subject, Roles: roles})
}

func checkout(sku string, quantity int64) api.PlaceOrderRequestObject {
	return api.PlaceOrderRequestObject{Params: api.PlaceOrderParams{IdempotencyKey: "k1"}, Body: &api.Checkout{
		Lines:           []api.CheckoutLine{{Sku: sku, Quantity: quantity}},
		Payment:         api.CheckoutPayment{Method: api.CheckoutPaymentMethodCard, Token: "tok_visa_ana"},
		ShippingAddress: api.Address{Name: "Ana Souza", Street: "Rua das Flores, 10", City: "São Paulo", PostalCode: "01310-100", Country: "BR"},
		Email:           "ana@example.com",
	}}
}

func buy(ctx context.Context, h *handlers, r api.PlaceOrderRequestObject) (api.PlaceOrder201JSONResponse, error) {
	answer, err := h.PlaceOrder(ctx, r)
	if err != nil {
		return api.PlaceOrder201JSONResponse{}, err
	}
	return answer.(api.PlaceOrder201JSONResponse), nil
}

// Same key and body in parallel × 50: one order, 50 equal answers. Another body: refused. Another customer: separate.
func TestOneKeyIsOneOrder(t *testing.T) {
	t.Parallel()
	h := open(t)
	ctx := as(t, ana, auth.Customer)
	const parallel = 50
	answers := make([]api.PlaceOrder201JSONResponse, parallel)
	errs := make([]error, parallel)
	var wg sync.WaitGroup
	for i := range parallel {
		wg.Go(func() { answers[i], errs[i] = buy(ctx, h, checkout("CAFE-500", 2)) })
	}
	wg.Wait()
	fresh := 0
	for i, a := range answers {
		if errs[i] != nil || fmt.Sprint(a.Body) != fmt.Sprint(answers[0].Body) || a.Headers.ETag != `"1"` {
			t.Fatalf("answer %d: %+v, %v", i, a, errs[i])
		}
		if a.Headers.IdempotentReplayed == nil {
			fresh++
		}
	}
	body := answers[0].Body
	if fresh != 1 || body.Total != money.BRL(2*2990+990) || body.Id != OrderID(ana, "k1") || string(body.Status) != "placed" {
		t.Errorf("%d answers are fresh: %+v", fresh, body)
	}
	var reused *KeyReusedError
	if _, err := buy(ctx, h, checkout("CAFE-500", 3)); !errors.As(err, &reused) {
		t.Errorf("another body: %v", err)
	}
	if _, err := buy(ctx, h, checkout("NO-SUCH", 3)); !errors.As(err, &reused) {
		t.Errorf("another body, with a product that is not there: %v", err)
	}
	other, err := buy(as(t, "bia", auth.Customer), h, checkout("CAFE-500", 2))
	if err != nil || other.Body.Id == body.Id {
		t.Errorf("another customer: %+v, %v", other, err)
	}
}

func TestARepeatGetsItsOrderWhateverHappenedSince(t *testing.T) {
	t.Parallel()
	h := open(t)
	ctx := as(t, ana, auth.Customer)
	first, err := buy(ctx, h, checkout("MEL-250", 1))
	if err != nil {
		t.Fatal(err)
	}
	h.hear(t, events.ProductChanged{SKU: "MEL-250", Name: "Honey", Price: money.BRL(9999)}) // not sold any more
	h.note(t, first.Body.Id, NoteRefused{})
	again, err := buy(ctx, h, checkout("MEL-250", 1))
	if err != nil || fmt.Sprint(again.Body) != fmt.Sprint(first.Body) || again.Headers.IdempotentReplayed == nil {
		t.Errorf("the first answer was %+v, a repeat got %+v, %v", first.Body, again.Body, err)
	}
	wait := "wait=5"
	r := checkout("MEL-250", 1)
	r.Params.Prefer = &wait
	if now, err := buy(ctx, h, r); err != nil || string(now.Body.Status) != "cancelled" || now.Body.Reason != events.ReasonOutOfStock {
		t.Errorf("as it is now: %+v, %v", now.Body, err)
	}
	r.Params.IdempotencyKey = "k2"
	var unknown *UnknownProductError
	if _, err := buy(ctx, h, r); !errors.As(err, &unknown) {
		t.Errorf("a new order: %v", err)
	}
}

func (h *handlers) note(t *testing.T, id string, cmds ...any) {
	t.Helper()
	for _, cmd := range cmds {
		if _, err := decider.Handle(t.Context(), h.store, Rules, Stream(id), cmd, events.Meta{}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnothersOrderIsNotFound(t *testing.T) {
	t.Parallel()
	h := open(t)
	o, err := buy(as(t, ana, auth.Customer), h, checkout("CAFE-500", 1))
	if err != nil {
		t.Fatal(err)
	}
	bia := as(t, "bia", auth.Customer)
	var missing *NotFoundError
	_, errGet := h.GetOrder(bia, api.GetOrderRequestObject{Id: o.Body.Id})
	_, errHistory := h.GetOrderEvents(bia, api.GetOrderEventsRequestObject{Id: o.Body.Id})
	_, errCancel := h.CancelOrder(bia, api.CancelOrderRequestObject{Id: o.Body.Id, Params: api.CancelOrderParams{IdempotencyKey: "c"}})
	_, errRefund := h.RefundOrder(bia, api.RefundOrderRequestObject{Id: o.Body.Id, Params: api.RefundOrderParams{IdempotencyKey: "c"}, Body: &api.Refund{Reason: "x"}})
	for _, err := range []error{errGet, errHistory, errCancel, errRefund} {
		if !errors.As(err, &missing) {
			t.Errorf("another's order: %v", err)
		}
	}
	list, err := h.ListOrders(bia, api.ListOrdersRequestObject{})
	if page := list.(api.ListOrders200JSONResponse); err != nil || len(page.Data) != 0 {
		t.Errorf("another's list: %+v, %v", page, err)
	}
	if _, err := h.GetOrder(as(t, "op", auth.Operator), api.GetOrderRequestObject{Id: o.Body.Id}); err != nil {
		t.Errorf("an operator: %v", err)
	}
}

func TestAChangeWithAStaleETagIsRefusedUnlessItIsARepeat(t *testing.T) {
	t.Parallel()
	h := open(t)
	ctx := as(t, ana, auth.Customer)
	o, err := buy(ctx, h, checkout("CAFE-500", 1))
	if err != nil {
		t.Fatal(err)
	}
	h.note(t, o.Body.Id, NoteReserved{}) // version 2
	cancel := func(key, match string) (api.CancelOrder202JSONResponse, error) {
		answer, err := h.CancelOrder(ctx, api.CancelOrderRequestObject{Id: o.Body.Id, Params: api.CancelOrderParams{IdempotencyKey: key, IfMatch: &match}})
		got, _ := answer.(api.CancelOrder202JSONResponse)
		return got, err
	}
	var stale *web.Error
	if _, err := cancel("c", `"1"`); !errors.As(err, &stale) || stale.Kind != web.PreconditionFailed {
		t.Errorf("a stale tag: %v", err)
	}
	// A repeat at the same time meets the version that the first one made, and is answered nevertheless.
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { _, errs[i] = cancel("c", `"2"`) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Errorf("repeats: %v", err)
	}
	again, err := cancel("c", `"2"`)
	if err != nil || again.Headers.IdempotentReplayed == nil || again.Headers.ETag != `"3"` || string(again.Body.Status) != "cancelled" {
		t.Errorf("a repeat: %+v, %v", again, err)
	}
	var too *TransitionError
	if _, err := cancel("c2", "*"); !errors.As(err, &too) {
		t.Errorf("a second cancellation: %v", err)
	}
}

// What a role and the clock decide is taken from the request and not from its body.
func TestTheCallersRoleAndTheClockDecide(t *testing.T) {
	t.Parallel()
	h := open(t)
	customer, operator := as(t, ana, auth.Customer), as(t, "op", auth.Operator)
	o, err := buy(customer, h, checkout("CAFE-500", 1))
	if err != nil {
		t.Fatal(err)
	}
	h.note(t, o.Body.Id, NoteHeld{Payment: payment, Reason: events.ReasonDuplicatePurchase, Until: noon.Add(time.Minute)})
	release := func(at time.Time) error {
		h.now = func() time.Time { return at }
		_, err := h.ReleaseOrder(customer, api.ReleaseOrderRequestObject{Id: o.Body.Id, Params: api.ReleaseOrderParams{IdempotencyKey: "r"}})
		return err
	}
	var over *HoldEndedError
	if err := release(noon.Add(time.Minute)); !errors.As(err, &over) {
		t.Errorf("a release at the end of the hold: %v", err)
	}
	if err := release(noon.Add(time.Minute - time.Microsecond)); err != nil {
		t.Errorf("a release before the end of the hold: %v", err)
	}

	h.note(t, o.Body.Id, NoteReserved{}, noteAuthorized, NoteCaptured{payment, o.Body.Total}, NoteCaptureFailed{payment, "late"},
		NoteRefundFailed{Payment: payment, Command: ofCancellation, Code: "no", Amount: o.Body.Total})
	refund := func(ctx context.Context) error {
		_, err := h.RefundOrder(ctx, api.RefundOrderRequestObject{
			Id: o.Body.Id, Params: api.RefundOrderParams{IdempotencyKey: "again"}, Body: &api.RefundOrderJSONRequestBody{Reason: "refused"},
		})
		return err
	}
	var no *TransitionError
	if err := refund(customer); !errors.As(err, &no) || no.Status != Cancelled {
		t.Errorf("a customer asks again: %v", err)
	}
	if err := refund(operator); err != nil {
		t.Errorf("an operator asks again: %v", err)
	}
}

func TestTheListIsPagedNewestFirst(t *testing.T) {
	t.Parallel()
	h := open(t)
	ctx := as(t, ana, auth.Customer)
	var want []string
	for i := range 7 {
		h.now = func() time.Time { return noon.Add(time.Duration(i/2) * time.Second) } // some at one moment
		r := checkout("CAFE-500", 1)
		r.Params.IdempotencyKey = fmt.Sprint(i)
		o, err := buy(ctx, h, r)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, o.Body.Id)
	}
	var got []string
	limit, after := 3, ""
	for {
		params := api.ListOrdersParams{Limit: &limit}
		if after != "" {
			params.After = &after
		}
		answer, err := h.ListOrders(ctx, api.ListOrdersRequestObject{Params: params})
		if err != nil {
			t.Fatal(err)
		}
		page := answer.(api.ListOrders200JSONResponse)
		for i, o := range page.Data {
			got = append(got, o.Id)
			if i > 0 && o.PlacedAt.After(page.Data[i-1].PlacedAt) || o.UpdatedAt != o.PlacedAt {
				t.Errorf("%s was placed at %s and updated at %s", o.Id, o.PlacedAt, o.UpdatedAt)
			}
		}
		if after = page.NextCursor; !page.HasMore {
			break
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
}

func TestTheReplicaKeepsTheLastWord(t *testing.T) {
	t.Parallel()
	h := open(t)
	if err := replicaFilled(t.Context(), h.store, 2); err != nil {
		t.Error(err)
	}
	if err := replicaFilled(t.Context(), h.store, 3); err == nil {
		t.Error("a replica with 2 of 3 products counts as filled")
	}
	h.hear(t, events.ProductChanged{SKU: "MEL-250", Name: "Honey", Price: money.BRL(1), Active: true},
		events.ProductChanged{SKU: "CHA-20", Name: "Tea", Price: money.BRL(5), Active: true},
		events.ProductChanged{SKU: "MEL-250", Name: "Honey 2", Price: money.BRL(2), Active: true})
	sold, err := products(t.Context(), h.store, []string{"MEL-250", "CHA-20", "NO-SUCH"})
	if err != nil || len(sold) != 2 || sold["MEL-250"].Name != "Honey 2" || sold["MEL-250"].Amount != 2 {
		t.Errorf("%v, %v", sold, err)
	}
}
