package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
)

// captured is a logger as this package makes them, and the lines that it wrote.
func captured() (*slog.Logger, func() []map[string]any) {
	var b bytes.Buffer
	log, err := NewLogger(&b, slog.LevelDebug, JSON)
	if err != nil {
		panic(err)
	}
	return log, func() (lines []map[string]any) {
		for line := range strings.Lines(b.String()) {
			var l map[string]any
			if json.Unmarshal([]byte(line), &l) == nil {
				lines = append(lines, l)
			}
		}
		return lines
	}
}

func TestLinesCarryTraceAndOrder(t *testing.T) {
	t.Parallel()
	log, lines := captured()
	log.InfoContext(context.Background(), "nothing")
	traced := Continue(context.Background(), client)
	log.InfoContext(traced, "traced")
	log.With("service", "orders").InfoContext(About(traced, "o-1"), "both")
	log.InfoContext(OfEvent(About(traced, "o-1"), "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-00", "o-2"), "another event")
	log.InfoContext(OfEvent(context.Background(), "", ""), "an event without either")
	for i, want := range []struct{ trace, span, order any }{
		{nil, nil, nil},
		{traceID, "00f067aa0ba902b7", nil},
		{traceID, "00f067aa0ba902b7", "o-1"},
		{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb", "o-2"},
		{nil, nil, nil},
	} {
		if l := lines()[i]; l["trace_id"] != want.trace || l["span_id"] != want.span || l["order"] != want.order {
			t.Errorf("line %d is %v", i, l)
		}
	}
}

// Who logs about a request when it is over learns from within it which order it was about.
func TestTheOrderIsLearnedOnTheWay(t *testing.T) {
	t.Parallel()
	log, lines := captured()
	outer := WithStory(context.Background())
	func(inner context.Context) { About(inner, "o-1") }(context.WithValue(outer, storyKey{}, outer.Value(storyKey{})))
	log.InfoContext(outer, "request")
	if l := lines()[0]; l["order"] != "o-1" {
		t.Errorf("the line is %v", l)
	}
	plain := context.Background()
	About(plain, "o-2")
	if log.InfoContext(plain, "loop"); lines()[1]["order"] != nil {
		t.Error("a context without a place for it learned of an order")
	}
}
