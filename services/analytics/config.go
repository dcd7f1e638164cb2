package analytics

import (
	"errors"
	"fmt"
	"time"
)

// Config is what a deployment may choose. What is counted in windows is kept under their length: it cannot be changed on
// data that are there.
type Config struct {
	// Window is the length of the windows of account spend, and how far the windows of top products are apart: at least
	// a second, in whole seconds; 0 is 5 minutes.
	Window time.Duration
	// Disorder is how far an event's time may be behind the newest of its partition; 0 is a fifth of Window.
	Disorder time.Duration
	// Lateness is how long a window waits for events after its end; 0 is a fifth of Window.
	Lateness time.Duration
}

const (
	defaultWindow = 5 * time.Minute
	// hour is the length of the windows of top products, in windows of spend.
	hour = 12
	// patience is which part of a window disorder and lateness are.
	patience = 5
)

// Validate collects everything that is wrong.
func (c Config) Validate() error {
	c = c.WithDefaults()
	var wrong []error
	if c.Window < time.Second || c.Window%time.Second != 0 {
		wrong = append(wrong, fmt.Errorf("a window of %s: expected whole seconds, at least one", c.Window))
	}
	for what, d := range map[string]time.Duration{"disorder": c.Disorder, "lateness": c.Lateness} {
		if d < 0 || d > c.Window {
			wrong = append(wrong, fmt.Errorf("a %s of %s: expected 0s to the length of a window, %s", what, d, c.Window))
		}
	}
	return errors.Join(wrong...)
}

// WithDefaults fills in what is not chosen.
func (c Config) WithDefaults() Config {
	if c.Window == 0 {
		c.Window = defaultWindow
	}
	if c.Disorder == 0 {
		c.Disorder = c.Window / patience
	}
	if c.Lateness == 0 {
		c.Lateness = c.Window / patience
	}
	return c
}

// Top is the length of the windows of top products: a sliding hour, where windows are 5 minutes long.
func (c Config) Top() time.Duration { return hour * c.WithDefaults().Window }
