package telemetrytest

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/feira-shop/feira/shared/telemetry"
)

// Log keeps what a logger writes, as the shop's do.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Line is one line of it, by the names of its attributes.
type Line map[string]any

// NewLog makes a logger, and what keeps its lines.
func NewLog(tb testing.TB) (*slog.Logger, *Log) {
	tb.Helper()
	l := &Log{}
	log, err := telemetry.NewLogger(l, slog.LevelDebug, telemetry.JSON)
	if err != nil {
		tb.Fatal(err)
	}
	return log, l
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// Lines are those with a message.
func (l *Log) Lines(message string) (all []Line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for text := range strings.Lines(l.text.String()) {
		var line Line
		if json.Unmarshal([]byte(text), &line) == nil && line["msg"] == message {
			all = append(all, line)
		}
	}
	return all
}

// Is reports whether a line is about an order, and within a trace.
func (l Line) Is(trace, order string) bool { return l["trace_id"] == trace && l["order"] == order }
