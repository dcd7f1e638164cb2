package main

import (
	"context"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/feira-shop/feira/internal/demo"
	"github.com/feira-shop/feira/services/analytics"
	"github.com/feira-shop/feira/services/fraud"
)

type demoCmd struct {
	Listen      string        `env:"FEIRA_DEMO_LISTEN" default:"127.0.0.1:8080" placeholder:"ADDRESS" help:"Address of the shop; port 0 takes any free one (default: ${default})."`
	KafkaListen string        `env:"FEIRA_DEMO_KAFKA_LISTEN" default:"127.0.0.1:9092" placeholder:"ADDRESS" help:"Address of the embedded Kafka, on 127.0.0.1; port 0 takes any free one (default: ${default})."`
	Data        string        `env:"FEIRA_DEMO_DATA" type:"path" placeholder:"DIR" help:"Folder that keeps everything between runs, also after kill -9 (default: a temporary one)."`
	Shoppers    float64       `env:"FEIRA_DEMO_SHOPPERS" default:"2" placeholder:"N" help:"New orders per second, 0 to 1000; 0: nobody orders by itself (default: ${default})."`
	For         time.Duration `env:"FEIRA_DEMO_FOR" placeholder:"DURATION" help:"Trade for so long, let every order settle, summarise and verify; exit code 1 if anything differs (default: until Ctrl-C)."`
	Deadline    time.Duration `env:"FEIRA_DEADLINE" default:"30s" placeholder:"DURATION" help:"How long an order may take from placed to confirmed, else it is cancelled (default: ${default})."`
	Without     []string      `env:"FEIRA_DEMO_WITHOUT" placeholder:"SERVICE" help:"Services to leave to other processes: feira --env-file DIR/feira.env run SERVICE."`
	Thieves     float64       `env:"FEIRA_DEMO_THIEVES" default:"0" placeholder:"SHARE" help:"Share of the orders that are fraud, 0 to 0.5; the other shoppers then use their own cards again and again (default: ${default})."`
	Labels      string        `env:"FEIRA_DEMO_LABELS" type:"path" placeholder:"FILE" help:"Write which order is fraud to this file (CSV: order,label), for the training of a model."`
	Seed        int64         `env:"FEIRA_DEMO_SEED" default:"1" placeholder:"N" help:"The same seed makes the shoppers choose the same (default: ${default})."`

	judging   `embed:""`
	windowing `embed:""`
}

// Run runs the demo.
func (c *demoCmd) Run(ctx context.Context) error {
	judges, err := c.config()
	if err != nil {
		return err
	}
	return demo.Run(ctx, demo.Options{
		Listen: c.Listen, KafkaListen: c.KafkaListen, Data: c.Data, Shoppers: c.Shoppers, For: c.For, Deadline: c.Deadline,
		Without: c.Without, Seed: c.Seed, Fraud: judges, FraudFiles: fraud.Files{Thresholds: c.Thresholds, Model: c.Model},
		Thieves: c.Thieves, Labels: c.Labels, Analytics: analytics.Config{Window: c.Window}, Out: os.Stdout, Width: terminalWidth,
	})
}

// terminalWidth is how many columns the output has, 0 when it is no terminal.
func terminalWidth() int {
	columns, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return 0
	}
	return columns
}
