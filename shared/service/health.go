package service

import "context"

// Checks are everything the service needs to do its work, by name. A stopped relay or operator makes the service
// unready and leaves its other parts running.
func (r *Running) Checks() map[string]func(context.Context) error {
	checks := map[string]func(context.Context) error{"database": r.pool.Ping}
	if r.relay != nil {
		checks["relay"] = func(context.Context) error { return r.relay.Health() }
	}
	if r.jobs != nil {
		checks["jobs"] = func(context.Context) error { return r.jobs.Health() }
	}
	if ready := r.Definition.Ready; ready != nil {
		checks["data"] = func(ctx context.Context) error { return ready(ctx, r.Runtime) }
	}
	for i, o := range r.operators {
		checks["operator "+r.Definition.Operators[i].Name] = func(context.Context) error {
			if err := r.gate.health(); err != nil {
				return err
			}
			return o.Health()
		}
	}
	return checks
}
