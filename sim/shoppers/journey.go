package shoppers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/shared/money"
)

// journey is everything one shopper does about one checkout, until what was ordered is settled.
func (s *Shoppers) journey(ctx context.Context, n int64, p plan) {
	key := fmt.Sprintf("shopper-%s-%d", s.run, n)
	card := p.card
	if card == "" {
		if s.opts.Cards > 0 {
			n %= s.opts.Cards
			if _, special := behaviours[p.path]; !special {
				p.token = brand(n)
			}
		}
		card = fmt.Sprint(n)
	}
	checkout := api.Checkout{
		Lines:           p.lines,
		Payment:         api.CheckoutPayment{Method: api.CheckoutPaymentMethodCard, Token: fmt.Sprintf("%s_%s_%s", p.token, s.run, card)},
		Email:           p.customer + "@example.com",
		ShippingAddress: api.Address{Name: "Shopper " + p.customer, Street: "Rua das Flores, 10", City: "São Paulo", State: "SP", PostalCode: "01310-100", Country: "BR"},
	}
	if p.series != nil {
		s.steal(ctx, p, key, checkout)
		return
	}
	if p.path != DoubleClickReleased && p.path != DoubleClickLeft {
		s.buy(ctx, p, key, checkout)
		return
	}
	var second sync.WaitGroup
	defer second.Wait()
	second.Go(func() {
		if pause(ctx, p.gap) {
			s.buy(ctx, p, key+"-b", checkout)
		}
	})
	s.buy(ctx, p, key, checkout)
}

// steal places one order after the other, and does not wait for what becomes of them.
func (s *Shoppers) steal(ctx context.Context, p plan, key string, checkout api.Checkout) {
	var all sync.WaitGroup
	defer all.Wait()
	for i, lines := range p.series {
		if i > 0 && !pause(ctx, p.gap) {
			return
		}
		one := p
		one.lines, checkout.Lines = lines, lines
		all.Go(func() { s.buy(ctx, one, fmt.Sprintf("%s-%d", key, i), checkout) })
	}
}

func (s *Shoppers) buy(ctx context.Context, p plan, key string, checkout api.Checkout) {
	began := time.Now()
	first, err := s.checkout(ctx, p, key, checkout)
	if err != nil {
		s.refused(ctx, p, err)
		return
	}
	if !p.wait {
		s.stats.took(s.stats.checkout, time.Since(began))
	}
	o, err := decode[api.Order](first)
	if err != nil {
		s.refused(ctx, p, err)
		return
	}
	s.placed(p, o)
	if p.repeat == again {
		second, err := s.shop.place(ctx, p.customer, key, checkout, p.wait)
		s.compare(ctx, key, first, second, err)
	}
	o, err = s.follow(ctx, p, key, o)
	if err != nil {
		if ctx.Err() == nil {
			s.opts.Log.Warn("an order was lost sight of", "order", o.Id, "path", p.path, "error", err)
		}
		return // it stays open
	}
	s.done(p, o, time.Since(began))
}

// checkout sends the order, twice at once where the plan says so.
func (s *Shoppers) checkout(ctx context.Context, p plan, key string, checkout api.Checkout) (first answer, err error) {
	if p.repeat != together {
		return s.shop.place(ctx, p.customer, key, checkout, p.wait)
	}
	var second answer
	var secondErr error
	var both sync.WaitGroup
	both.Go(func() { second, secondErr = s.shop.place(ctx, p.customer, key, checkout, p.wait) })
	first, err = s.shop.place(ctx, p.customer, key, checkout, p.wait)
	both.Wait()
	if err == nil {
		s.compare(ctx, key, first, second, secondErr)
	}
	return first, err
}

// compare holds the shop to its promise: a repeat gets the answer that the first request got.
func (s *Shoppers) compare(ctx context.Context, key string, first, second answer, err error) {
	if ctx.Err() != nil {
		return
	}
	same := err == nil && first.status == second.status && sameJSON(first.body, second.body) && (first.replayed || second.replayed)
	s.stats.count(func(now *Snapshot) {
		now.Repeats++
		if !same {
			now.Differing++
		}
	})
	if !same {
		s.opts.Log.Error("a repeated checkout got another answer", "key", key, "error", err,
			"first", string(first.body), "second", string(second.body), "replayed", second.replayed)
	}
}

func sameJSON(a, b []byte) bool {
	var left, right any
	return json.Unmarshal(a, &left) == nil && json.Unmarshal(b, &right) == nil && reflect.DeepEqual(left, right)
}

// follow watches an order until it is settled, and does on the way what the customer wants.
func (s *Shoppers) follow(ctx context.Context, p plan, key string, o api.Order) (api.Order, error) {
	todo, asked := p.path, nothing
	for {
		if act, wish := action(todo, o); act != nil {
			if todo != CancelledAtOnce && !pause(ctx, p.think) {
				return o, ctx.Err()
			}
			todo = Happy // it is done once
			var refused *RefusedError
			done, err := act(ctx, s.shop, o, key)
			switch {
			case err == nil:
				o, asked = done, wish
			case !errors.As(err, &refused): // else the order was faster than the customer
				return o, err
			}
		}
		if settled(o, asked) {
			return o, nil
		}
		var err error
		if o, err = s.poll(ctx, o); err != nil {
			return o, err
		}
	}
}

// poll waits for news of an order, taking turns with the others.
func (s *Shoppers) poll(ctx context.Context, o api.Order) (api.Order, error) {
	select {
	case s.polls <- struct{}{}:
	case <-ctx.Done():
		return o, ctx.Err()
	}
	defer func() { <-s.polls }()
	return s.shop.next(ctx, o)
}

type act func(ctx context.Context, shop *shop, o api.Order, key string) (api.Order, error)

// action is what the customer does next on a path, given the order as it is; nil: nothing (yet).
func action(todo Path, o api.Order) (act, wish) {
	paid := o.Status == api.OrderStatusConfirmed && o.FinancialStatus == api.FinancialStatusPaid
	switch {
	case todo == DoubleClickReleased && o.Status == api.OrderStatusOnHold:
		return func(ctx context.Context, shop *shop, o api.Order, key string) (api.Order, error) {
			return orderOf(shop.release(ctx, o, key+"-release"))
		}, nothing
	case todo == CancelledAtOnce, todo == CancelledOncePaid && paid:
		return func(ctx context.Context, shop *shop, o api.Order, key string) (api.Order, error) {
			return orderOf(shop.cancel(ctx, o, key+"-cancel"))
		}, cancellation
	case todo == PartiallyRefunded && paid:
		return func(ctx context.Context, shop *shop, o api.Order, key string) (api.Order, error) {
			third := money.New(max(1, o.Total.Amount/3), o.Total.Currency)
			return orderOf(shop.refund(ctx, o, key+"-refund", third))
		}, refund
	}
	return nil, nothing
}

func orderOf(a answer, err error) (api.Order, error) {
	if err != nil {
		return api.Order{}, err
	}
	return decode[api.Order](a)
}

func (s *Shoppers) placed(p plan, o api.Order) {
	s.stats.count(func(now *Snapshot) {
		now.Placed++
		now.Open++
		now.Paths[p.path]++
	})
	s.labels.placed(o.Id, p.path)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[o.Id] = struct{}{}
	for _, l := range p.lines {
		s.sold[l.Sku] += l.Quantity
	}
}

func (s *Shoppers) done(p plan, o api.Order, took time.Duration) {
	s.stats.count(func(now *Snapshot) {
		now.Open--
		now.Outcomes[outcome(o)]++
	})
	if p.path == Happy {
		s.stats.took(s.stats.settled, took)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, o.Id)
}

// refused notes a checkout that the shop did not take.
func (s *Shoppers) refused(ctx context.Context, p plan, err error) {
	if ctx.Err() != nil {
		return
	}
	s.stats.count(func(now *Snapshot) { now.Refused++ })
	s.opts.Log.Warn("the shop did not take an order", "path", p.path, "error", err)
}

// pause waits, and reports whether there is still something to do.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
