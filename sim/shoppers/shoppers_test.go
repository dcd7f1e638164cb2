package shoppers

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func options(f *fakeShop) Options {
	return Options{
		BaseURL: f.base, Rate: 400, Seed: 7, Settle: time.Minute,
		Token: func(who string) string { return "ok-" + who }, OperatorToken: func() string { return "ok-keeper" },
	}
}

// ran has shoppers run until so many orders were placed, and stop.
func ran(t *testing.T, orders int, faulty bool, set func(*Options)) (*fakeShop, *Shoppers) {
	t.Helper()
	enough := make(chan struct{})
	shop := newFakeShop(t, func(f *fakeShop) {
		f.faulty = faulty
		f.onOrder = func(n int) {
			if n == orders {
				close(enough)
			}
		}
	})
	o := options(shop)
	set(&o)
	s := newShoppers(t, o)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(t.Context()) }()
	<-enough
	s.Stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return shop, s
}

// TestEveryPathOccursAndSettles runs until each path was taken twice, with and without a shop that loses requests.
func TestEveryPathOccursAndSettles(t *testing.T) {
	t.Parallel()
	for name, faulty := range map[string]bool{"healthy": false, "losing requests": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			shop, s := ran(t, 250, faulty, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
			checkRun(t, shop, s.Snapshot(), faulty)
			if strings.Contains(log.String(), "tok_") {
				t.Errorf("tokens in the log:\n%s", log.String())
			}
		})
	}
}

// Cards come back, as customers do.
func TestCardsComeBack(t *testing.T) {
	t.Parallel()
	shop, _ := ran(t, 100, false, func(o *Options) { o.Cards = 10 })
	cards, good := map[string]bool{}, map[string]bool{}
	for _, order := range shop.orders {
		cards[order.token[strings.LastIndex(order.token, "_"):]] = true
		if strings.HasPrefix(order.token, "tok_visa") || strings.HasPrefix(order.token, "tok_mastercard") {
			good[order.token] = true
		}
	}
	if len(cards) != 10 || len(good) != 10 {
		t.Errorf("%d orders were paid with %d cards, %d of them good, want 10", len(shop.orders), len(cards), len(good))
	}
	o := options(shop)
	o.Cards = -1
	if _, err := New(o); err == nil || !strings.Contains(err.Error(), "Cards") {
		t.Errorf("with -1 cards: %v", err)
	}
}

func checkRun(t *testing.T, shop *fakeShop, got Snapshot, faulty bool) {
	t.Helper()
	for _, path := range Unhappy {
		if got.Paths[path] < 2 {
			t.Errorf("%s: %d orders, want at least 2", path, got.Paths[path])
		}
	}
	for _, outcome := range []string{"confirmed/paid", "confirmed/partially_refunded", "cancelled/customer", "cancelled/payment_declined", "cancelled/out_of_stock", "cancelled/duplicate_purchase"} {
		if got.Outcomes[outcome] == 0 {
			t.Errorf("no order ended as %s: %v", outcome, got.Outcomes)
		}
	}
	if got.Placed != int64(len(shop.orders)) || got.Open != 0 || got.Refused != 0 || got.Repeats == 0 || got.Differing != 0 {
		t.Errorf("of %d orders: %+v", len(shop.orders), got)
	}
	if (got.Retries > 0) != faulty {
		t.Errorf("%d retries", got.Retries)
	}
	if got.Checkout.Count == 0 || got.Settled.Count == 0 || got.Checkout.Max < got.Checkout.P50 || got.Checkout.P50 <= 0 {
		t.Errorf("latencies %+v %+v", got.Checkout, got.Settled)
	}
	for _, o := range shop.orders {
		if !settled(o.Order, nothing) {
			t.Errorf("order %s is %s/%s", o.Id, o.Status, o.FinancialStatus)
		}
	}
}

func TestTheShelvesAreKeptFull(t *testing.T) {
	t.Parallel()
	received := make(chan string, 100)
	shop := newFakeShop(t, func(f *fakeShop) {
		f.products["ARROZ-5KG"] = 3         // somebody else bought it
		f.products["TRUFA-NEGRA-50G"] = 0   // scarce
		f.products["ADDED-BY-SOMEBODY"] = 0 // not in the first catalogue
	})
	o := options(shop)
	o.Rate = 0
	s := newShoppers(t, o)
	r := s.restocker()
	r.restocked = func(int64) { received <- "" }
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.loop(ctx)
	}()
	<-received
	cancel()
	<-ended
	o.Client = nil
	s.opts.Client.CloseIdleConnections()
	shop.mu.Lock()
	defer shop.mu.Unlock()
	if len(shop.receipts) != 1 || shop.products["ARROZ-5KG"] != 800 || shop.products["TRUFA-NEGRA-50G"] != 0 || shop.products["ADDED-BY-SOMEBODY"] != 0 {
		t.Errorf("receipts %v", shop.receipts)
	}
}

func TestADifferentAnswerToARepeatIsReported(t *testing.T) {
	t.Parallel()
	enough := make(chan struct{})
	shop := newFakeShop(t, func(f *fakeShop) {
		f.forgets = true
		f.onOrder = func(n int) {
			if n == 100 {
				close(enough)
			}
		}
	})
	s := newShoppers(t, options(shop))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(t.Context()) }()
	<-enough
	s.Stop()
	var differing *DifferingAnswerError
	if err := <-ended; !errors.As(err, &differing) || differing.Count == 0 {
		t.Errorf("a shop that forgets its answers passed: %v", err)
	}
}

func TestOrdersThatDoNotSettleAreReported(t *testing.T) {
	t.Parallel()
	placed := make(chan struct{}, 1)
	shop := newFakeShop(t, func(f *fakeShop) {
		f.stuck = true
		f.onOrder = func(int) {
			select {
			case placed <- struct{}{}:
			default:
			}
		}
	})
	o := options(shop)
	o.Settle = 300 * time.Millisecond
	s := newShoppers(t, o)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(t.Context()) }()
	<-placed
	s.Stop()
	var unsettled *UnsettledError
	if err := <-ended; !errors.As(err, &unsettled) || unsettled.Shoppers == 0 {
		t.Errorf("orders that never settle: %v", err)
	}
}

func newShoppers(t *testing.T, o Options) *Shoppers {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRunLeavesAtOnceWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	shop := newFakeShop(t, func(f *fakeShop) {
		f.stuck = true
		f.onOrder = func(int) { cancel() }
	})
	o := options(shop)
	o.Settle = time.Hour
	if err := newShoppers(t, o).Run(ctx); err != nil {
		t.Error(err)
	}
}

func TestARefusedTokenIsMadeAnew(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	shop := newFakeShop(t, func(f *fakeShop) { f.onOrder = func(int) { cancel() } })
	var made atomic.Int64
	o := options(shop)
	o.Rate, o.Customers = 20, 1
	o.Token = func(who string) string {
		if made.Add(1) == 1 {
			return "expired"
		}
		return "ok-" + who
	}
	if err := newShoppers(t, o).Run(ctx); err != nil || made.Load() != 2 {
		t.Errorf("%v, %d tokens made, want 2", err, made.Load())
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	_, err := New(Options{BaseURL: "shop", Rate: -1})
	for _, want := range []string{"BaseURL", "Rate", "Token"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}
