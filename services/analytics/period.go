package analytics

import (
	"time"

	"github.com/feira-shop/feira/shared/web"
)

const (
	// usual is how far back an answer reaches where the request does not say.
	usual = 24 * time.Hour
	// longest bounds what one request may ask for.
	longest = 31 * 24 * time.Hour
)

// period is a span of time, [From, To).
type period struct{ From, To time.Time }

// periodOf reads the parameters from and to.
func periodOf(from, to *time.Time, now time.Time) (period, error) {
	p := period{To: now}
	if to != nil {
		p.To = to.UTC()
	}
	p.From = p.To.Add(-usual)
	if from != nil {
		p.From = from.UTC()
	}
	switch {
	case from != nil && to == nil && !p.From.Before(p.To):
		return p, web.InvalidParam("from", "is not before now; give to as well.")
	case !p.From.Before(p.To):
		return p, web.InvalidParam("to", "is not after from.")
	case p.To.Sub(p.From) > longest:
		return p, web.InvalidParam("to", "is more than 31 days after from; ask for less at a time.")
	}
	return p, nil
}
