// Package live shows events as they pass: a page and the stream of server-sent events it listens to. It keeps nothing,
// so it is a stock Watermill subscriber without a group: it starts at what is new and nobody waits for it.
package live

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	wkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/web"
)

//go:embed page.html
var page []byte

// Feed fans events out to whoever looks. The zero value is not usable; make one with [New].
type Feed struct {
	mu        sync.Mutex
	listeners map[chan []byte]bool
}

// New makes a feed without listeners.
func New() *Feed { return &Feed{listeners: map[chan []byte]bool{}} }

// Run reads the topics until ctx ends.
func (f *Feed) Run(ctx context.Context, cfg kafka.Config, topics []events.Topic, log *slog.Logger) (err error) {
	config := kafka.ConsumerConfig(cfg, "")
	config.Consumer.Offsets.Initial = sarama.OffsetNewest
	sub, err := wkafka.NewSubscriber(wkafka.SubscriberConfig{
		Brokers: cfg.Brokers, Unmarshaler: entry{}, OverwriteSaramaConfig: config,
	}, watermill.NewSlogLogger(log))
	if err != nil {
		return fmt.Errorf("follow the topics: %w", err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer func() { err = errors.Join(err, sub.Close()) }()
	for _, t := range topics {
		messages, err := sub.Subscribe(ctx, t.Name)
		if err != nil {
			return fmt.Errorf("follow %s: %w", t.Name, err)
		}
		wg.Go(func() {
			for m := range messages {
				f.send(m.Payload)
				m.Ack()
			}
		})
	}
	<-ctx.Done()
	return nil
}

// entry reduces a record to what the page shows. It never fails: an error would end the claim.
type entry struct{}

type line struct {
	Topic string    `json:"topic"`
	Type  string    `json:"type"`
	Order string    `json:"order"`
	Time  time.Time `json:"time"`
}

// Unmarshal implements the subscriber's unmarshaler. Ticks, and what strangers write that is no click, become empty
// messages.
func (entry) Unmarshal(m *sarama.ConsumerMessage) (*message.Message, error) {
	l, id, ok := lineOf(m)
	if !ok {
		return message.NewMessage("", nil), nil
	}
	payload, err := json.Marshal(l)
	if err != nil {
		payload = nil
	}
	return message.NewMessage(id, payload), nil
}

func lineOf(m *sarama.ConsumerMessage) (l line, id string, ok bool) {
	headers := func(yield func(k, v []byte) bool) {
		for _, h := range m.Headers {
			if !yield(h.Key, h.Value) {
				return
			}
		}
	}
	if m.Topic == events.Clicks.Name && events.IsPlain(headers) {
		var click events.UserActed
		err := json.Unmarshal(m.Value, &click)
		return line{Topic: m.Topic, Type: click.EventType(), Time: click.Timestamp.Time()}, "", err == nil
	}
	r, err := events.FromHeaders(m.Key, m.Value, headers)
	if err != nil || r.Type == events.TickType {
		return line{}, "", false
	}
	var about struct {
		Order string `json:"order"`
	}
	_ = json.Unmarshal(r.Data, &about) // not every event is about an order
	return line{Topic: m.Topic, Type: r.Type, Order: about.Order, Time: r.Time}, r.ID, true
}

func (f *Feed) send(payload []byte) {
	if len(payload) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for ch := range f.listeners {
		select {
		case ch <- payload:
		default: // a browser that is too slow misses some; the figures of the page are its own
		}
	}
}

func (f *Feed) listen() (lines <-chan []byte, stop func()) {
	ch := make(chan []byte, 1024)
	f.mu.Lock()
	f.listeners[ch] = true
	f.mu.Unlock()
	return ch, func() {
		f.mu.Lock()
		delete(f.listeners, ch)
		f.mu.Unlock()
	}
}

// Page serves the page.
func (f *Feed) Page(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; script-src 'unsafe-inline'")
	_, _ = w.Write(page)
}

// Events streams what passes, until the browser goes or the server stops.
func (f *Feed) Events(w http.ResponseWriter, r *http.Request) {
	lines, stop := f.listen()
	defer stop()
	_ = web.ServeEvents(r.Context(), w, func(ctx context.Context, s *web.EventStream) error { // a browser that went
		for {
			select {
			case <-ctx.Done():
				return nil
			case l := <-lines:
				if err := s.Send(web.Event{Data: l}); err != nil {
					return err
				}
			}
		}
	})
}
