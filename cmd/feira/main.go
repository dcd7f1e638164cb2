// Command feira runs the shop: as a demo on embedded infrastructure, or any part of it against real addresses.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/feira-shop/feira/internal/demo"
)

type cli struct {
	Demo demoCmd `cmd:"" help:"Run the whole shop on embedded Kafka and Postgres, with simulated shoppers."`
}

type demoCmd struct {
	Listen      string        `default:"127.0.0.1:8080" help:"Address of the shop."`
	KafkaListen string        `default:"127.0.0.1:9092" help:"Address of the embedded Kafka."`
	Data        string        `type:"path" help:"Folder that is kept between runs; without it, a temporary one."`
	Shoppers    float64       `default:"2" help:"New orders per second."`
	For         time.Duration `help:"Then stop, let every order settle, summarise and verify."`
	Deadline    time.Duration `default:"30s" help:"From placed to confirmed."`
	Without     []string      `help:"Services to leave to other processes (feira run)."`
	Seed        int64         `default:"1" help:"Of the shoppers' choices."`
}

// Run runs the demo.
func (c *demoCmd) Run(ctx context.Context) error {
	return demo.Run(ctx, demo.Options{
		Listen: c.Listen, KafkaListen: c.KafkaListen, Data: c.Data, Shoppers: c.Shoppers, For: c.For, Deadline: c.Deadline,
		Without: c.Without, Seed: c.Seed, Out: os.Stdout, Terminal: term.IsTerminal(int(os.Stdout.Fd())),
	})
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var c cli
	k := kong.Parse(&c, kong.Name("feira"), kong.Description("An event-sourced shop to run, break and copy from."),
		kong.BindTo(ctx, (*context.Context)(nil)))
	k.FatalIfErrorf(k.Run())
}
