package analytics

import (
	"context"
	"embed"
	"fmt"
	"time"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/service"
	"github.com/feira-shop/feira/shared/stream"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Service declares analytics. It panics on a configuration that [Config.Validate] refuses.
func Service(cfg Config) service.Definition {
	cfg = cfg.WithDefaults()
	collector := newCollector()
	return service.Definition{
		Name:      "analytics",
		Publishes: events.Analytics,
		Private:   []events.Event{ProductsRanked{}},
		Streams:   []decider.Kind{stream.Kind("spend-"), stream.Kind("top-")},
		Schema:    migrations,
		Operators: []operator.Definition{spend(cfg), top(cfg), clicks, placed},
		Routes:    routes(cfg, collector),
		Loops:     []service.Loop{{Name: "analytics.collect", Run: collector.run}},
		Seed:      func(ctx context.Context, rt service.Runtime) error { return sameLengths(ctx, rt, cfg) },
	}
}

// LengthError says that windows were counted with another length before.
type LengthError struct {
	Operator    string
	Have, Asked time.Duration
}

func (e *LengthError) Error() string {
	return fmt.Sprintf("analytics: the windows of %s here are %s long, not %s: give the length that they have, or another database",
		e.Operator, e.Have, e.Asked)
}

// sameLengths notes the length of windows at the first start, and holds later ones to it. Two processes may start at the
// same moment: the update that changes nothing lets the second read what the first has just committed.
func sameLengths(ctx context.Context, rt service.Runtime, cfg Config) error {
	for _, w := range []struct {
		operator string
		length   time.Duration
	}{{spendName, cfg.Window}, {topName, cfg.Top()}} {
		var seconds int64
		err := rt.Store.Pool().QueryRow(ctx, `
insert into window_lengths as known values ($1, $2)
on conflict (operator) do update set seconds = known.seconds returning seconds`,
			w.operator, int64(w.length.Seconds())).Scan(&seconds)
		if err != nil {
			return fmt.Errorf("read how long windows are: %w", err)
		}
		if have := time.Duration(seconds) * time.Second; have != w.length {
			return &LengthError{Operator: w.operator, Have: have, Asked: w.length}
		}
	}
	return nil
}
