// Command feira runs the shop: as a demo on embedded infrastructure, or any part of it against real addresses.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

type cli struct {
	EnvFile string `placeholder:"FILE" help:"File of NAME=value lines to take variables from, such as the demo's feira.env; also FEIRA_ENV_FILE."`

	Demo    demoCmd    `cmd:"" help:"Run the whole shop on embedded Kafka and Postgres, with simulated shoppers."`
	Run     runCmd     `cmd:"" help:"Run services, the gateway or the provider simulator against given addresses."`
	Migrate migrateCmd `cmd:"" help:"Bring databases and topics up to date."`
	Verify  verifyCmd  `cmd:"" help:"Recompute every table from the event stores and print what differs."`
	Load    loadCmd    `cmd:"" help:"Put load on a shop and measure latencies."`
	Admin   adminCmd   `cmd:"" help:"Look after operators: lag, pause, parked records, holes, states."`
	Token   tokenCmd   `cmd:"" help:"Sign a token for the API."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := loadEnv(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "feira: error:", err)
		os.Exit(1) //nolint:gocritic // nothing was started yet
	}
	var c cli
	k := kong.Parse(&c, kong.Name("feira"), kong.Description("An event-sourced shop to run, break and copy from."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}), kong.UsageOnError(), kong.BindTo(ctx, (*context.Context)(nil)))
	k.FatalIfErrorf(k.Run())
}
