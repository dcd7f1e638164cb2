package demo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/feira-shop/feira/sim/shoppers"
)

const (
	drawEvery   = 250 * time.Millisecond // on a terminal
	reportEvery = 10 * time.Second       // elsewhere
	healthEvery = time.Second
	rateOver    = 5 * time.Second
)

// progress keeps the live line up to date until ctx ends or until fires. An error says why the demo cannot go on.
func (d *demo) progress(ctx context.Context, buyers *shoppers.Shoppers, until <-chan time.Time) error {
	every := reportEvery
	if d.console.columns() > 0 {
		every = drawEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	defer d.console.status("")
	var speed meter
	speed.rate(time.Now(), buyers.Snapshot().Placed)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-until:
			return nil
		case <-d.infra.postgres.Done():
			return errPostgresEnded
		case now := <-tick.C:
			if d.opts.Shoppers > 0 {
				s := buyers.Snapshot()
				d.console.status(line(s, speed.rate(now, s.Placed)))
			}
		}
	}
}

// line is the state of the shop, most important first: a narrow terminal cuts off its end.
func line(s shoppers.Snapshot, rate float64) string {
	text := fmt.Sprintf("%d orders, %d under way, %.1f/s", s.Placed, s.Open, rate)
	if s.Checkout.Count > 0 {
		text += fmt.Sprintf(", checkout p50 %s p99 %s", short(s.Checkout.P50), short(s.Checkout.P99))
	}
	if s.Settled.Count > 0 {
		text += fmt.Sprintf(", settled p50 %s p99 %s", short(s.Settled.P50), short(s.Settled.P99))
	}
	return text
}

// short rounds to what a person reads.
func short(t time.Duration) string {
	if t < 100*time.Millisecond {
		return t.Round(100 * time.Microsecond).String()
	}
	return t.Round(time.Millisecond).String()
}

// meter measures a rate over the last few seconds.
type meter struct{ samples []sample }

type sample struct {
	at    time.Time
	count int64
}

// rate takes a reading and says how much is added per second.
func (m *meter) rate(at time.Time, count int64) float64 {
	m.samples = append(m.samples, sample{at, count})
	for len(m.samples) > 2 && at.Sub(m.samples[1].at) >= rateOver {
		m.samples = m.samples[1:]
	}
	first := m.samples[0]
	if elapsed := at.Sub(first.at).Seconds(); elapsed > 0 {
		return float64(count-first.count) / elapsed
	}
	return 0
}

// watchHealth tells when a part of the shop fails, and when it works again. One failure in passing is no news.
func (d *demo) watchHealth(ctx context.Context) {
	tick := time.NewTicker(healthEvery)
	defer tick.Stop()
	var before, told map[string]error
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := d.health.Ready(ctx)
		if ctx.Err() != nil {
			return
		}
		lasting := maps.Clone(now)
		maps.DeleteFunc(lasting, func(name string, _ error) bool { return before[name] == nil })
		for _, name := range slices.Sorted(maps.Keys(lasting)) {
			if told[name] == nil {
				d.console.note("not ready: %s: %v", name, lasting[name])
			}
		}
		for _, name := range slices.Sorted(maps.Keys(told)) {
			if now[name] == nil {
				d.console.note("ready again: %s", name)
			} else {
				lasting[name] = now[name]
			}
		}
		before, told = now, lasting
	}
}
