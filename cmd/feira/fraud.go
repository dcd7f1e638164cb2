package main

import (
	"time"

	"github.com/feira-shop/feira/services/fraud"
)

// judging is what fraud runs with.
type judging struct {
	Thresholds string        `name:"fraud-thresholds" env:"FEIRA_FRAUD_THRESHOLDS" type:"path" placeholder:"FILE" help:"For fraud: its thresholds (default: those built in); a changed file takes effect within seconds, or on SIGHUP."`
	Model      string        `name:"fraud-model" env:"FEIRA_FRAUD_MODEL" type:"path" placeholder:"FILE" help:"For fraud: its trained model (default: the one built in); changed likewise."`
	Forget     time.Duration `name:"fraud-forget" env:"FEIRA_FRAUD_FORGET" default:"2160h" placeholder:"DURATION" help:"For fraud: how long a card is known after its last purchase, 24h or more; chosen once."`
}

// config reads the files.
func (j judging) config() (fraud.Config, error) {
	policies, err := fraud.Open(fraud.Files{Thresholds: j.Thresholds, Model: j.Model})
	if err != nil {
		return fraud.Config{}, err
	}
	cfg := fraud.Config{Forget: j.Forget, Policies: policies}
	return cfg, cfg.Validate()
}
