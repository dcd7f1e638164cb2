package saga

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/feira-shop/feira/services/orders"
	"github.com/feira-shop/feira/services/payments"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/money"
)

// Whatever people, the bank, the clock and the order of deliveries do: when all is quiet, every order has come to an
// end, all services agree about it, and the money and the pieces are where they belong.
func TestEveryOrderEndsSettled(t *testing.T) {
	t.Parallel()
	var ends endings
	t.Run("stories", func(t *testing.T) {
		for i := range 5 { // rapid tells a hundred stories each
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				rapid.Check(t, func(t *rapid.T) {
					w := newWorld(t)
					for range rapid.IntRange(20, 200).Draw(t, "steps") {
						w.step()
						w.checkAwaited()
					}
					w.quiet()
					w.giveBack()
					w.checkBooks()
					ends.add(w)
				})
			})
		}
	})
	if !t.Failed() {
		ends.demandAll(t)
	}
}

// step is one thing that happens somewhere.
func (w *world) step() {
	switch n := rapid.IntRange(0, 49).Draw(w.t, "step"); { // rapid likes small numbers
	case n < 20:
		w.deliver()
	case n < 40:
		w.call(true)
	case n < 44:
		w.person()
	case n < 47:
		w.pass(time.Duration(rapid.IntRange(0, 9).Draw(w.t, "seconds")) * time.Second)
	default:
		w.place()
	}
}

// rarely is true about one time in n or less. False is the simpler case, to which rapid reduces a failing story.
func rarely(t *rapid.T, n int, what string) bool { return rapid.IntRange(0, n).Draw(t, what) == n }

// backlog is what one consumer has still to hear of one partition.
type backlog struct {
	consumer  *consumer
	topic     string
	partition int
}

func (w *world) backlogs() []backlog {
	var all []backlog
	for _, c := range w.consumers {
		for _, topic := range c.topics {
			for p, next := range c.next[topic.Name] {
				if next < len(w.logs[topic.Name][p]) {
					all = append(all, backlog{c, topic.Name, p})
				}
			}
		}
	}
	return all
}

// deliver gives a consumer its next record of a partition, and sometimes again, as a replay would: that changes nothing.
func (w *world) deliver() {
	all := w.backlogs()
	if len(all) == 0 {
		return
	}
	b := all[rapid.IntRange(0, len(all)-1).Draw(w.t, "backlog")]
	next := &b.consumer.next[b.topic][b.partition]
	r := w.logs[b.topic][b.partition][*next]
	*next++
	b.consumer.apply(r, b.partition)
	if !rarely(w.t, 9, "again") {
		return
	}
	before, asked := w.ids, len(w.requests)
	b.consumer.apply(r, b.partition)
	if w.ids != before || len(w.requests) != asked {
		w.t.Fatalf("%s answered %s twice", b.consumer.name, r.Type)
	}
}

// call asks the bank one of the things that are to be asked. Its answer may be lost; then it is asked again some time.
func (w *world) call(mayBeLost bool) {
	if len(w.requests) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.requests)-1).Draw(w.t, "request")
	request := w.requests[i]
	order := orderOf(request)
	if _, ok := request.(payments.CaptureRequested); ok && !w.orders.states[orders.Stream(order)].Cleared {
		w.t.Fatalf("order %s: captured before fraud cleared it", order)
	}
	answer := w.bank.ask(request)
	if mayBeLost && rarely(w.t, 2, "lost") {
		return
	}
	w.requests = append(w.requests[:i:i], w.requests[i+1:]...)
	w.must(w.payments.handle(payments.StreamOf(order), answer))
}

// pass lets time go by: orders looks at what is due, and the relay of payments may send its ticks.
func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(d)
	for _, id := range w.placed {
		w.must(w.orders.handle(orders.Stream(id), orders.Expire{Now: w.now}))
	}
	if rapid.Bool().Draw(w.t, "tick") {
		for p := range partitions {
			w.log(events.Payments, p, events.Tick(events.Payments, int32(p), w.now))
		}
	}
}

func (w *world) place() {
	id := fmt.Sprintf("order-%d", len(w.placed))
	sku := rapid.SampledFrom([]string{"shirt", "mug"}).Draw(w.t, "sku")
	price, n := money.BRL(1999), rapid.Int64Range(1, 2).Draw(w.t, "pieces")
	total, err := price.Times(n)
	if err != nil {
		w.t.Fatal(err)
	}
	w.placed = append(w.placed, id)
	w.must(w.orders.handle(orders.Stream(id), orders.Place{
		Order: id, Number: id, Customer: "ana", PaymentMethod: "card", PlacedAt: w.now, ConfirmBy: w.now.Add(deadline),
		Lines:    []events.Line{{SKU: sku, Name: sku, Quantity: n, UnitPrice: price, Total: total}},
		Shipping: money.BRL(990), Discount: money.BRL(0), Fingerprint: id,
		Personal: events.Personal{Token: rapid.SampledFrom([]string{"tok_1", "tok_2", "tok_3", unnamedCard}).Draw(w.t, "card")},
	}))
}

// person is a customer or an operator who wants something of an order. They may be refused.
func (w *world) person() {
	if len(w.placed) == 0 {
		return
	}
	id := rapid.SampledFrom(w.placed).Draw(w.t, "order")
	key := rapid.SampledFrom([]string{"k1", "k2", "k3", "k4"}).Draw(w.t, "key")
	refund := orders.Refund{Command: key, By: "op", Reason: "broken", Operator: rapid.Bool().Draw(w.t, "operator")}
	if rapid.Bool().Draw(w.t, "part") {
		refund.Amount = money.BRL(rapid.Int64Range(1, 3000).Draw(w.t, "amount"))
	}
	cmd := rapid.SampledFrom([]any{
		orders.Cancel{Command: key, By: "ana"}, refund, refund,
		orders.Release{Command: key, By: "ana", Now: w.now, ConfirmBy: w.now.Add(deadline)},
		orders.Release{Command: key, By: "op", Operator: true, Now: w.now, ConfirmBy: w.now.Add(deadline)},
	}).Draw(w.t, "wish")
	if happened, err := w.orders.handle(orders.Stream(id), cmd); err == nil {
		w.must(happened, nil)
	}
}

// quiet lets all come to its end: the last people speak, the bank answers, the consumers catch up, and holds and
// deadlines run out, some of them before what they wait for comes.
func (w *world) quiet() {
	wishes := 30
	for range 10_000 {
		due, awaited := w.nextDue()
		switch busy := len(w.requests) > 0 || len(w.backlogs()) > 0; {
		case wishes > 0 && (!busy || rarely(w.t, 20, "wish")):
			wishes--
			w.person()
		case !busy && !awaited:
			return
		case awaited && (!busy || rarely(w.t, 60, "late")):
			w.pass(max(0, due.Sub(w.now)))
		case len(w.requests) > 0 && rapid.Bool().Draw(w.t, "bank first"):
			w.call(false)
		default:
			w.deliver()
		}
	}
	w.t.Fatal("it never becomes quiet")
}

// giveBack is an operator's work: money that the bank would not take back for a cancelled order is asked for again, of a
// bank that refuses nothing more.
func (w *world) giveBack() {
	w.bank.obliging = true
	for _, id := range w.placed {
		if o := w.orders.states[orders.Stream(id)]; o.Status == orders.Cancelled && o.Returned < o.Captured {
			w.must(w.orders.handle(orders.Stream(id), orders.Refund{Command: "again", By: "op", Reason: "refused", Operator: true}))
		}
	}
	w.quiet()
}

func (w *world) nextDue() (next time.Time, awaited bool) {
	for _, o := range w.orders.states {
		if at := time.UnixMicro(o.DueAt); o.DueAt > 0 && (!awaited || at.Before(next)) {
			next, awaited = at, true
		}
	}
	return next, awaited
}
