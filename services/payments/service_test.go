package payments

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/jobs"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/pg/pgtest"
	"github.com/feira-shop/feira/sim/provider"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// patience bounds what a test waits for on a loaded machine.
const patience = 60 * time.Second

// shop is payments with its operator, jobs and a provider, without Kafka: events are handed to the operator.
type shop struct {
	t        *testing.T
	store    *eventstore.Store
	db       *pgtest.DB
	provider *pgtest.DB
	down     atomic.Bool      // the provider answers nothing but 503
	cut      atomic.Int64     // of a hundred answers, so many are lost after the work was done
	handler  operator.Handler // of the service's operator
}

func newShop(t *testing.T, timeout time.Duration) *shop {
	t.Helper()
	s := &shop{
		t: t, db: pgtest.New(t, eventstore.Migrations()), provider: pgtest.New(t, provider.Migrations()),
	}
	must(t, jobs.Migrate(t.Context(), s.db.DSN))
	url := s.startProvider()
	def := Service(Config{ProviderURL: url, ProviderKey: "sk", Timeout: timeout})
	s.store = eventstore.New(s.db.Pool, eventstore.Options{Service: def.Name, Registry: def.Registry()})
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.store.Run(ctx) })
	t.Cleanup(func() { stop(); wg.Wait() })
	client, err := jobs.Start(t.Context(), def.Jobs, jobs.Options{Store: s.store})
	must(t, err)
	t.Cleanup(func() { must(t, client.Stop(context.Background())) })
	s.handler = def.Operators[0].Handler(s.store)
	return s
}

func (s *shop) startProvider() (url string) {
	server := provider.New(provider.Options{Pool: s.provider.Pool, Key: "sk"})
	handler := server.Handler()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if rand.Int64N(100) < s.cut.Load() {
			handler.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler) // the money has moved, the answer is lost
		}
		handler.ServeHTTP(w, r)
	}))
	s.t.Cleanup(func() { server.Close(); web.CloseClientConnections(); web.Close() })
	return web.URL
}

// hear hands events to the operator, as one batch in one transaction.
func (s *shop) hear(evs ...events.Event) {
	s.t.Helper()
	batch := make([]operator.Record, len(evs))
	for i, e := range evs {
		batch[i].Recorded = events.Recorded{Meta: events.Meta{ID: fmt.Sprint("cause-", i), Correlation: "story"}, Type: e.EventType(), Event: e}
	}
	for { // against the outcomes of jobs, as the operator's loop does
		err := s.apply(batch)
		var conflict *eventstore.ConflictError
		if !errors.As(err, &conflict) {
			must(s.t, err)
			return
		}
	}
}

func (s *shop) apply(batch []operator.Record) error {
	tx, err := s.store.Begin(s.t.Context())
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := s.handler.Apply(s.t.Context(), tx, batch); err != nil {
		return err
	}
	return tx.Commit(s.t.Context(), "es_commit")
}

func order(id, token string) events.OrderPlaced {
	o := placed()
	o.Order, o.Personal.Token = id, token
	return o
}

func confirmed(id string) events.Event {
	return events.OrderConfirmed{Order: id, Total: placed().Total}
}
func orderCancelled(id string) events.Event {
	return events.OrderCancelled{Order: id, Reason: events.ReasonCustomer}
}
func refundRequested(id, command string, cents int64) events.Event {
	return events.OrderRefundRequested{Order: id, Command: command, Amount: brl(cents)}
}

// until waits for a status.
func (s *shop) until(id string, status Status) Payment {
	s.t.Helper()
	changed, stop := s.store.Watch(StreamOf(id))
	defer stop()
	timeout := time.After(patience)
	for {
		now, err := decider.Load(s.t.Context(), s.store, aggregate(), StreamOf(id))
		must(s.t, err)
		if now.State.Status == status {
			return now.State
		}
		select {
		case <-changed:
		case <-timeout:
			s.t.Fatalf("order %s never became %s: %+v", id, status, now.State)
		}
	}
}

// quiet waits until no job is left.
func (s *shop) quiet() {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		var left int
		must(s.t, s.db.Pool.QueryRow(s.t.Context(), "select count(*) from river_job where state <> 'completed'").Scan(&left))
		if left == 0 {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%d jobs are left", left)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// published lists the names of what was published of an order.
func (s *shop) published(id string) []string {
	s.t.Helper()
	history, err := s.store.History(s.t.Context(), StreamOf(id), eventstore.Until{})
	must(s.t, err)
	var names []string
	for _, r := range history {
		if r.Correlation != "story" {
			s.t.Errorf("%s of %s belongs to the story %q", r.Type, id, r.Correlation)
		}
		if _, public := events.TopicOf(r.Type); public {
			names = append(names, r.Type[len("shop.feira.payment."):len(r.Type)-len(".v1")])
		}
	}
	return names
}

func (s *shop) expect(id string, names ...string) {
	s.t.Helper()
	if got := s.published(id); !slices.Equal(got, names) {
		s.t.Errorf("order %s published %v, expected %v", id, got, names)
	}
}

func (s *shop) ledger() map[string]provider.Authorization {
	s.t.Helper()
	all := map[string]provider.Authorization{}
	must(s.t, provider.Ledger(s.t.Context(), s.provider.Pool, func(a provider.Authorization) error {
		if _, twice := all[a.Reference]; twice {
			s.t.Errorf("payment %s was authorised twice", a.Reference)
		}
		all[a.Reference] = a
		return nil
	}))
	return all
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestOrdersArePaid(t *testing.T) {
	t.Parallel()
	s := newShop(t, 0)
	s.hear(order("ok", "tok_visa_a"), order("no", "tok_insufficient_funds_b"), order("hiccup", "tok_processing_error_c"))
	p := s.until("ok", Reserved)
	if p.Purchase.CardFingerprint == "" || p.Purchase.EventKey() != p.Purchase.CardFingerprint {
		t.Errorf("the card is not known: %+v", p.Purchase)
	}
	s.hear(confirmed("ok"))
	s.until("ok", Taken)
	s.hear(refundRequested("ok", "r1", 1500), refundRequested("ok", "r2", 5000), refundRequested("ok", "r1", 1500), refundRequested("ok", "r3", 4000))
	s.until("ok", GivenBack)
	s.until("no", Refused)
	s.until("hiccup", Reserved)
	s.quiet()
	s.expect("ok", "authorized", "captured", "refunded", "refund_failed", "refunded")
	s.expect("no", "declined")
	s.expect("hiccup", "authorized")
	if a := s.ledger()[PaymentID("ok")]; a.Captured != 5500 || a.Refunded != 5500 {
		t.Errorf("the provider says %+v", a)
	}
}

// A provider that charges and answers too late is asked again with the same key: one charge.
func TestChargedOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t, 300*time.Millisecond)
	s.hear(order("o1", "tok_timeout_after_charge_a"))
	s.until("o1", Reserved)
	s.quiet()
	s.expect("o1", "authorized")
	var attempt int
	must(t, s.db.Pool.QueryRow(t.Context(), "select attempt from river_job").Scan(&attempt))
	if attempt < 2 || len(s.ledger()) != 1 {
		t.Errorf("%d attempts, %d authorisations", attempt, len(s.ledger()))
	}
}

// Cancelled while the authorisation is in flight: the void goes by its key and takes back what was charged.
func TestCancelWhileAuthorizing(t *testing.T) {
	t.Parallel()
	s := newShop(t, 5*time.Second)
	s.hear(order("o1", "tok_timeout_after_charge_a"))
	deadline := time.Now().Add(patience)
	for len(s.ledger()) == 0 { // charged, and the answer does not come
		if time.Now().After(deadline) {
			t.Fatal("never charged")
		}
		<-time.After(5 * time.Millisecond)
	}
	s.hear(orderCancelled("o1"))
	p := s.until("o1", GivenUp)
	if p.Purchase.CardFingerprint == "" {
		t.Error("the void did not say which card it was")
	}
	s.quiet()
	s.expect("o1", "voided")
	if a := s.ledger()[PaymentID("o1")]; a.Status != provider.Voided {
		t.Errorf("the provider still holds %+v", a)
	}
}

// Cancelled before the provider was ever reached: the void blocks the authorisation, whichever comes first.
func TestCancelWhileTheProviderIsDown(t *testing.T) {
	t.Parallel()
	s := newShop(t, 0)
	s.down.Store(true)
	s.hear(order("o1", "tok_visa_a"), order("o2", "tok_visa_b"))
	s.hear(orderCancelled("o1"), orderCancelled("o3"))
	s.hear(order("o3", "tok_visa_c"))
	s.until("o3", GivenUp) // never asked, so answered at once
	s.down.Store(false)
	s.until("o1", GivenUp)
	s.until("o2", Reserved)
	s.quiet()
	s.expect("o3", "voided")
	ledger := s.ledger()
	if a, there := ledger[PaymentID("o1")]; there && a.Status != provider.Voided {
		t.Errorf("the provider holds %+v", a)
	}
	if _, there := ledger[PaymentID("o3")]; there {
		t.Error("an order that was cancelled before it was placed was charged")
	}
}

func TestCaptureAndRefundThatAreRefused(t *testing.T) {
	t.Parallel()
	s := newShop(t, 0)
	s.hear(order("o1", "tok_capture_fails_a"), order("o2", "tok_refund_fails_b"))
	s.until("o1", Reserved)
	s.until("o2", Reserved)
	s.hear(confirmed("o1"), confirmed("o2"))
	s.until("o1", CaptureFailed)
	s.until("o2", Taken)
	s.hear(orderCancelled("o1"), orderCancelled("o2"))
	s.until("o1", GivenUp)
	s.quiet()
	s.expect("o1", "authorized", "capture_failed", "voided")
	s.expect("o2", "authorized", "captured", "refund_failed")
}

// TestMoneyRaces sends many orders through every way at once, with a provider that loses every tenth answer, and
// compares the books: what payments believes is what the provider did.
func TestMoneyRaces(t *testing.T) {
	t.Parallel()
	s := newShop(t, time.Second)
	s.cut.Store(10)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	tokens := []string{"tok_visa", "tok_mastercard", "tok_declined", "tok_processing_error", "tok_capture_fails"}
	const orders = 150
	open := map[string][]events.Event{} // what is yet to be heard of each order, in order
	for i := range orders {
		id := fmt.Sprintf("o%03d", i)
		open[id] = []events.Event{order(id, fmt.Sprintf("%s_%d", tokens[r.IntN(len(tokens))], i))}
	}
	for len(open) > 0 {
		for id, todo := range open {
			if r.IntN(3) == 0 {
				continue
			}
			s.hear(todo...)
			if next := s.follow(r, id, todo); next != nil {
				open[id] = next
			} else {
				delete(open, id)
			}
		}
	}
	s.cut.Store(0)
	s.quiet()
	s.compare()
}

// follow says what an order does after what was heard of it; nil: nothing more.
func (s *shop) follow(r *rand.Rand, id string, heard []events.Event) []events.Event {
	now, err := decider.Load(s.t.Context(), s.store, aggregate(), StreamOf(id))
	must(s.t, err)
	switch p := now.State; {
	case reflect.TypeOf(heard[0]) == reflect.TypeFor[events.OrderCancelled]():
		return nil
	case r.IntN(6) == 0, p.Status == CaptureFailed, p.Status == Refused:
		return []events.Event{orderCancelled(id)}
	case p.Status == Reserved:
		return []events.Event{confirmed(id)}
	case p.Status == Taken && len(p.Commands) < 3:
		command := fmt.Sprint("r", len(p.Commands))
		return []events.Event{refundRequested(id, command, r.Int64N(3000)), refundRequested(id, command, 1)}
	case p.Status == Taken, p.Status == GivenBack:
		return nil
	}
	return heard // it waits for the provider; hearing a thing again changes nothing
}

func (s *shop) compare() {
	s.t.Helper()
	ledger := s.ledger()
	ends := map[Status]int{}
	for _, k := range s.streams() {
		now, err := decider.Load(s.t.Context(), s.store, aggregate(), k)
		must(s.t, err)
		p := now.State
		ends[p.Status]++
		a := ledger[p.Purchase.Payment]
		if p.Refunded != a.Refunded || p.Kept() != a.Captured-a.Refunded {
			s.t.Errorf("%s: refunded %d, kept %d; the provider says %+v", k, p.Refunded, p.Kept(), a)
		}
		if p.Cancelled && !slices.Contains(final, p.Status) {
			s.t.Errorf("%s is cancelled, but %s", k, p.Status)
		}
		if p.Status == GivenUp && (a.Captured > 0 || a.ID != "" && a.Status != provider.Voided && a.Status != provider.Declined) {
			s.t.Errorf("%s is voided; the provider says %+v", k, a)
		}
		if p.InFlight != nil || len(p.Queue) > 0 {
			s.t.Errorf("%s still has refunds to make: %+v", k, p)
		}
	}
	s.t.Logf("ends: %v", ends)
	for _, status := range final {
		if ends[status] == 0 {
			s.t.Errorf("no order ended %s: the test does not reach it", status)
		}
	}
}

func (s *shop) streams() []string {
	rows, err := s.db.Pool.Query(s.t.Context(), "select stream from streams order by stream")
	must(s.t, err)
	defer rows.Close()
	var all []string
	for rows.Next() {
		var name string
		must(s.t, rows.Scan(&name))
		all = append(all, name)
	}
	must(s.t, rows.Err())
	return all
}

// TestServiceHearsAndKeeps: routes, private events and kinds of jobs that a release must not lose.
func TestServiceHearsAndKeeps(t *testing.T) {
	t.Parallel()
	def := Service(Config{})
	types := slices.Sorted(slices.Values(def.Operators[0].Types))
	want := []string{"shop.feira.order.cancelled.v1", "shop.feira.order.confirmed.v1", "shop.feira.order.placed.v1", "shop.feira.order.refund_requested.v1"}
	if !slices.Equal(types, want) || def.Operators[0].Name != "payments.pay" {
		t.Errorf("%s hears %v", def.Operators[0].Name, types)
	}
	var kinds []string
	for _, j := range def.Jobs {
		kinds = append(kinds, j.Kind)
	}
	if !slices.Equal(kinds, []string{"payment_authorize", "payment_capture", "payment_void", "payment_refund"}) {
		t.Errorf("kinds of jobs: %v", kinds)
	}
	for _, e := range def.Private {
		if _, public := events.TopicOf(e.EventType()); public {
			t.Errorf("%s is private, but published", e.EventType())
		}
	}
}
