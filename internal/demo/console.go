package demo

import (
	"fmt"
	"io"
	"strings"
	"sync"
)

// console is what a person reads: lines that stay and, on a terminal, one below them that is kept up to date.
type console struct {
	out   io.Writer
	width func() int // nil or 0: no terminal

	mu   sync.Mutex
	live string
}

const clearLine = "\r\x1b[K"

func (c *console) columns() int {
	if c.width == nil {
		return 0
	}
	return c.width()
}

// note tells what goes on.
func (c *console) note(format string, args ...any) {
	c.print("feira: " + fmt.Sprintf(format, args...) + "\n")
}

// print writes whole lines above the live one.
func (c *console) print(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live != "" {
		text = clearLine + text + c.live
	}
	_, _ = io.WriteString(c.out, text)
}

// status replaces the live line; "" takes it away. It never wraps, since what has wrapped cannot be cleared. What is no
// terminal gets a line of its own.
func (c *console) status(text string) {
	columns := c.columns()
	if columns == 0 {
		if text != "" {
			c.note("%s", text)
		}
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if runes := []rune(text); len(runes) >= columns {
		text = string(runes[:max(columns-2, 0)]) + "…"
	}
	if text == c.live {
		return
	}
	c.live = text
	_, _ = io.WriteString(c.out, clearLine+text)
}

// Write lets the console stand in for its output.
func (c *console) Write(p []byte) (int, error) {
	c.print(string(p))
	return len(p), nil
}

// counts prints figures below a title, aligned.
func counts[K ~string](c *console, title string, names []K, figures map[K]int64) {
	var b strings.Builder
	fmt.Fprintln(&b, title)
	for _, n := range names {
		fmt.Fprintf(&b, "  %-34s %6d\n", strings.ReplaceAll(string(n), "_", " "), figures[n])
	}
	c.print(b.String())
}
