package analytics

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	spec "github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/services/analytics/api"
	"github.com/feira-shop/feira/shared/auth"
	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/kafka/kafkatest"
	"github.com/feira-shop/feira/shared/money"
	"github.com/feira-shop/feira/shared/pg/pgtest"
	"github.com/feira-shop/feira/shared/service"
	"github.com/feira-shop/feira/shared/web"
)

// wait bounds what a test waits for on a loaded machine.
const wait = 60 * time.Second

func TestMain(m *testing.M) {
	pgtest.Main(m)
}

// bed is analytics with a broker, a database, its API, and two services that say what a test has them say.
type bed struct {
	t        *testing.T
	db       *pgtest.DB
	broker   *kafka.Embedded
	def      service.Definition
	running  *service.Running
	router   chi.Router
	key      *auth.Key
	payments *service.Running
	orders   *service.Running
	said     int
}

func newBed(t *testing.T, cfg Config) *bed {
	t.Helper()
	b := &bed{t: t, def: Service(cfg), broker: kafkatest.New(t, events.Topics()...), db: pgtest.New(t)}
	b.payments = b.speaker("payments", events.Payments)
	b.orders = b.speaker("orders", events.Orders)
	b.must(b.def.Migrate(t.Context(), b.db.DSN))
	b.running = b.start(b.def, b.db.DSN)
	b.serve()
	return b
}

// speaker is a service that only says things.
func (b *bed) speaker(name string, topic events.Topic) *service.Running {
	b.t.Helper()
	fold := func(s struct{}, _ events.Event) struct{} { return s }
	def := service.Definition{Name: name, Publishes: topic, Streams: []decider.Kind{decider.KindOf("", 1, struct{}{}, fold)}}
	db := pgtest.New(b.t)
	b.must(def.Migrate(b.t.Context(), db.DSN))
	return b.start(def, db.DSN)
}

func (b *bed) start(def service.Definition, dsn string) *service.Running {
	b.t.Helper()
	r, err := service.Start(b.t.Context(), def, service.Config{DSN: dsn, Kafka: b.broker.Config(def.Name), Member: "m1"})
	b.must(err)
	b.t.Cleanup(func() { stop(r) })
	return r
}

func stop(r *service.Running) {
	limit, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	r.Stop(limit)
}

func (b *bed) serve() {
	b.t.Helper()
	description, err := spec.Spec()
	b.must(err)
	b.key, err = auth.NewKey()
	b.must(err)
	verifier, err := auth.StaticVerifier(b.key.JWKS(), auth.Options{})
	b.must(err)
	router, err := web.New(web.Options{Name: "analytics", Spec: description, Tags: []string{"analytics"}, Auth: verifier})
	b.must(err)
	b.def.Routes(b.running.Runtime, router)
	b.router = router
}

func (b *bed) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// say has a service say something that happened at a time.
func (b *bed) say(by *service.Running, at time.Time, e events.Event) {
	b.t.Helper()
	b.said++
	id, err := uuid.NewV7()
	b.must(err)
	encoded, err := eventstore.Encode(events.Meta{ID: id.String(), Time: at, Correlation: id.String()}, e)
	b.must(err)
	_, err = by.Runtime.Store.Append(b.t.Context(), eventstore.Append{
		Stream: fmt.Sprint("said-", b.said), Shape: 1, State: json.RawMessage(`{}`), Events: []eventstore.Event{encoded},
	})
	b.must(err)
}

func (b *bed) captured(at time.Time, account, card string, amount int64, currency string) {
	b.t.Helper()
	b.say(b.payments, at, events.PaymentCaptured{Purchase: purchase(account, card, money.New(amount, currency))})
}

func (b *bed) refunded(at time.Time, account, card string, amount int64, currency string) {
	b.t.Helper()
	b.say(b.payments, at, events.PaymentRefunded{
		Purchase: purchase(account, card, money.New(10*amount, currency)), Command: "c", Refunded: money.New(amount, currency), RefundedSoFar: money.New(amount, currency),
	})
}

func purchase(account, card string, amount money.Money) events.Purchase {
	return events.Purchase{Order: "o", Payment: "p", Customer: account, CardFingerprint: card, Amount: amount}
}

// cards has one for each partition of payments.
func cards() []string {
	found := map[int32]string{}
	for i := 0; len(found) < int(events.Payments.Partitions); i++ {
		card := "card-" + strconv.Itoa(i)
		found[kafka.Partition(card, 0, events.Payments.Partitions)] = card
	}
	all := make([]string, len(found))
	for p, card := range found {
		all[p] = card
	}
	return all
}

// pass has time go on in every partition: something happened then, that moves no money and sells nothing.
func (b *bed) pass(at time.Time) {
	b.t.Helper()
	for _, key := range cards() {
		b.captured(at, "time", key, 1, "XXX")
		b.say(b.orders, at, events.OrderConfirmed{Order: key, Lines: []events.Quantity{{SKU: "TIME", Quantity: 1}}})
	}
}

// call asks the API; who is "operator" or a customer.
func (b *bed) call(who, method, path, body string) *httptest.ResponseRecorder {
	b.t.Helper()
	role := auth.Customer
	if who == "operator" {
		role = auth.Operator
	}
	token, err := b.key.Sign(who, []auth.Role{role}, time.Hour)
	b.must(err)
	r := httptest.NewRequest(method, path, bytes.NewReader([]byte(body)))
	r.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	b.router.ServeHTTP(w, r)
	return w
}

// read asks for a page and fails unless it comes.
func read[P any](b *bed, who, path string) P {
	b.t.Helper()
	w := b.call(who, http.MethodGet, path, "")
	var page P
	raw, _ := io.ReadAll(w.Body)
	if w.Code != http.StatusOK {
		b.t.Fatalf("GET %s: %d %s", path, w.Code, raw)
	}
	b.must(json.Unmarshal(raw, &page))
	return page
}

// eventually looks until it is so.
func (b *bed) eventually(what string, ok func() bool) {
	b.t.Helper()
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for !ok() {
		select {
		case <-look.C:
		case <-deadline.C:
			b.t.Fatalf("waited in vain for: %s", what)
		}
	}
}

// spendIs is what the API shows of an account, in a form to compare.
func (b *bed) spendIs(who, account string, from time.Time) []string {
	b.t.Helper()
	page := read[api.SpendPage](b, who, "/v1/analytics/account-spend?limit=100&account="+account+"&from="+from.UTC().Format(time.RFC3339)+"&to="+from.Add(24*time.Hour).UTC().Format(time.RFC3339))
	var lines []string
	for _, s := range page.Data {
		if s.Open != (s.Revision == 0) || s.Captured.Currency != s.Currency || s.Refunded.Currency != s.Currency {
			b.t.Errorf("a window that does not fit itself: %+v", s)
		}
		lines = append(lines, fmt.Sprintf("%s %s–%s: %d for %d, back %d for %d, revision %d", s.Currency, s.WindowStart.Format("15:04"), s.WindowEnd.Format("15:04"),
			s.Captured.Amount, s.Payments, s.Refunded.Amount, s.Refunds, s.Revision))
	}
	return lines
}
