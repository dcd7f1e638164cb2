package saga

import (
	"encoding/json"
	"hash/fnv"
	"strconv"
	"time"

	"pgregory.net/rapid"

	"github.com/feira-shop/feira/services/fraud"
	"github.com/feira-shop/feira/services/inventory"
	"github.com/feira-shop/feira/services/loyalty"
	"github.com/feira-shop/feira/services/orders"
	"github.com/feira-shop/feira/services/payments"
	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
)

const (
	deadline   = 30 * time.Second
	hold       = 10 * time.Second
	partitions = 2 // of each topic
)

// world is the shop: what each service keeps, and the log between them.
type world struct {
	t         *rapid.T
	now       time.Time
	registry  *events.Registry
	logs      map[string]*[partitions][]events.Recorded // by topic
	consumers []*consumer

	orders       aggregates[orders.Order]
	payments     aggregates[payments.Payment]
	reservations aggregates[inventory.Reservation]
	accounts     aggregates[loyalty.Account]
	shelves      inventory.Shelves
	judge        fraud.Judge
	cards        map[string]fraud.Profile // by card
	partitionOf  map[string]int           // of the same
	newest       [partitions]time.Time    // highest event time of each partition of payments
	disorder     time.Duration            // that fraud allows

	bank     *bank
	requests []events.Event // of payments to the bank, whose answers it has not heard
	placed   []string       // ids of the orders
	ids      int
}

// aggregates are the streams of one kind, kept as the store keeps them.
type aggregates[S any] struct {
	rules  decider.Decider[S]
	states map[string]S
}

func newAggregates[S any](rules decider.Decider[S]) aggregates[S] {
	return aggregates[S]{rules, map[string]S{}}
}

// handle runs a command and returns what happened.
func (a aggregates[S]) handle(stream string, cmd any) ([]events.Event, error) {
	state, known := a.states[stream]
	if !known {
		state = a.rules.Initial
	}
	happened, err := a.rules.Decide(state, cmd)
	if err != nil || len(happened) == 0 {
		return nil, err
	}
	for _, e := range happened {
		state = a.rules.Evolve(state, e)
	}
	data, err := json.Marshal(state)
	if err != nil {
		return nil, err
	}
	var kept S
	err = json.Unmarshal(data, &kept)
	a.states[stream] = kept
	return happened, err
}

// consumer is one service that hears topics: each partition in order, and at its own pace.
type consumer struct {
	name   string
	topics []events.Topic
	next   map[string]*[partitions]int
	apply  func(r events.Recorded, partition int)
}

func newWorld(t *rapid.T) *world {
	w := &world{
		t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), registry: events.NewRegistry(),
		logs:        map[string]*[partitions][]events.Recorded{},
		orders:      newAggregates(orders.Rules),
		payments:    newAggregates(decider.Decider[payments.Payment]{Decide: payments.Decide, Evolve: payments.Evolve}),
		accounts:    newAggregates(loyalty.Rules),
		shelves:     inventory.Shelves{"shirt": {OnHand: 5}, "mug": {OnHand: 3}},
		judge:       fraud.Config{}.Judge(),
		cards:       map[string]fraud.Profile{},
		partitionOf: map[string]int{},
		disorder:    rapid.SampledFrom([]time.Duration{deadline, time.Second}).Draw(t, "disorder"),
		bank:        newBank(t),
	}
	w.reservations = newAggregates(decider.Decider[inventory.Reservation]{Decide: w.decideStock, Evolve: inventory.Evolve})
	for _, topic := range events.Topics() {
		w.logs[topic.Name] = new([partitions][]events.Recorded)
	}
	w.consume("orders", routed(w, w.orders, orders.Routes(hold)), events.Payments, events.Inventory, events.Fraud)
	w.consume("payments", routed(w, w.payments, payments.Routes()), events.Orders)
	w.consume("loyalty", routed(w, w.accounts, loyalty.Routes()), events.Payments)
	w.consume("inventory", w.reserve, events.Orders)
	w.consume("fraud", w.verdict, events.Payments)
	return w
}

func (w *world) consume(name string, apply func(events.Recorded, int), topics ...events.Topic) {
	c := &consumer{name: name, topics: topics, next: map[string]*[partitions]int{}, apply: apply}
	for _, topic := range topics {
		c.next[topic.Name] = new([partitions]int)
	}
	w.consumers = append(w.consumers, c)
}

// routed turns events into commands by a service's own routes. An error would park the event, and its order with it.
func routed[S any](w *world, a aggregates[S], routes []decider.Route) func(events.Recorded, int) {
	return func(r events.Recorded, _ int) {
		for _, route := range routes {
			if route.Type != r.Type {
				continue
			}
			if stream, cmd := route.Route(r); stream != "" {
				w.must(a.handle(stream, cmd))
			}
		}
	}
}

// must publishes what happened, which may be nothing, but not an error.
func (w *world) must(happened []events.Event, err error) {
	if err != nil {
		w.t.Fatalf("a fact was refused: %v", err)
	}
	for _, e := range happened {
		w.record(e)
	}
}

// record writes an event to its topic, through JSON, or hands a private one to the bank.
func (w *world) record(e events.Event) {
	topic, public := events.TopicOf(e.EventType())
	if !public {
		if isRequest(e) {
			w.requests = append(w.requests, e)
		}
		return
	}
	data, err := json.Marshal(e)
	if err != nil {
		w.t.Fatal(err)
	}
	read, err := w.registry.Decode(e.EventType(), data)
	if err != nil {
		w.t.Fatal(err)
	}
	w.ids++
	w.log(topic, partitionOf(e.EventKey()), events.Recorded{
		Meta: events.Meta{ID: strconv.Itoa(w.ids), Time: w.now, Correlation: "story"}, Type: e.EventType(), Key: e.EventKey(), Event: read,
	})
}

func (w *world) log(topic events.Topic, partition int, r events.Recorded) {
	records := &w.logs[topic.Name][partition]
	*records = append(*records, r)
}

func partitionOf(key string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return int(h.Sum32() % partitions)
}

// decideStock is inventory's decision with the shelves as they are, which what happened then changes.
func (w *world) decideStock(r inventory.Reservation, cmd any) ([]events.Event, error) {
	happened, err := inventory.Decide(w.shelves, r, cmd)
	for _, e := range happened {
		inventory.Apply(w.shelves, e)
	}
	for sku, s := range w.shelves {
		if s.Reserved < 0 || s.Reserved > s.OnHand {
			w.t.Fatalf("%s: %+v", sku, s)
		}
	}
	return happened, err
}

func (w *world) reserve(r events.Recorded, _ int) {
	switch e := r.Event.(type) {
	case events.OrderPlaced:
		lines := make([]events.Quantity, len(e.Lines))
		for i, l := range e.Lines {
			lines[i] = events.Quantity{SKU: l.SKU, Quantity: l.Quantity}
		}
		w.must(w.reservations.handle(inventory.Stream(e.Order), inventory.Reserve{Order: e.Order, Lines: lines}))
	case events.OrderCancelled:
		w.must(w.reservations.handle(inventory.Stream(e.Order), inventory.Release{Order: e.Order}))
	}
}

// verdict is fraud: one by event time, with a watermark for each partition.
func (w *world) verdict(r events.Recorded, partition int) {
	var p events.Purchase
	at := r.Time
	switch e := r.Event.(type) {
	case events.PaymentAuthorized:
		p, at = e.Purchase, e.PurchasedAt
	case events.PaymentVoided:
		p, at = e.Purchase, e.PurchasedAt
	default:
		if r.Type != events.TickType {
			return
		}
	}
	if key := fraud.Key(p); key != "" {
		if first, known := w.partitionOf[key]; known && first != partition {
			w.t.Fatalf("card %s is on two partitions, whose order is nobody's", p.CardFingerprint)
		}
		w.partitionOf[key] = partition
		late := at.Before(w.newest[partition].Add(-w.disorder))
		after, verdicts := w.judge.Apply(w.cards[key], r, late)
		w.cards[key] = after
		w.must(verdicts, nil)
	}
	if at.After(w.newest[partition]) {
		w.newest[partition] = at
	}
}
