package shoptest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/shared/auth"
	"github.com/feira-shop/feira/shared/money"
)

// patience is how long a test waits for what must happen. It is no measure of speed: a loaded machine may need it.
const patience = 60 * time.Second

// Customer is somebody who orders, by the generated client of the public API.
type Customer struct {
	*api.ClientWithResponses
	ID    string
	Token string // bearer
	Shop  *Shop
}

// Customer makes a customer who has never ordered.
func (s *Shop) Customer(tb testing.TB) *Customer {
	tb.Helper()
	return s.caller(tb, s.unique("customer-"), auth.Customer)
}

// Operator makes somebody who runs the shop.
func (s *Shop) Operator(tb testing.TB) *Customer {
	tb.Helper()
	return s.caller(tb, s.unique("operator-"), auth.Operator)
}

func (s *Shop) caller(tb testing.TB, id string, role auth.Role) *Customer {
	tb.Helper()
	token := s.Token(tb, id, role, time.Hour)
	c := &Customer{ID: id, Token: token, Shop: s}
	var err error
	c.ClientWithResponses, err = api.NewClientWithResponses(s.URL, api.WithHTTPClient(s.client),
		api.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+token)
			return nil
		}))
	must(tb, "make a client", err)
	return c
}

// Token signs a token that the shop takes until ttl is over.
func (s *Shop) Token(tb testing.TB, subject string, role auth.Role, ttl time.Duration) string {
	tb.Helper()
	token, err := s.key.Sign(subject, []auth.Role{role}, ttl)
	must(tb, "sign a token", err)
	return token
}

// JWKS is the key set that the shop verifies tokens by.
func (s *Shop) JWKS() json.RawMessage { return s.key.JWKS() }

// Card makes a token of a card that nobody has used; behaviour says what the provider does with it, for example
// "tok_visa" or "tok_declined".
func (s *Shop) Card(behaviour string) string { return s.unique(behaviour + "_card") }

// Checkout is the body of an order: so many pieces of a product, paid with a card's token.
func (c *Customer) Checkout(sku string, quantity int64, token string) api.Checkout {
	return api.Checkout{
		Lines:           []api.CheckoutLine{{Sku: sku, Quantity: quantity}},
		Payment:         api.CheckoutPayment{Method: api.CheckoutPaymentMethodCard, Token: token},
		Email:           c.ID + "@example.com",
		ShippingAddress: api.Address{Name: "Ana Souza", Street: "Rua das Flores, 10", City: "Olinda", State: "PE", PostalCode: "53020-100", Country: "BR"},
	}
}

// Key makes an Idempotency-Key that was not used before.
func (s *Shop) Key() string { return s.unique("key-") }

// Send posts an order under a key; wait is how many seconds the answer may wait for the order's confirmation, 0: none.
func (c *Customer) Send(tb testing.TB, key string, body api.Checkout, wait int) *api.PlaceOrderResponse {
	tb.Helper()
	params := &api.PlaceOrderParams{IdempotencyKey: key}
	if wait > 0 {
		params.Prefer = Wait(wait)
	}
	res, err := c.PlaceOrderWithResponse(tb.Context(), params, body)
	must(tb, "place an order", err)
	return res
}

// Place posts an order that must be taken, and returns it as it was placed.
func (c *Customer) Place(tb testing.TB, key string, body api.Checkout) api.Order {
	tb.Helper()
	res := c.Send(tb, key, body, 0)
	if res.JSON201 == nil {
		tb.Fatalf("place an order: %s %s", res.Status(), res.Body)
	}
	return *res.JSON201
}

// Buy places an order and returns it as it is once it is confirmed, refused or held.
func (c *Customer) Buy(tb testing.TB, sku string, quantity int64, token string) api.Order {
	tb.Helper()
	o := c.Place(tb, c.Shop.Key(), c.Checkout(sku, quantity, token))
	return c.Await(tb, o, "decided", func(o api.Order) bool { return o.Status != api.OrderStatusPlaced })
}

// Await follows an order by long polls until it is as wanted, and returns it.
func (c *Customer) Await(tb testing.TB, o api.Order, what string, wanted func(api.Order) bool) api.Order {
	tb.Helper()
	o, err := c.Until(tb.Context(), o, wanted)
	if err != nil {
		tb.Fatalf("order %s is %s, %s, not %s: %v", o.Id, o.Status, o.FinancialStatus, what, err)
	}
	return o
}

// Until is [Customer.Await] for any goroutine.
func (c *Customer) Until(ctx context.Context, o api.Order, wanted func(api.Order) bool) (api.Order, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !wanted(o) {
		res, err := c.GetOrderWithResponse(ctx, o.Id, &api.GetOrderParams{IfNoneMatch: ETag(o.Version), Prefer: Wait(10)})
		if err != nil {
			return o, err
		}
		switch res.StatusCode() {
		case http.StatusOK:
			o = *res.JSON200
		case http.StatusNotModified:
		default:
			return o, fmt.Errorf("read the order: %s %s", res.Status(), res.Body)
		}
	}
	return o, nil
}

// AwaitMoney follows an order until its money is as wanted.
func (c *Customer) AwaitMoney(tb testing.TB, o api.Order, wanted api.FinancialStatus) api.Order {
	tb.Helper()
	return c.Await(tb, o, string(wanted), func(o api.Order) bool { return o.FinancialStatus == wanted })
}

// Wait is a Prefer header.
func Wait(seconds int) *string {
	prefer := fmt.Sprintf("wait=%d", seconds)
	return &prefer
}

// ETag is the entity tag of a version.
func ETag(version int64) *string {
	tag := strconv.Quote(strconv.FormatInt(version, 10))
	return &tag
}

// BRL is a price.
func BRL(centavos int64) money.Money { return money.BRL(centavos) }
