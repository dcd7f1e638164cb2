package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/kafka"
)

// safety is what to do about a Kafka that can lose or stall events.
type safety struct {
	Strict bool `env:"FEIRA_STRICT" help:"Do not start on a Kafka whose settings, or the connection to it, are unsafe; without it they are warned of."`
}

// Brokers that do not answer are asked again. Services do so too, hence without --strict nothing waits for the answer.
const (
	inspectAgain  = 10 * time.Second
	inspectWithin = 30 * time.Second // with --strict
)

// inspect logs what is unsafe in Kafka. With --strict it is the error, and so is a Kafka that cannot be looked at.
func (c safety) inspect(ctx context.Context, cfg kafka.Config, log *slog.Logger) error {
	if !c.Strict {
		go func() {
			for ctx.Err() == nil {
				risks, err := kafka.Inspect(ctx, cfg, events.Topics())
				if err == nil {
					warn(log, risks)
					return
				}
				if ctx.Err() == nil {
					log.Warn("Kafka could not be inspected yet", "error", err)
				}
				pause(ctx, inspectAgain)
			}
		}()
		return nil
	}
	limit, cancel := context.WithTimeout(ctx, inspectWithin)
	defer cancel()
	risks, err := kafka.Inspect(limit, cfg, events.Topics())
	for err != nil && limit.Err() == nil {
		pause(limit, time.Second)
		risks, err = kafka.Inspect(limit, cfg, events.Topics())
	}
	if err != nil {
		return fmt.Errorf("--strict (FEIRA_STRICT): Kafka could not be inspected: %w", err)
	}
	return refuse(risks)
}

// refuse is nil where there is no risk.
func refuse(risks []kafka.Risk) error {
	if len(risks) == 0 {
		return nil
	}
	lines := make([]string, len(risks))
	for i, r := range risks {
		lines[i] = "\n  " + r.String()
	}
	return fmt.Errorf("Kafka is not safe (--strict, FEIRA_STRICT):%s", strings.Join(lines, "")) //nolint:staticcheck // a name
}

// warn logs a line for each risk; one broker alone is usual in development and no reason to be alarmed.
func warn(log *slog.Logger, risks []kafka.Risk) {
	for _, r := range risks {
		level := slog.LevelWarn
		if r.Name == kafka.RiskSingleBroker {
			level = slog.LevelInfo
		}
		log.Log(context.Background(), level, "Kafka: "+r.What, "risk", r.Name, "do", r.Do)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
