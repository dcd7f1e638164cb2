package orders

import "time"

// Config is what a deployment may choose.
type Config struct {
	// Deadline is how long an order may take from placed to confirmed; default 5 minutes, demo 30 s.
	Deadline time.Duration
	// Hold is how long a held order waits for its release; default 15 minutes, demo 10 s.
	Hold time.Duration
	// Products is how many products the replica of the catalogue must hold before the service is ready; 0: none.
	Products int
}

func (c Config) withDefaults() Config {
	if c.Deadline <= 0 {
		c.Deadline = 5 * time.Minute
	}
	if c.Hold <= 0 {
		c.Hold = 15 * time.Minute
	}
	return c
}
