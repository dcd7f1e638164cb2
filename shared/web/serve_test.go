package web

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// serve serves h on loopback and returns its address, and a stop that waits for the end.
func serve(t *testing.T, h http.Handler) (url string, stop context.CancelFunc, ended <-chan error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- ServeListener(ctx, l, h, nil) }()
	t.Cleanup(cancel)
	return "http://" + l.Addr().String(), cancel, done
}

func get(t *testing.T, url string) *http.Response {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func TestServeFinishesWhatIsInFlight(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	url, stop, ended := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-Draining(r.Context())
		if r.Context().Err() != nil {
			t.Error("the request was cancelled by the shutdown")
		}
		_, _ = w.Write([]byte("done"))
	}))
	go func() { <-arrived; stop() }()
	resp := get(t, url)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || string(body) != "done" {
		t.Errorf("%s, %v", body, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestEventStreamOverTheWholeChain(t *testing.T) {
	t.Parallel()
	feedEnded := make(chan struct{})
	b := newBed(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = ServeEvents(r.Context(), w, func(ctx context.Context, s *EventStream) error {
			defer close(feedEnded)
			if err := s.Send(Event{ID: "1", Name: "placed", Data: []byte("{\"a\":\n1}")}); err != nil {
				return err
			}
			if err := s.Send(Event{ID: "2\nid: 3", Data: []byte("x")}); err != nil {
				return err
			}
			<-ctx.Done() // as a feed that waits for more does
			return ctx.Err()
		})
	}), nil)
	url, stop, ended := serve(t, b.handler)
	req, err := http.NewRequest(http.MethodGet, url+order+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Authorization", "Bearer "+b.tokens["customer"])
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if ct := resp.Header.Get("Content-Type"); ct != "text/event-stream" {
		t.Fatalf("content type %s", ct)
	}
	const want = "retry: 2000\n\nid: 1\nevent: placed\ndata: {\"a\":\ndata: 1}\n\nid: 2id: 3\ndata: x\n\n"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != want { // arrives before the stream ends
		t.Fatalf("%q, %v", got, err)
	}
	stop() // the server drains: the stream ends by itself, and nobody has to be cut off
	if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
	<-feedEnded
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestEventStreamEndsWithItsClient(t *testing.T) {
	t.Parallel()
	feedEnded := make(chan struct{})
	url, stop, ended := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = serveEvents(r.Context(), w, time.Millisecond, func(ctx context.Context, _ *EventStream) error {
			defer close(feedEnded)
			<-ctx.Done()
			return nil
		})
	}))
	resp := get(t, url)
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() && lines.Text() != ":" { // a heartbeat
	}
	_ = resp.Body.Close()
	<-feedEnded
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// The server bounds requests and answers; a stream must outlive both bounds.
func TestEventStreamOutlivesTheServersDeadlines(t *testing.T) {
	t.Parallel()
	const bound, beat = 50 * time.Millisecond, 10 * time.Millisecond
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = serveEvents(r.Context(), w, beat, func(ctx context.Context, _ *EventStream) error {
			<-ctx.Done()
			return nil
		})
	}))
	srv.Config.ReadTimeout, srv.Config.WriteTimeout = bound, bound
	srv.Start()
	defer srv.Close()
	resp := get(t, srv.URL)
	lines, begin := bufio.NewScanner(resp.Body), time.Now()
	for time.Since(begin) < 5*bound {
		if !lines.Scan() {
			t.Fatalf("the stream ended after %v: %v", time.Since(begin), lines.Err())
		}
	}
	_ = resp.Body.Close()
}

func TestErrorsOfAFeedAreReported(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	err := ServeEvents(context.Background(), httptest.NewRecorder(), func(context.Context, *EventStream) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

// lockedBuffer is a log that several goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func TestHealth(t *testing.T) {
	t.Parallel()
	log := &lockedBuffer{}
	h := NewHealth(slog.New(slog.NewJSONHandler(log, nil)))
	var reason error
	h.Add("store", func(context.Context) error { return reason })
	h.Add("kafka", func(context.Context) error { return nil })
	handler := h.Handler(echo)
	ask := func(path string) (int, string) {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, strings.TrimSpace(w.Body.String())
	}
	expect := func(status int, body string) {
		t.Helper()
		if code, got := ask("/readyz"); code != status || got != body {
			t.Errorf("%d %s", code, got)
		}
	}
	expect(200, `{"status":"ready","checks":{"kafka":"ok","store":"ok"}}`)
	reason = errors.New("dial 10.0.0.7:5432")
	for range 3 {
		expect(503, `{"status":"not ready","checks":{"kafka":"ok","store":"failing"}}`)
	}
	reason = nil
	expect(200, `{"status":"ready","checks":{"kafka":"ok","store":"ok"}}`)
	if n := strings.Count(log.b.String(), "10.0.0.7"); n != 1 {
		t.Errorf("the reason was logged %d times", n)
	}
	h.Drain()
	expect(503, `{"status":"not ready","checks":{"kafka":"ok","shutdown":"failing","store":"ok"}}`)
	for _, path := range []string{"/livez", "/metrics"} {
		if code, _ := ask(path); code != http.StatusOK {
			t.Errorf("%s: %d", path, code)
		}
	}
}

func TestACheckThatHangsDoesNotHoldUpTheAnswer(t *testing.T) {
	t.Parallel()
	h := NewHealth(nil)
	release := make(chan struct{})
	defer close(release)
	h.Add("stuck", func(context.Context) error { <-release; return nil })
	h.Add("good", func(context.Context) error { return nil })
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // instead of waiting for the two seconds
	if failing := h.Ready(ctx); failing["stuck"] == nil {
		t.Errorf("%v", failing)
	}
}
