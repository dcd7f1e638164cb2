package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/feira-shop/feira/internal/oracle"
	"github.com/feira-shop/feira/internal/shop"
)

type verifyCmd struct {
	connect `embed:""`

	Settled bool          `help:"Exit code 1 also when orders are still open."`
	Wait    time.Duration `default:"0s" help:"Wait up to so long for open orders to settle."`
}

// errDiffers makes the exit code 1; the differences were printed.
var errDiffers = errors.New("what is printed above is not as it should be")

// Run examines the shop.
func (c *verifyCmd) Run(ctx context.Context) error {
	report, err := oracle.Examine(ctx, oracle.Config{
		Services: shop.Services(shop.Config{}), DSN: c.dsn, Settle: c.Wait,
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
