package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/feira-shop/feira/internal/load"
	"github.com/feira-shop/feira/shared/auth"
)

type loadCmd struct {
	URL      string        `name:"url" env:"FEIRA_URL" default:"http://127.0.0.1:8080" help:"Address of the shop."`
	Rate     float64       `xor:"how" placeholder:"N" help:"Open loop: checkouts per second, whether or not earlier ones were answered."`
	Clients  int           `xor:"how" placeholder:"N" help:"Closed loop: so many clients, each with one checkout at a time (default without --rate: 16)."`
	Duration time.Duration `default:"30s" help:"For how long, up to 24h."`
	Wait     time.Duration `help:"Ask answers to wait for the order to get somewhere (Prefer: wait), whole seconds up to 10."`
	Key      string        `env:"FEIRA_TOKEN_KEY" required:"" type:"path" placeholder:"FILE" help:"Private key that the customers' tokens are signed with."`
}

// Run puts the load on and prints what its customers felt.
func (c *loadCmd) Run(ctx context.Context) error {
	if c.Rate == 0 && c.Clients == 0 {
		c.Clients = 16
	}
	key, err := auth.LoadKey(c.Key)
	if err != nil {
		return err
	}
	do, done, err := load.Checkout(load.CheckoutOptions{BaseURL: c.URL, Wait: c.Wait, Token: func(customer string) string {
		token, err := key.Sign(customer, []auth.Role{auth.Customer}, c.Duration+time.Hour)
		if err != nil {
			return "" // the shop then says 401
		}
		return token
	}})
	if err != nil {
		return err
	}
	defer done()
	options := load.Options{Do: do, Rate: c.Rate, Clients: c.Clients, Duration: c.Duration}
	if term.IsTerminal(int(os.Stderr.Fd())) {
		bar := progressbar.NewOptions64(c.Duration.Milliseconds(), progressbar.OptionSetWriter(os.Stderr),
			progressbar.OptionSetPredictTime(false), progressbar.OptionClearOnFinish())
		options.Progress = func(s load.Summary) {
			bar.Describe(fmt.Sprintf("%.0f/s, p50 %s, p99 %s, %d failed", s.Achieved, s.P50.Round(time.Microsecond*100), s.P99.Round(time.Microsecond*100), s.Failed))
			_ = bar.Set64(min(s.Elapsed, c.Duration).Milliseconds()) // a picture only
		}
	}
	summary, err := load.Run(ctx, options)
	if err != nil {
		return err
	}
	if err := summary.Write(os.Stdout); err != nil {
		return err
	}
	if summary.OK == 0 {
		return fmt.Errorf("not one checkout went well; is the shop at %s, and does it take tokens of %s?", c.URL, c.Key)
	}
	return nil
}
