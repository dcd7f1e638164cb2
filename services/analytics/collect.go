package analytics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/service"
)

const (
	mostWaiting = 4096            // clicks that may wait for their turn
	mostSent    = 500             // clicks written at once
	sendWithin  = 5 * time.Second // after which those who wait are told that it did not work out
)

// ErrBusy says that so many clicks wait to be written that no more are taken.
var ErrBusy = errors.New("analytics: too many clicks wait to be written; try again")

// ErrStopped says that the service stopped before a click was written.
var ErrStopped = errors.New("analytics: the service stops; try again")

// collector writes clicks to Kafka, those of all requests that came meanwhile at once.
type collector struct{ queue chan click }

// click is a record and who waits to hear that all replicas have it.
type click struct {
	key  string
	data []byte
	done chan error // has room for the answer
}

func newCollector() *collector { return &collector{queue: make(chan click, mostWaiting)} }

// record writes a click and returns when all replicas have it. After an error, also that of a context that ended, it
// may be there all the same. Errors: [ErrBusy], [ErrStopped], [kafka.PartialError], that of ctx.
func (c *collector) record(ctx context.Context, e events.UserActed) error {
	data, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode a click: %w", err)
	}
	k := click{key: e.EventKey(), data: data, done: make(chan error, 1)}
	select {
	case c.queue <- k:
	default:
		return ErrBusy
	}
	limit, cancel := context.WithTimeout(ctx, 2*sendWithin) // one that is being sent, and its own
	defer cancel()
	select {
	case err := <-k.done:
		return err
	case <-limit.Done():
		return limit.Err()
	}
}

// run is the loop that writes them.
func (c *collector) run(ctx context.Context, rt service.Runtime) error {
	p, err := kafka.NewPublisher(rt.Kafka)
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }()
	defer c.refuse()
	for {
		select {
		case <-ctx.Done():
			return nil
		case first := <-c.queue:
			batch := c.more(first)
			c.answer(batch, c.send(ctx, p, batch))
		}
	}
}

// more takes what waits.
func (c *collector) more(first click) []click {
	batch := []click{first}
	for len(batch) < mostSent {
		select {
		case k := <-c.queue:
			batch = append(batch, k)
		default:
			return batch
		}
	}
	return batch
}

func (c *collector) send(ctx context.Context, p *kafka.Publisher, batch []click) error {
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendWithin)
	defer cancel()
	partitions, err := p.Partitions(events.Clicks.Name)
	if err != nil {
		return err
	}
	records := make([]kafka.Record, len(batch))
	for i, k := range batch {
		records[i] = kafka.Record{Partition: kafka.Partition(k.key, rand.Int64(), partitions), Key: k.key, Value: k.data} //nolint:gosec // any partition will do
	}
	_, err = p.Send(limit, events.Clicks.Name, records)
	return err
}

// answer tells each click's sender. Records are written in their order, so those before the first failure are there.
func (c *collector) answer(batch []click, err error) {
	acked := len(batch)
	var partial *kafka.PartialError
	switch {
	case errors.As(err, &partial):
		acked = partial.Acked
	case err != nil:
		acked = 0
	}
	for i, k := range batch {
		if i < acked {
			k.done <- nil
		} else {
			k.done <- err
		}
	}
}

// refuse answers those who wait when the loop ends.
func (c *collector) refuse() {
	for {
		select {
		case k := <-c.queue:
			k.done <- ErrStopped
		default:
			return
		}
	}
}
