package web

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	heartbeat    = 15 * time.Second // comment lines that keep an idle stream open through proxies
	writeTimeout = 15 * time.Second // a client that takes nothing for so long is gone
)

// Event is one server-sent event.
type Event struct {
	ID   string // what a client that reconnects sends as Last-Event-ID; "" sends none
	Name string // "" is "message"
	Data []byte
}

// EventStream writes server-sent events to one client.
type EventStream struct {
	mu      sync.Mutex
	w       http.ResponseWriter
	rc      *http.ResponseController
	stopped error
	end     context.CancelFunc
}

// ServeEvents answers with an event stream and calls feed, whose context ends when the client leaves, a write
// fails, or the server drains. Errors from before the first byte are feed's to find out earlier: once ServeEvents
// is called the answer is 200.
func ServeEvents(ctx context.Context, w http.ResponseWriter, feed func(ctx context.Context, s *EventStream) error) error {
	return serveEvents(ctx, w, heartbeat, feed)
}

func serveEvents(ctx context.Context, w http.ResponseWriter, every time.Duration, feed func(context.Context, *EventStream) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &EventStream{w: w, rc: http.NewResponseController(w), end: cancel}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would wait for a full buffer
	w.WriteHeader(http.StatusOK)
	if err := s.write([]byte("retry: 2000\n\n")); err != nil {
		return err
	}
	var beats sync.WaitGroup
	defer beats.Wait()
	defer cancel()
	beats.Go(func() { s.beat(ctx, every) })
	if err := feed(ctx, s); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// beat keeps the stream open, and ends it when the server drains.
func (s *EventStream) beat(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-Draining(ctx):
			s.end()
			return
		case <-tick.C:
			if s.write([]byte(":\n\n")) != nil {
				return
			}
		}
	}
}

// Send writes an event and hands it to the network at once.
func (s *EventStream) Send(e Event) error {
	var b bytes.Buffer
	if e.ID != "" {
		fmt.Fprintf(&b, "id: %s\n", oneLine(e.ID))
	}
	if e.Name != "" {
		fmt.Fprintf(&b, "event: %s\n", oneLine(e.Name))
	}
	for line := range bytes.SplitSeq(bytes.ReplaceAll(e.Data, []byte("\r"), nil), []byte("\n")) {
		b.WriteString("data: ")
		b.Write(line)
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	return s.write(b.Bytes())
}

func (s *EventStream) write(p []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped != nil {
		return s.stopped
	}
	// The server's own deadline is for whole answers; a stream has one per write. Test recorders have none.
	_ = s.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	_, err := s.w.Write(p)
	if err == nil {
		err = s.rc.Flush()
	}
	if err != nil {
		s.stopped = fmt.Errorf("web: event stream: %w", err)
		s.end()
	}
	return s.stopped
}

// oneLine keeps a value from starting a field of its own.
func oneLine(s string) string { return strings.NewReplacer("\n", "", "\r", "", "\x00", "").Replace(s) }
