package shoppers

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/feira-shop/feira/internal/seed"
)

const (
	maxRate          = 1000
	maxThieves       = 0.5
	defaultCustomers = 200
	defaultSettle    = 2 * time.Minute
	// maxPolls bounds how many orders are waited for over HTTP at the same time; the others take turns.
	maxPolls = 256
	// maxOpen bounds how many orders may be under way; beyond it no new ones are placed.
	maxOpen = 20_000
)

// Options say who orders what, and where.
type Options struct {
	BaseURL string  // of the shop's public API
	Rate    float64 // new checkouts per second, 0 to 1000; 0: only restock
	Seed    uint64  // the same seed makes the same choices
	// Token makes a bearer token of a customer. It is called again when the shop refuses one.
	Token func(customer string) string
	// OperatorToken makes one that may receive stock. nil: nobody restocks.
	OperatorToken func() string
	Products      []seed.Product // nil: the first catalogue
	Customers     int            // how many there are; 0: 200
	Cards         int64          // good ones, used in turn, and as many of each bad kind; 0: each order has one of its own
	// Thieves is the share of all orders that are fraud ([Fraudulent]), 0 to 0.5. While there are some, the other
	// shoppers use their own cards again and again, so that there are habits to tell them by.
	Thieves float64
	// Labels is told of every order whether it is fraud, as CSV with the columns order and label; nil: nobody.
	Labels io.Writer
	// Settle is how long Run waits, once stopped, for its orders to settle; 0: 2 minutes.
	Settle time.Duration
	Client *http.Client // nil: one with enough connections
	Log    *slog.Logger // nil: none
}

// validate sets defaults and collects everything that is wrong.
func (o *Options) validate() error {
	var wrong []error
	if u, err := url.Parse(o.BaseURL); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		wrong = append(wrong, fmt.Errorf("option BaseURL %q must be the shop's http or https address", o.BaseURL))
	}
	if o.Cards < 0 {
		wrong = append(wrong, fmt.Errorf("option Cards %d must be 0 or more", o.Cards))
	}
	if o.Rate < 0 || o.Rate > maxRate {
		wrong = append(wrong, fmt.Errorf("option Rate %g must be 0 to %d checkouts per second", o.Rate, maxRate))
	}
	if !(o.Thieves >= 0 && o.Thieves <= maxThieves) {
		wrong = append(wrong, fmt.Errorf("option Thieves %g must be a share of 0 to %g", o.Thieves, maxThieves))
	}
	if o.Token == nil {
		wrong = append(wrong, errors.New("option Token is missing: nobody could order"))
	}
	if o.Products == nil {
		o.Products = seed.Products()
	}
	if !slices.ContainsFunc(o.Products, func(p seed.Product) bool { return !p.Scarce }) {
		wrong = append(wrong, errors.New("option Products has none that is restocked: there is nothing to buy"))
	}
	if o.Customers <= 0 {
		o.Customers = defaultCustomers
	}
	if o.Settle <= 0 {
		o.Settle = defaultSettle
	}
	if o.Client == nil {
		o.Client = &http.Client{Transport: &http.Transport{MaxIdleConns: 2 * maxPolls, MaxIdleConnsPerHost: 2 * maxPolls, IdleConnTimeout: time.Minute}}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if err := errors.Join(wrong...); err != nil {
		return fmt.Errorf("shoppers: %w", err)
	}
	return nil
}

// UnsettledError says that shoppers were still waiting when the time was up.
type UnsettledError struct {
	Shoppers int      // how many
	Orders   []string // ids of their orders; fewer than shoppers when checkouts were not answered
	After    time.Duration
}

func (e *UnsettledError) Error() string {
	return fmt.Sprintf("shoppers: %d are still waiting after %s, with %d orders that are not settled, for example %v; see their history under /v1/orders/{id}/events",
		e.Shoppers, e.After, len(e.Orders), e.Orders[:min(3, len(e.Orders))])
}

// DifferingAnswerError says that a request that was repeated with the same key got another answer.
type DifferingAnswerError struct{ Count int64 }

func (e *DifferingAnswerError) Error() string {
	return fmt.Sprintf("shoppers: %d repeated checkouts got another answer than the first time; the log has them", e.Count)
}

// Shoppers is one run.
type Shoppers struct {
	opts     Options
	run      string // makes keys and cards fresh
	shop     *shop
	stats    *stats
	labels   *labels
	polls    chan struct{}
	places   chan struct{}
	stop     chan struct{}
	stopOnce sync.Once

	mu   sync.Mutex
	open map[string]struct{} // ids of orders under way
	sold map[string]int64    // pieces ordered, by SKU
}

// New makes a run. Nothing happens before [Shoppers.Run].
func New(o Options) (*Shoppers, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	var nonce [4]byte
	if _, err := rand.Read(nonce[:]); err != nil {
		return nil, fmt.Errorf("shoppers: %w", err)
	}
	s := &Shoppers{
		opts: o, run: hex.EncodeToString(nonce[:]), stats: newStats(), labels: newLabels(o.Labels),
		polls: make(chan struct{}, maxPolls), places: make(chan struct{}, maxOpen), stop: make(chan struct{}),
		open: map[string]struct{}{}, sold: map[string]int64{},
	}
	token := func(who string) string {
		if who == keeper {
			return o.OperatorToken()
		}
		return o.Token(who)
	}
	var err error
	s.shop, err = newShop(o.BaseURL, token, o.Client, func() { s.stats.count(func(now *Snapshot) { now.Retries++ }) })
	return s, err
}

// Stop ends the ordering; Run then waits for the orders that are under way.
func (s *Shoppers) Stop() { s.stopOnce.Do(func() { close(s.stop) }) }

// Snapshot says how the run stands. It may be called at any time.
func (s *Shoppers) Snapshot() Snapshot { return s.stats.snapshot() }

// Run orders and restocks until Stop, then waits until every order of this run is settled, Options.Settle at most,
// and returns an [*UnsettledError] or [*DifferingAnswerError] when something was wrong. When ctx ends it leaves
// everything as it is and returns nil.
func (s *Shoppers) Run(ctx context.Context) error {
	defer s.opts.Client.CloseIdleConnections()
	journeys, leave := context.WithCancel(ctx)
	var keeping, shopping sync.WaitGroup
	defer keeping.Wait()
	defer shopping.Wait()
	defer leave()
	if s.opts.OperatorToken != nil {
		keeping.Go(func() { s.restocker().loop(journeys) })
	}
	s.order(journeys, &shopping)

	finished := make(chan struct{})
	go func() {
		defer close(finished)
		shopping.Wait()
	}()
	limit := time.NewTimer(s.opts.Settle)
	defer limit.Stop()
	select {
	case <-finished:
	case <-ctx.Done():
		return nil
	case <-limit.C:
		return &UnsettledError{Shoppers: len(s.places), Orders: s.unsettled(), After: s.opts.Settle}
	}
	if n := s.Snapshot().Differing; n > 0 {
		return &DifferingAnswerError{Count: n}
	}
	if err := s.labels.failure(); err != nil {
		return fmt.Errorf("shoppers: the labels are not complete: %w", err)
	}
	return nil
}

// order starts a journey at every beat. A beat that comes while too many orders are under way is left out.
func (s *Shoppers) order(ctx context.Context, shopping *sync.WaitGroup) {
	var beat <-chan time.Time
	if s.opts.Rate > 0 {
		ticker := time.NewTicker(time.Duration(float64(time.Second) / s.opts.Rate))
		defer ticker.Stop()
		beat = ticker.C
	}
	for n := int64(0); ; n++ {
		select {
		case <-beat:
		case <-s.stop:
			return
		case <-ctx.Done():
			return
		}
		select {
		case s.places <- struct{}{}:
		case <-s.stop:
			return
		case <-ctx.Done():
			return
		}
		shopping.Go(func() {
			defer func() { <-s.places }()
			s.journey(ctx, n, s.plan(n))
		})
	}
}

// plan decides about checkout n.
func (s *Shoppers) plan(n int64) plan {
	o := s.opts
	p := planFor(o.Seed, n, o.Customers, o.Products)
	if o.Thieves == 0 {
		return p
	}
	return among(p, o.Thieves, o.Seed, n, o.Customers, o.Products)
}

func (s *Shoppers) restocker() *restocker {
	products := slices.DeleteFunc(slices.Clone(s.opts.Products), func(p seed.Product) bool { return p.Scarce })
	return &restocker{
		shop: s.shop, run: s.run, products: products, left: map[string]int64{},
		sold: func(sku string) int64 {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.sold[sku]
		},
		restocked: func(pieces int64) { s.stats.count(func(now *Snapshot) { now.Restocked += pieces }) },
		failed:    func(sku string, err error) { s.opts.Log.Warn("could not restock", "sku", sku, "error", err) },
	}
}

func (s *Shoppers) unsettled() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]string, 0, len(s.open))
	for id := range s.open {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}
