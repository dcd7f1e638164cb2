package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/internal/shop"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/pg"
	"github.com/feira-shop/feira/shared/relay"
	"github.com/feira-shop/feira/shared/service"
)

// ownStore is a service whose store and topic are mended while it is stopped.
type ownStore struct {
	admin `embed:""`

	Service string `arg:"" help:"The service; it must be stopped, all its replicas."`
	DryRun  bool   `help:"Only say what would be done; nothing is changed."`
	Yes     bool   `help:"Do it without asking."`
}

// find gives the service and the address of its database.
func (c ownStore) find() (service.Definition, string, error) {
	picked, err := shop.Select(shop.Services(shop.Config{}), c.Service)
	if err != nil {
		return service.Definition{}, "", err
	}
	dsn, err := c.dsn(c.Service)
	return picked[0], dsn, err
}

// note writes to the audit, under the name of the service's relay.
func (c ownStore) note(action string) relay.Note {
	return func(ctx context.Context, tx pgx.Tx, detail string) error {
		return operator.Note(ctx, tx, c.Service+".relay", action, c.who(), detail)
	}
}

type republishCmd struct {
	ownStore `embed:""`
}

// Run has the relay begin with the first event.
func (c *republishCmd) Run(ctx context.Context) error {
	d, dsn, err := c.find()
	if err != nil {
		return err
	}
	a, err := relay.PublishAnew(ctx, dsn, d.Publishes, true, nil)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%s, published to %s up to position %d of %d, would be published anew, from position 1", c.Service, d.Publishes.Name, a.Position, a.Newest)
	if c.DryRun {
		fmt.Println(what + "; nothing was changed")
		return nil
	}
	if err := confirm(ctx, what, c.Yes); err != nil {
		return err
	}
	if _, err := relay.PublishAnew(ctx, dsn, d.Publishes, false, c.note("republish")); err != nil {
		return err
	}
	fmt.Printf("start %s: it publishes anew, from position 1. Then, for each operator that stopped with TopicReplacedError:\n"+
		"feira admin accept-gap --yes OPERATOR %s all\n", c.Service, d.Publishes.Name)
	return nil
}

type recoverCmd struct {
	ownStore `embed:""`
	brokers  `embed:""`
}

// Run copies what a store lost back from its topic.
func (c *recoverCmd) Run(ctx context.Context) error {
	d, dsn, err := c.find()
	if err != nil {
		return err
	}
	if !d.FromLog {
		return fmt.Errorf("%s keeps more than it publishes, which is not on the topic: restore a later backup, or promote a replica that has the events", c.Service)
	}
	r, err := relay.Recover(ctx, dsn, c.kafka("feira-admin"), d.Publishes, true, nil)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%s has %s of %s that the store lost; %s since, to come after them",
		d.Publishes.Name, plural(r.Events, "event"), plural(len(r.Streams), "stream"), plural(r.Moved, "event"))
	if c.DryRun {
		fmt.Println(what + "; nothing was changed")
		return nil
	}
	if err := confirm(ctx, what, c.Yes); err != nil {
		return err
	}
	if r, err = relay.Recover(ctx, dsn, c.kafka("feira-admin"), d.Publishes, false, c.note("recover")); err != nil {
		return err
	}
	fmt.Println(plural(r.Events, "event"), "came back")
	pool, err := pg.Open(ctx, dsn, pg.PoolOptions{Name: "feira-admin", MaxConns: 2})
	if err != nil {
		return err
	}
	defer pool.Close()
	store := eventstore.New(pool, eventstore.Options{Service: d.Name, Registry: d.Registry()})
	done, err := d.Rebuild(ctx, store, false, func(service.Rebuilt) {})
	if err != nil {
		return fmt.Errorf("the events are back, the states of their streams not: give feira admin rebuild %s: %w", c.Service, err)
	}
	fmt.Printf("%d states were computed anew; start %s\n", done.Changed, c.Service)
	return nil
}
