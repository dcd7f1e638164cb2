package main

import (
	"context"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/feira-shop/feira/internal/demo"
)

type demoCmd struct {
	Listen      string        `env:"FEIRA_DEMO_LISTEN" default:"127.0.0.1:8080" help:"Address of the shop."`
	KafkaListen string        `env:"FEIRA_DEMO_KAFKA_LISTEN" default:"127.0.0.1:9092" help:"Address of the embedded Kafka."`
	Data        string        `env:"FEIRA_DEMO_DATA" type:"path" placeholder:"DIR" help:"Folder that is kept between runs; without it, a temporary one."`
	Shoppers    float64       `env:"FEIRA_DEMO_SHOPPERS" default:"2" help:"New orders per second; 0: nobody."`
	For         time.Duration `env:"FEIRA_DEMO_FOR" placeholder:"DURATION" help:"Then stop, let every order settle, summarise and verify."`
	Deadline    time.Duration `env:"FEIRA_DEADLINE" default:"30s" help:"How long an order may take from placed to confirmed."`
	Without     []string      `env:"FEIRA_DEMO_WITHOUT" placeholder:"SERVICE" help:"Services to leave to other processes (feira run)."`
	Seed        int64         `env:"FEIRA_DEMO_SEED" default:"1" help:"Of the shoppers' choices."`
}

// Run runs the demo.
func (c *demoCmd) Run(ctx context.Context) error {
	return demo.Run(ctx, demo.Options{
		Listen: c.Listen, KafkaListen: c.KafkaListen, Data: c.Data, Shoppers: c.Shoppers, For: c.For, Deadline: c.Deadline,
		Without: c.Without, Seed: c.Seed, Out: os.Stdout, Terminal: term.IsTerminal(int(os.Stdout.Fd())),
	})
}
