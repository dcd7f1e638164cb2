package shoptest

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/feira-shop/feira/shared/telemetry"
)

// Log keeps what the shop writes to its log, down to the level of debugging.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// shownLines is how much of the log is shown with a test that failed.
const shownLines = 60

func newLog(tb testing.TB) *Log {
	tb.Helper()
	l := &Log{}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("the end of the shop's log, without what is only information:\n%s", l.troubles())
		}
	})
	return l
}

// Logger writes to the log, as JSON.
func (l *Log) Logger() *slog.Logger {
	return slog.New(telemetry.Correlated(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug})))
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String is all that was written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *Log) troubles() string {
	var lines []string
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, `"level":"WARN"`) || strings.Contains(line, `"level":"ERROR"`) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-shownLines):], "")
}
