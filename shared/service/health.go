package service

import (
	"context"
	"fmt"
)

// Health checks everything the service needs to do its work, by name; a nil error is healthy. A stopped relay or
// operator makes the service unready and leaves its other parts running.
func (r *Running) Health(ctx context.Context) map[string]error {
	checks := map[string]error{"database": r.pool.Ping(ctx)}
	if r.relay != nil {
		checks["relay"] = r.relay.Health()
	}
	for i, o := range r.operators {
		checks["operator "+r.Definition.Operators[i].Name] = o.Health()
	}
	return checks
}

// Ready is nil when all checks of [Running.Health] are, or the first that is not.
func (r *Running) Ready(ctx context.Context) error {
	for name, err := range r.Health(ctx) {
		if err != nil {
			return fmt.Errorf("%s: %s: %w", r.Definition.Name, name, err)
		}
	}
	return nil
}
