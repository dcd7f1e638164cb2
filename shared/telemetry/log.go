// Package telemetry sets up what a process says of itself: logs, Prometheus metrics and traces.
package telemetry

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/lmittmann/tint"
	"golang.org/x/term"
)

// Format is how log lines are written.
type Format string

// Formats of log lines.
const (
	Auto Format = "auto" // Text on a terminal, JSON elsewhere
	JSON Format = "json" // one object per line, for machines
	Text Format = "text" // coloured, for people
)

// UnknownError says that a setting has a value that does not exist.
type UnknownError struct{ Setting, Value, Known string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("telemetry: unknown %s %q; choose one of %s", e.Setting, e.Value, e.Known)
}

// ParseLevel reads debug, info, warn or error; "" is info.
func ParseLevel(s string) (slog.Level, error) {
	var l slog.Level
	if s == "" {
		return slog.LevelInfo, nil
	}
	if err := l.UnmarshalText([]byte(s)); err != nil {
		return 0, &UnknownError{"log level", s, "debug, info, warn, error"}
	}
	return l, nil
}

// NewLogger writes lines of at least the level to w, [Correlated] with traces and orders. Colours are used on a terminal only, and not where NO_COLOR
// is set.
func NewLogger(w io.Writer, level slog.Leveler, format Format) (*slog.Logger, error) {
	tty := isTerminal(w)
	switch Format(strings.ToLower(string(format))) {
	case Auto, "":
		if tty {
			return text(w, level, tty), nil
		}
		return machine(w, level), nil
	case Text:
		return text(w, level, tty), nil
	case JSON:
		return machine(w, level), nil
	default:
		return nil, &UnknownError{"log format", string(format), "auto, json, text"}
	}
}

func machine(w io.Writer, level slog.Leveler) *slog.Logger {
	return slog.New(Correlated(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})))
}

func text(w io.Writer, level slog.Leveler, tty bool) *slog.Logger {
	_, plain := os.LookupEnv("NO_COLOR")
	return slog.New(Correlated(tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: plain || !tty})))
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
