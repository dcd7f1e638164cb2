package load

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/internal/seed"
)

const (
	defaultCustomers = 1000
	maxAnswer        = 1 << 20
	requestTimeout   = 30 * time.Second
)

// CheckoutOptions say how the load orders.
type CheckoutOptions struct {
	BaseURL string                       // of the shop; no other address is ever spoken to
	Token   func(customer string) string // makes a customer's bearer token; called once per customer
	// Customers is how many customers order, all of them fresh in every run; 0: 1000.
	Customers int
	Wait      time.Duration // with Prefer: wait, whole seconds up to 10 s; 0: answered as soon as it is placed
	SKUs      []string      // what is ordered, in turn, one piece each; nil: all that is restocked
	Client    *http.Client  // nil: one with connections for InFlight requests
	InFlight  int           // requests in flight that the client is made for; 0: 1000
}

// Checkout is a load of orders that should all go well: each with a fresh card and key, of a fresh customer. Call
// the returned function at the end.
func Checkout(o CheckoutOptions) (Do, func(), error) {
	c, err := newCheckouts(o)
	if err != nil {
		return nil, nil, err
	}
	return c.do, c.opts.Client.CloseIdleConnections, nil
}

type checkouts struct {
	opts CheckoutOptions
	url  string
	run  string // makes customers, cards and keys fresh

	mu     sync.Mutex
	tokens map[string]string
}

func newCheckouts(o CheckoutOptions) (*checkouts, error) {
	var wrong []error
	base, err := url.Parse(o.BaseURL)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		wrong = append(wrong, fmt.Errorf("option BaseURL %q must be the shop's http or https address", o.BaseURL))
	}
	if o.Token == nil {
		wrong = append(wrong, errors.New("option Token is missing: nobody could order"))
	}
	if o.Wait < 0 || o.Wait > 10*time.Second || o.Wait%time.Second != 0 {
		wrong = append(wrong, fmt.Errorf("option Wait %s must be whole seconds, at most 10s", o.Wait))
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	if o.Customers <= 0 {
		o.Customers = defaultCustomers
	}
	if o.SKUs == nil {
		for _, p := range seed.Products() {
			if !p.Scarce {
				o.SKUs = append(o.SKUs, p.SKU)
			}
		}
	}
	if o.Client == nil {
		o.Client = client(o.InFlight)
	}
	var nonce [4]byte
	if _, err := rand.Read(nonce[:]); err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	return &checkouts{
		opts: o, url: strings.TrimSuffix(o.BaseURL, "/") + "/v1/orders",
		run: hex.EncodeToString(nonce[:]), tokens: map[string]string{},
	}, nil
}

// client never follows a redirect: the load must not end up on somebody else's server.
func client(inFlight int) *http.Client {
	if inFlight <= 0 {
		inFlight = defaultInFlight
	}
	return &http.Client{
		Timeout:       requestTimeout,
		Transport:     &http.Transport{MaxIdleConns: inFlight, MaxIdleConnsPerHost: inFlight, IdleConnTimeout: time.Minute},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (c *checkouts) do(ctx context.Context, n int64) (string, error) {
	customer := fmt.Sprintf("load-%s-%d", c.run, n%int64(c.opts.Customers))
	body, err := json.Marshal(api.Checkout{
		Lines:           []api.CheckoutLine{{Sku: c.opts.SKUs[n%int64(len(c.opts.SKUs))], Quantity: 1}},
		Payment:         api.CheckoutPayment{Method: api.CheckoutPaymentMethodCard, Token: fmt.Sprintf("tok_visa_%s_%d", c.run, n)},
		Email:           customer + "@example.com",
		ShippingAddress: api.Address{Name: "Load", Street: "Rua das Flores, 10", City: "São Paulo", State: "SP", PostalCode: "01310-100", Country: "BR"},
	})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+c.token(customer))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", fmt.Sprintf("load-%s-%d", c.run, n))
	if c.opts.Wait > 0 {
		req.Header.Set("Prefer", fmt.Sprintf("wait=%d", c.opts.Wait/time.Second))
	}
	res, err := c.opts.Client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	return c.read(res)
}

// read takes an order that ended well, or is on its way there, as a good answer. With Wait the word is the order's
// status, so that the summary shows how many were confirmed in time.
func (c *checkouts) read(res *http.Response) (string, error) {
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return "", err
	}
	word := strconv.Itoa(res.StatusCode)
	if res.StatusCode != http.StatusCreated {
		var p api.Problem
		_ = json.Unmarshal(body, &p) // what is no problem document has no code
		return strings.TrimSpace(word + " " + p.Code), errors.New("refused")
	}
	if c.opts.Wait == 0 {
		return word, nil
	}
	var o api.Order
	if err := json.Unmarshal(body, &o); err != nil {
		return word + " unreadable", err
	}
	word = strings.TrimSpace(fmt.Sprintf("%s %s %s", word, o.Status, o.Reason))
	if o.Status != api.OrderStatusConfirmed {
		return word, errors.New("not confirmed")
	}
	return word, nil
}

func (c *checkouts) token(customer string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	token, known := c.tokens[customer]
	if !known {
		token = c.opts.Token(customer)
		c.tokens[customer] = token
	}
	return token
}
