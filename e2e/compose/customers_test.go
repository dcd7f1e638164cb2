//go:build e2e

package compose

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/internal/load"
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

// Who orders: most want the one thing that all shops do, some take every path that an order can go.
const (
	perSecond = 50 // unless the environment says otherwise (RATE)
	oddShare  = 10 // one in so many
)

// settleWithin is how long orders may take to settle after the last trouble.
const settleWithin = time.Minute

// crowd orders all the time. Who gets no answer, or is told to come back, asks again with the same key.
type crowd struct {
	odd     *shoppers.Shoppers
	ended   chan error
	stop    context.CancelFunc
	placed  atomic.Int64 // by the others
	repeats atomic.Int64
	summary load.Summary
	done    chan struct{}
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
	customer := func(who string) string { return sign(who, auth.Customer) }
	c := &crowd{ended: make(chan error, 1), done: make(chan struct{})}
	var err error
	c.odd, err = shoppers.New(shoppers.Options{
		BaseURL: shop.shop, Rate: rate(t) / oddShare, Seed: 7, Settle: settleWithin, Token: customer,
		OperatorToken: func() string { return sign("keeper", auth.Operator) },
	})
	if err != nil {
		t.Fatal(err)
	}
	checkout, closeClient, err := load.Checkout(load.CheckoutOptions{BaseURL: shop.shop, Token: customer, InFlight: inFlight})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	c.stop = stop
	go func() { c.ended <- c.odd.Run(t.Context()) }()
	go func() {
		defer close(c.done)
		defer closeClient()
		options := load.Options{Do: c.patiently(ctx, checkout), Rate: rate(t) - rate(t)/oddShare, Duration: time.Hour, InFlight: inFlight}
		if c.summary, err = load.Run(ctx, options); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { stop(); <-c.done })
	return c
}

// inFlight is enough for the longest outage.
const inFlight = 5000

// patiently repeats a checkout until the shop has taken it. Once the trade is over, those under way are still finished.
func (c *crowd) patiently(trade context.Context, checkout load.Do) load.Do {
	return func(ctx context.Context, n int64) (string, error) {
		if trade.Err() != nil {
			return "not begun", nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		for {
			word, err := checkout(ctx, n)
			if err == nil {
				c.placed.Add(1)
				return word, nil
			}
			c.repeats.Add(1)
			select {
			case <-ctx.Done():
				return word, err
			case <-time.After(250 * time.Millisecond):
			}
		}
	}
}

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

// orders is how many the shop has taken so far.
func (c *crowd) orders() int64 { return c.placed.Load() + c.odd.Snapshot().Placed }

// busy waits until so many more orders were placed.
func (c *crowd) busy(t *testing.T, more int64) {
	t.Helper()
	until := c.orders() + more
	eventually(t, "orders are placed", func() (bool, string) {
		now := c.orders()
		return now >= until, fmt.Sprint(now)
	})
}

// settle ends the ordering and waits until every order has come to its end. There must be as many as the shop took.
func (c *crowd) settle(t *testing.T, before int64) {
	t.Helper()
	began := time.Now()
	c.stop()
	c.odd.Stop()
	<-c.done
	if err := <-c.ended; err != nil {
		t.Error(err)
	}
	if c.summary.Failed > 0 {
		t.Errorf("%d checkouts were never taken: %v", c.summary.Failed, c.summary.Words)
	}
	conn := open(t, "orders")
	within(t, settleWithin, "every order settles", func() (bool, string) {
		var open int
		err := conn.QueryRow(t.Context(), unsettled).Scan(&open)
		return err == nil && open == 0, fmt.Sprint(open, " are not settled, ", err)
	})
	s := c.odd.Snapshot()
	t.Logf("%d orders at %g a second, all settled %s after the last one; %d requests were repeated; slowest checkout %s; of the odd ones %v",
		c.orders(), rate(t), time.Since(began).Round(100*time.Millisecond), c.repeats.Load()+s.Retries, c.summary.Max.Round(time.Millisecond), s.Outcomes)
	if now := verified(t); now != before+c.orders() {
		t.Errorf("the shop took %d orders in addition to %d, and has %d", c.orders(), before, now)
	}
}

// unsettled counts orders that are still to be confirmed or cancelled, paid or voided. It costs the recovering shop less
// than feira verify, which reads everything.
const unsettled = `select count(*) from streams where state ->> 'status' in ('placed', 'on_hold')
	or state ->> 'status' = 'confirmed' and state ->> 'financial_status' in ('pending', 'authorized')
	or state ->> 'status' = 'cancelled' and state ->> 'financial_status' = 'authorized'`

// taken is how many orders the shop has.
func taken(t *testing.T) (n int64) {
	t.Helper()
	if err := open(t, "orders").QueryRow(t.Context(), "select count(*) from streams").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// open connects to a service's database as that service.
func open(t *testing.T, service string) *pgx.Conn {
	t.Helper()
	dsn, err := shop.address(service)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
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
