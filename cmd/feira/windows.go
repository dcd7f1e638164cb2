package main

import (
	"fmt"
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
	if err := cfg.Validate(); err != nil {
		return cfg, fmt.Errorf("--window (FEIRA_WINDOW): %w", err)
	}
	return cfg, nil
}
