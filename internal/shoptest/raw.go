package shoptest

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/feira-shop/feira/api"
)

// Answer is what came back of a request that the generated client would not send.
type Answer struct {
	Status  int
	Header  http.Header
	Body    string
	Problem api.Problem // of an error
}

// Do sends a request as it is given. A header that is given replaces the one that is usual.
func (s *Shop) Do(tb testing.TB, method, path string, header map[string]string, body io.Reader) Answer {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	res := s.send(ctx, tb, method, path, header, body)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	must(tb, "read the answer", err)
	a := Answer{Status: res.StatusCode, Header: res.Header, Body: string(text)}
	if strings.HasPrefix(a.Header.Get("Content-Type"), "application/problem+json") {
		must(tb, "read the problem", json.Unmarshal(text, &a.Problem))
	}
	return a
}

func (s *Shop) send(ctx context.Context, tb testing.TB, method, path string, header map[string]string, body io.Reader) *http.Response {
	tb.Helper()
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, body)
	must(tb, "make a request", err)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range header {
		if value == "" {
			req.Header.Del(name)
			continue
		}
		req.Header.Set(name, value)
	}
	res, err := s.client.Do(req)
	must(tb, method+" "+path, err)
	return res
}

// Told is one server-sent event of an order's history.
type Told struct {
	ID, Name string
	Event    api.OrderEvent
}

// Follow follows an order's history live, from after the event with the id last ("": from its beginning), until the
// test ends. Next waits for the next event.
func (c *Customer) Follow(tb testing.TB, order, last string) (next func() Told) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	res := c.Shop.send(ctx, tb, http.MethodGet, "/v1/orders/"+order+"/events", map[string]string{
		"Authorization": "Bearer " + c.Token, "Accept": "text/event-stream", "Last-Event-ID": last,
	}, nil)
	tb.Cleanup(func() { cancel(); _ = res.Body.Close() })
	if kind := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || !strings.HasPrefix(kind, "text/event-stream") {
		tb.Fatalf("follow order %s: %s, %s", order, res.Status, kind)
	}
	lines := bufio.NewScanner(res.Body)
	return func() Told {
		tb.Helper()
		return readTold(tb, lines)
	}
}

func readTold(tb testing.TB, lines *bufio.Scanner) Told {
	tb.Helper()
	var e Told
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			e.ID = value
		case "event":
			e.Name = value
		case "data":
			must(tb, "read an event", json.Unmarshal([]byte(value), &e.Event))
		case "":
			if e.Name != "" {
				return e
			}
		}
	}
	tb.Fatalf("the stream ended: %v", lines.Err())
	return e
}
