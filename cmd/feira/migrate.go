package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/feira-shop/feira/internal/shop"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/pg"
	"github.com/feira-shop/feira/sim/provider"
)

type migrateCmd struct {
	databases `embed:""`
	brokers   `embed:""`

	Services    []string      `arg:"" optional:"" help:"Services whose databases to migrate, provider, or topics: no database, the topics only. None: all services."`
	Replication int16         `env:"FEIRA_KAFKA_REPLICATION" default:"0" help:"Copies of each partition of topics that are made; 0: three, or as many as there are brokers."`
	MinInSync   int16         `name:"min-insync" env:"FEIRA_KAFKA_MIN_INSYNC" default:"0" help:"Copies that must have an event before it is acknowledged; 0: one less than there are copies, at least 1. Also set on topics that are there, if given."`
	Retention   time.Duration `name:"clicks-retention" env:"FEIRA_CLICKS_RETENTION" default:"0" help:"How long clicks are kept, at least 1h; 0: 168h for a new topic, and unchanged for one that is there. Events are kept for ever."`
	Topics      bool          `default:"true" negatable:"" help:"Also make and check the topics."`
}

// Run migrates.
func (c *migrateCmd) Run(ctx context.Context) error {
	if len(c.Services) == 0 {
		c.Services = []string{"all"}
	}
	for _, name := range c.Services {
		var err error
		switch {
		case name == "provider":
			err = c.provider(ctx)
		case name != "topics":
			err = c.services(ctx, name)
		case !c.Topics:
			err = errors.New("topics and --no-topics contradict each other: leave one out")
		}
		if err != nil {
			return err
		}
	}
	if !c.Topics {
		return nil
	}
	if err := kafka.EnsureTopics(ctx, c.kafka("feira-migrate"), events.Topics(), c.options()); err != nil {
		return err
	}
	fmt.Println("checked", len(events.Topics()), "topics")
	return nil
}

// services migrates the databases that a name stands for.
func (c *migrateCmd) services(ctx context.Context, name string) error {
	picked, err := shop.Select(shop.Services(shop.Config{}), name)
	if err != nil {
		return err
	}
	for _, d := range picked {
		dsn, err := c.dsn(d.Name)
		if err != nil {
			return err
		}
		if err := d.Migrate(ctx, dsn); err != nil {
			return fmt.Errorf("migrate %s: %w", d.Name, err)
		}
		fmt.Println("migrated", d.Name)
	}
	return nil
}

func (c *migrateCmd) options() kafka.EnsureOptions {
	return kafka.EnsureOptions{
		Replication: c.Replication, MinInSync: c.MinInSync, Retention: c.Retention,
		Report: func(what string) { fmt.Println(what) },
	}
}

func (c *migrateCmd) provider(ctx context.Context) error {
	dsn, err := c.dsn("provider")
	if err != nil {
		return err
	}
	if err := pg.Migrate(ctx, dsn, provider.Migrations()); err != nil {
		return fmt.Errorf("migrate the provider: %w", err)
	}
	fmt.Println("migrated provider")
	return nil
}
