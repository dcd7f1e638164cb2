//go:build e2e

package compose

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/shared/auth"
	"github.com/feira-shop/feira/sim/shoppers"
)

// buy places an order with a token that feira token printed in the stack.
func buy(t *testing.T, key string) (o api.Order, token string) {
	t.Helper()
	return buyWith(t, strings.TrimSpace(shop.feira(t, "token", "--sub=ana")), key)
}

// buyWith is what the README's curl does. A card for each key, so that nothing looks like a double click.
func buyWith(t *testing.T, token, key string) (api.Order, string) {
	t.Helper()
	card := "tok_visa_" + regexp.MustCompile(`\W`).ReplaceAllString(key, "_")
	body := `{"email":"ana@example.com","lines":[{"sku":"CAFE-500G","quantity":1}],"payment":{"method":"card","token":"` + card + `"},
		"shipping_address":{"name":"Ana Souza","street":"Rua das Flores, 10","city":"Olinda","state":"PE","postal_code":"53020-100","country":"BR"}}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, shop.shop+"/v1/orders", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Idempotency-Key", key)
	req.Header.Set("Prefer", "wait=10")
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusCreated {
		t.Fatalf("%s %s %v", res.Status, answer, err)
	}
	var o api.Order
	if err := json.Unmarshal(answer, &o); err != nil {
		t.Fatal(err)
	}
	return o, token
}

// settleWithin is how long orders may take to settle after the last trouble.
const settleWithin = time.Minute

// crowd orders all the time, by every path an order can go. Who gets no answer asks again with the same key.
type crowd struct {
	*shoppers.Shoppers
	ended chan error
}

// perSecond is how many orders are placed, unless the environment says otherwise (RATE).
const perSecond = 50

func rate(t *testing.T) float64 {
	t.Helper()
	text := os.Getenv("RATE")
	if text == "" {
		return perSecond
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n <= 0 {
		t.Fatalf("RATE=%s is not a number of orders per second", text)
	}
	return n
}

func newCrowd(t *testing.T) *crowd {
	t.Helper()
	sign := func(who string, role auth.Role) string {
		token, err := shop.key.Sign(who, []auth.Role{role}, time.Hour)
		if err != nil {
			t.Error(err)
		}
		return token
	}
	buyers, err := shoppers.New(shoppers.Options{
		BaseURL: shop.shop, Rate: rate(t), Seed: 7, Settle: settleWithin,
		Token:         func(customer string) string { return sign(customer, auth.Customer) },
		OperatorToken: func() string { return sign("keeper", auth.Operator) },
	})
	if err != nil {
		t.Fatal(err)
	}
	c := &crowd{Shoppers: buyers, ended: make(chan error, 1)}
	go func() { c.ended <- buyers.Run(t.Context()) }()
	return c
}

// busy waits until so many more orders were placed.
func (c *crowd) busy(t *testing.T, more int64) {
	t.Helper()
	until := c.Snapshot().Placed + more
	eventually(t, "orders are placed", func() (bool, string) {
		now := c.Snapshot()
		return now.Placed >= until, strconv.FormatInt(now.Placed, 10)
	})
}

// settle ends the ordering and waits until every order that the shop took has settled. It gives how many there were.
func (c *crowd) settle(t *testing.T) int64 {
	t.Helper()
	began := time.Now()
	c.Stop()
	if err := <-c.ended; err != nil {
		t.Fatal(err)
	}
	s := c.Snapshot()
	t.Logf("%d orders, settled %s after the last one; %d requests were repeated for want of an answer, %d checkouts refused, slowest checkout %s; ends: %v",
		s.Placed, time.Since(began).Round(100*time.Millisecond), s.Retries, s.Refused, s.Checkout.Max.Round(time.Millisecond), s.Outcomes)
	if s.Refused > 0 {
		t.Errorf("%d checkouts were refused", s.Refused)
	}
	return s.Placed
}

var counted = regexp.MustCompile(`verify: (\d+) orders`)

// verified has feira verify look at every table, and gives how many orders there are.
func verified(t *testing.T) int64 {
	t.Helper()
	said := shop.feira(t, "verify", "--settled", "--wait=60s")
	if !strings.Contains(said, "verify: no difference") {
		t.Errorf("verify:\n%s", said)
	}
	match := counted.FindStringSubmatch(said)
	if match == nil {
		t.Fatalf("verify counted no orders:\n%s", said)
	}
	n, err := strconv.ParseInt(match[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
