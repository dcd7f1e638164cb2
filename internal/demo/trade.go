package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/feira-shop/feira/shared/auth"
	"github.com/feira-shop/feira/sim/shoppers"
)

// settleFor bounds, together with the orders' deadline, how long the demo waits at its end for what is under way.
const settleFor = 90 * time.Second

func (d *demo) patience() time.Duration { return settleFor + d.opts.Deadline }

// errPostgresEnded says that the demo has nothing left to stand on.
var errPostgresEnded = errors.New("the database server ended by itself; its log is in the folder postgres below the demo's")

// trade lets the shoppers order until the time is over or ctx ends. With a time it settles, summarises and verifies.
func (d *demo) trade(ctx context.Context) error {
	buyers, err := d.shoppers()
	if err != nil {
		return err
	}
	d.background(d.watchHealth)
	ended, result := make(chan time.Time), error(nil)
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		cancel()
		<-ended
	}()
	go func() {
		defer close(ended)
		result = buyers.Run(work)
	}()

	began := time.Now()
	var over <-chan time.Time
	if d.opts.For > 0 {
		over = time.After(d.opts.For)
	}
	d.console.note("%s", d.announcement())
	if err := d.progress(ctx, buyers, over); err != nil {
		return err
	}
	if ctx.Err() != nil {
		d.console.note("stopping …")
		return ctx.Err()
	}
	d.console.note("letting every order settle …")
	traded := time.Since(began)
	buyers.Stop()
	if err := d.progress(ctx, buyers, ended); err != nil {
		return err
	}
	if ctx.Err() != nil {
		d.console.note("stopping …")
		return ctx.Err()
	}
	d.summarise(buyers.Snapshot(), traded)
	return errors.Join(result, d.verify(ctx))
}

func (d *demo) shoppers() (*shoppers.Shoppers, error) {
	o := shoppers.Options{
		BaseURL: d.shop, Rate: d.opts.Shoppers, Seed: uint64(d.opts.Seed), Settle: d.patience(), Log: d.log,
		Token: func(customer string) string { return d.token(customer, auth.Customer) },
	}
	if d.opts.Thieves > 0 { // a card of its own is used about every minute
		o.Thieves, o.Customers = d.opts.Thieves, max(200, int(60*d.opts.Shoppers))
	}
	if d.opts.Labels != "" {
		f, err := os.Create(d.opts.Labels)
		if err != nil {
			return nil, fmt.Errorf("write the labels (choose another file with --labels): %w", err)
		}
		d.stops = append(d.stops, func() { _ = f.Close() }) // each line was written through
		o.Labels = f
	}
	if !d.opts.leaves("inventory") && !d.opts.leaves("orders") { // else nobody can restock here
		o.OperatorToken = func() string { return d.token("shopkeeper", auth.Operator) }
	}
	return shoppers.New(o)
}

func (d *demo) announcement() string {
	who := fmt.Sprintf("%g new orders per second", d.opts.Shoppers)
	if d.opts.Shoppers == 0 {
		who = "nobody orders by itself"
	}
	if d.opts.For > 0 {
		return fmt.Sprintf("%s, for %s", who, d.opts.For)
	}
	return who + "; press Ctrl-C to stop"
}

// token signs one for the demo's own use.
func (d *demo) token(subject string, role auth.Role) string {
	t, err := d.infra.key.Sign(subject, []auth.Role{role}, time.Hour)
	if err != nil {
		d.log.Error("no token", "subject", subject, "error", err)
	}
	return t
}
