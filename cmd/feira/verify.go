package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/feira-shop/feira/internal/oracle"
	"github.com/feira-shop/feira/internal/shop"
	"github.com/feira-shop/feira/shared/pg"
	"github.com/feira-shop/feira/shared/service"
)

type verifyCmd struct {
	databases `embed:""`
	judging   `embed:""`
	windowing `embed:""`
	brokers   `embed:""`

	Settled bool          `help:"Exit code 1 also when orders are still open, as some always are while a shop trades."`
	Wait    time.Duration `default:"0s" help:"Wait up to so long for open orders to settle."`
}

// errDiffers makes the exit code 1; the differences were printed.
var errDiffers = errors.New("what is printed above is not as it should be")

// Run examines the shop.
func (c *verifyCmd) Run(ctx context.Context) error {
	services := shop.Services(shop.Config{})
	if err := c.reach(ctx, services); err != nil {
		return err
	}
	judges, err := c.config()
	if err != nil {
		return err
	}
	counts, err := c.analytics()
	if err != nil {
		return err
	}
	report, err := oracle.Examine(ctx, oracle.Config{
		Services: services, DSN: c.dsn, Settle: c.Wait, Fraud: judges, Analytics: counts, Kafka: c.kafka("feira-verify"),
		Progress: func(what string) { fmt.Fprintln(os.Stderr, "verify:", what) },
	})
	if err != nil {
		return err
	}
	oracle.Print(os.Stdout, report)
	if !report.Clean() || c.Settled && len(report.Open) > 0 {
		return errDiffers
	}
	return nil
}

// reach says of all databases at once which cannot be read.
func (c *verifyCmd) reach(ctx context.Context, services []service.Definition) error {
	names := []string{"provider"}
	for _, d := range services {
		names = append(names, d.Name)
	}
	wrong := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			dsn, err := c.dsn(name)
			if err != nil {
				wrong[i] = err
				return
			}
			conn, err := pg.Connect(ctx, dsn, "feira-verify", nil)
			if err != nil {
				wrong[i] = fmt.Errorf("the database of %s: %w", name, err)
				return
			}
			wrong[i] = conn.Close(ctx)
		})
	}
	all.Wait()
	return errors.Join(wrong...)
}
