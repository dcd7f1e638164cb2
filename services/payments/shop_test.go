package payments

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
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
	lost     atomic.Int64     // answers so far
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
			s.lost.Add(1)
			handler.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler) // the money has moved, the answer is lost
		}
		if strings.HasSuffix(r.URL.Path, "/refunds") {
			s.refund(handler, w, r)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	s.t.Cleanup(func() { server.Close(); web.CloseClientConnections(); web.Close() })
	return web.URL
}

// refund passes a refund on and holds payments to its own rule: it never asks for more than is left.
func (s *shop) refund(handler http.Handler, w http.ResponseWriter, r *http.Request) {
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, r)
	if strings.Contains(answer.Body.String(), `"amount_exceeds_captured"`) {
		s.t.Errorf("the provider had to refuse a refund: %s", answer.Body)
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // the client may be gone
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

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
