//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/internal/load"
	"github.com/feira-shop/feira/internal/shoptest"
)

// Traffic comes from so many customers with so many cards. A card is used again and again, so that it matters that its
// payments stay in order, and never within 5 s for the same amount, so that nothing is held as a duplicate.
const (
	customers = 50
	cards     = 100
	amounts   = 8
)

// One try of a checkout, and how long a customer goes on trying.
const (
	tryFor     = 10 * time.Second
	tryPause   = 250 * time.Millisecond
	giveUpWith = 2 * time.Minute
	longTrade  = 10 * time.Minute // traffic is ended long before
)

// traffic is an open loop of checkouts. A customer who gets no answer, or is told to come back, repeats the checkout
// under its key until it is taken: so in the end there must be exactly one order for each key.
type traffic struct {
	t      *testing.T
	s      *stack
	who    []*shoptest.Customer
	sku    string
	prefix string // of keys
	card   string

	end  context.CancelFunc
	done chan struct{}

	mu      sync.Mutex
	summary load.Summary
	placed  map[string]string // ids of orders by key
	again   map[string]int    // answers after which a checkout was repeated
}

// trade begins to place so many orders a second, until it is told to stop or the test ends.
func trade(t *testing.T, s *stack, perSecond float64) *traffic {
	t.Helper()
	tr := &traffic{
		t: t, s: s, sku: s.shop.Product(t, 1_000, 1_000_000), prefix: s.shop.Key(), card: s.shop.Card("tok_visa"),
		done: make(chan struct{}), placed: map[string]string{}, again: map[string]int{},
	}
	for range customers {
		tr.who = append(tr.who, s.shop.Customer(t))
	}
	ctx, end := context.WithCancel(context.Background())
	tr.end = end
	go func() {
		defer close(tr.done)
		summary, err := load.Run(ctx, load.Options{Do: tr.checkout, Rate: perSecond, Duration: longTrade, Drain: giveUpWith})
		if err != nil {
			t.Error(err)
		}
		tr.summary = summary
	}()
	t.Cleanup(func() { end(); <-tr.done })
	return tr
}

// checkout is one customer's.
func (tr *traffic) checkout(ctx context.Context, n int64) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveUpWith) // the end of traffic ends no checkout
	defer cancel()
	who, key := tr.who[n%customers], fmt.Sprintf("%s-%d", tr.prefix, n)
	body := who.Checkout(tr.sku, n/cards%amounts+1, fmt.Sprintf("%s_%d", tr.card, n%cards))
	for {
		word, done := tr.try(ctx, who, key, body)
		if done {
			return word, nil
		}
		tr.mu.Lock()
		tr.again[word]++
		tr.mu.Unlock()
		select {
		case <-ctx.Done():
			tr.t.Errorf("checkout %s was repeated for %s; its last answer is %q", key, giveUpWith, word)
			return word, ctx.Err()
		case <-time.After(tryPause):
		}
	}
}

func (tr *traffic) try(ctx context.Context, who *shoptest.Customer, key string, body api.Checkout) (word string, done bool) {
	ctx, cancel := context.WithTimeout(ctx, tryFor)
	defer cancel()
	res, err := who.PlaceOrderWithResponse(ctx, &api.PlaceOrderParams{IdempotencyKey: key}, body)
	switch {
	case err != nil:
		return "no answer", false
	case res.JSON201 != nil:
		tr.mu.Lock()
		defer tr.mu.Unlock()
		tr.placed[key] = res.JSON201.Id
		return "201", true
	case res.StatusCode() >= http.StatusInternalServerError || res.StatusCode() == http.StatusTooManyRequests:
		return res.Status(), false
	}
	tr.t.Errorf("checkout %s was answered %s %s", key, res.Status(), res.Body)
	return res.Status(), true
}

// count is how many orders were placed so far.
func (tr *traffic) count() int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return len(tr.placed)
}

// await waits until so many more orders were placed.
func (tr *traffic) await(more int) {
	tr.t.Helper()
	want := tr.count() + more
	must(tr.t, await(tr.t.Context(), fmt.Sprintf("%d orders to be placed", want), func(context.Context) error {
		if n := tr.count(); n < want {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	}))
}

// stop ends the traffic and holds what the shop has against what it answered: each order is in the store, and there is
// one for each key.
func (tr *traffic) stop() {
	t := tr.t
	t.Helper()
	tr.end()
	<-tr.done
	sent := tr.summary.OK + tr.summary.Failed
	t.Logf("%d checkouts, %d answered with an order; p50 %s, p99 %s, max %s; repeated: %v",
		sent, tr.count(), tr.summary.P50.Round(time.Millisecond), tr.summary.P99.Round(time.Millisecond), tr.summary.Max.Round(time.Millisecond), tr.again)
	var who []string
	for _, c := range tr.who {
		who = append(who, c.ID)
	}
	var kept, all int64
	const keptSQL = "select count(*) from streams where stream = any(select 'order-' || id from unnest($1::text[]) id)"
	const allSQL = "select count(*) from events where type = 'shop.feira.order.placed.v1' and data ->> 'customer' = any($1)"
	must(t, tr.s.shop.Pool("orders").QueryRow(t.Context(), keptSQL, slices.Collect(maps.Values(tr.placed))).Scan(&kept))
	must(t, tr.s.shop.Pool("orders").QueryRow(t.Context(), allSQL, who).Scan(&all))
	if kept != int64(tr.count()) || all != sent {
		t.Errorf("%d keys, %d answers, of which the store has %d; in all it has %d orders of these customers", sent, tr.count(), kept, all)
	}
}

// repeats is how often a checkout had to be repeated so far.
func (tr *traffic) repeats() (n int) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for _, times := range tr.again {
		n += times
	}
	return n
}
