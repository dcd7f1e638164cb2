package analytics

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/kafka"
)

var someClick = events.UserActed{User: "42", Action: "clique", Timestamp: 1711900000_000000}

// What cannot be written is refused, not kept without bounds and not said to be written.
func TestClicksThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	c := newCollector()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range mostWaiting {
		if err := c.record(gone, someClick); !errors.Is(err, context.Canceled) {
			t.Fatalf("nobody writes it, and the answer is %v", err)
		}
	}
	if err := c.record(t.Context(), someClick); !errors.Is(err, ErrBusy) {
		t.Errorf("one more than may wait: %v", err)
	}
	c.refuse()
	if len(c.queue) > 0 {
		t.Errorf("%d clicks wait after the stop", len(c.queue))
	}
}

// Of a batch that was written in part, each sender hears of their own.
func TestEachSenderHearsOfTheirClick(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		err  error
		good int
	}{
		"all": {nil, 3}, "some": {&kafka.PartialError{Acked: 2, Err: broken}, 2}, "none": {broken, 0},
	} {
		batch := []click{{done: make(chan error, 1)}, {done: make(chan error, 1)}, {done: make(chan error, 1)}}
		newCollector().answer(batch, c.err)
		for i, k := range batch {
			if err := <-k.done; (err == nil) != (i < c.good) {
				t.Errorf("%s: click %d is answered %v", name, i, err)
			}
		}
	}
}

// Without Kafka a click is refused as something to try again.
func TestClicksWithoutKafka(t *testing.T) {
	t.Parallel()
	b := newBed(t, Config{})
	if w := b.call("ana", http.MethodPost, "/v1/clicks", `{"id_usuario":42,"acao":"clique","timestamp":1}`); w.Code != http.StatusAccepted {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	b.broker.Close()
	w := b.call("ana", http.MethodPost, "/v1/clicks", `{"id_usuario":42,"acao":"clique","timestamp":1}`)
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
