package main

import (
	"time"

	"github.com/feira-shop/feira/services/analytics"
)

// windowing is how analytics divides time.
type windowing struct {
	Window time.Duration `env:"FEIRA_WINDOW" default:"5m" placeholder:"DURATION" help:"For analytics: how long the windows of account spend are, in whole seconds, and every how long products are ranked; chosen once."`
}

// analytics checks it.
func (w windowing) analytics() (analytics.Config, error) {
	cfg := analytics.Config{Window: w.Window}
	return cfg, cfg.Validate()
}
