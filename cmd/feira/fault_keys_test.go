package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/shared/auth"
	"github.com/feira-shop/feira/shared/faulttest"
)

const (
	retries  = 20 // of one key, all at once
	keysOnce = 16 // keys whose retries are under way at the same time
)

// Checkouts are repeated at once under their keys, some with a changed body and some keys by two customers, while orders
// is killed in the middle of requests. There is one order for each key of each customer; the one body gets equal answers,
// the other is refused; nobody waits for ever.
func TestFaultCheckoutsRepeated(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{
		Number: 11, Name: "REST idempotency",
		Does: "Each key is used 20 times at once, one in ten with a changed body, one in ten by two customers, while orders is killed; one order per key and customer, equal answers, 422 for the changed.",
	})
	f := newFleet(t, "orders")
	orders := f.mustRun("orders")
	w := &repeater{t: t, run: run, orders: f.address["orders"], key: keyOf(t, f.demo.env["FEIRA_TOKEN_KEY"])}
	keys, kills := run.Times(60, 2000), run.Times(3, 20)
	dice := run.Dice()
	todo, killAfter := make(chan checkouts), keys/(kills+1)
	var clients sync.WaitGroup
	for range keysOnce {
		clients.Go(func() {
			for c := range todo {
				w.repeat(c)
			}
		})
	}
	for n := range keys {
		if n > 0 && n%killAfter == 0 { // with requests of many keys under way
			orders.kill()
			orders = f.again("orders")
			run.Count("kills", 1)
		}
		todo <- checkouts{key: fmt.Sprintf("again_%d", n), customer: fmt.Sprintf("customer_%d", n%50), changed: dice.IntN(10) == 0, shared: dice.IntN(10) == 0}
	}
	close(todo)
	clients.Wait()
	if t.Failed() {
		return
	}
	f.awaitReady("orders")
	const placedSQL = "select count(*) from events where type = 'shop.feira.order.placed.v1'"
	if n := one[int64](t, f.demo.database(t, "orders"), placedSQL); n != w.wanted.Load() {
		t.Errorf("%d orders were placed, under %d keys of customers", n, w.wanted.Load())
	}
	run.Count("keys", keys)
	run.Count("requests", int(w.sent.Load()))
	run.Count("requests without an answer", int(w.lost.Load()))
	if w.lost.Load() == 0 {
		t.Error("no request was cut off: the kills hit nothing")
	}
	has(t, f.demo.feira(t, "verify", "--settled", "--wait=60s").ok(t), "verify: no difference")
}

// again starts a service that is needed at once, and does not wait for it.
func (f *fleet) again(name string) *process {
	f.t.Helper()
	p, err := f.start(name, "")
	if err != nil {
		f.t.Fatal(err)
	}
	return p
}

// checkouts are all that come under one key.
type checkouts struct {
	key, customer string
	changed       bool // some of them have another body
	shared        bool // another customer uses the same key
}

// repeater sends checkouts until each has an answer.
type repeater struct {
	t      *testing.T
	run    *faulttest.Run
	orders string
	key    *auth.Key

	wanted, sent, lost atomic.Int64
}

// repeat sends all that comes under one key, at once, and holds the answers to each other.
func (w *repeater) repeat(c checkouts) {
	mine := w.atOnce(c, c.customer)
	w.one(c, mine)
	if !c.shared {
		return
	}
	others := w.atOnce(checkouts{key: c.key}, c.customer+"_other")
	w.one(c, others)
	if first, other := placed(mine), placed(others); first == other {
		w.t.Errorf("key %s of two customers is one order, %s", c.key, first)
	}
}

// reply is what a checkout was answered.
type reply struct {
	quantity, status int
	body             string
}

func (w *repeater) atOnce(c checkouts, customer string) []reply {
	w.wanted.Add(1)
	token := sign(w.key, customer, auth.Customer)
	replies := make([]reply, retries)
	var all sync.WaitGroup
	for i := range replies {
		all.Go(func() {
			quantity := 1
			if c.changed && i%10 == 0 { // the first as well: either body may win
				quantity = 2
			}
			replies[i] = w.send(customer, token, c.key, quantity)
		})
	}
	all.Wait()
	return replies
}

// send repeats a checkout until it has an answer.
func (w *repeater) send(customer, token, key string, quantity int) reply {
	body := checkoutBody(quantity, "tok_visa_"+customer+"_"+key)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		w.sent.Add(1)
		status, answer, err := request(ctx, http.MethodPost, "http://"+w.orders+"/v1/orders", token, body, map[string]string{"Idempotency-Key": key})
		if err == nil && status < http.StatusInternalServerError {
			return reply{quantity, status, string(answer)}
		}
		w.lost.Add(1)
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			w.t.Errorf("key %s got no answer within %s: %d, %v", key, patience, status, err)
			return reply{quantity, 0, ""}
		}
	}
}

// one demands that one body was taken and gets equal answers, and that the other is refused by name.
func (w *repeater) one(c checkouts, replies []reply) {
	var won *reply
	for i := range replies {
		if replies[i].status == http.StatusCreated {
			won = &replies[i]
			break
		}
	}
	if won == nil {
		w.t.Errorf("key %s: no order; the first answer is %+v", c.key, replies[0])
		return
	}
	for _, r := range replies {
		var problem api.Problem
		switch {
		case r.quantity == won.quantity && r == *won:
		case r.quantity != won.quantity && r.status == http.StatusUnprocessableEntity &&
			json.Unmarshal([]byte(r.body), &problem) == nil && problem.Code == "idempotency_key_reused":
			w.run.Count("refused as changed", 1)
		default:
			w.t.Errorf("key %s: %d pieces were taken with %s; %d pieces were answered %d %s", c.key, won.quantity, won.body, r.quantity, r.status, r.body)
		}
	}
}

// placed is the order of the answers.
func placed(replies []reply) string {
	for _, r := range replies {
		var o api.Order
		if r.status == http.StatusCreated && json.Unmarshal([]byte(r.body), &o) == nil {
			return o.Id
		}
	}
	return ""
}
