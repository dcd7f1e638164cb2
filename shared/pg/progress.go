package pg

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// bar shows a download: as a bar on a terminal, as one line elsewhere, not at all to nobody.
type bar struct {
	io.Writer
	finish func()
}

func newBar(w io.Writer, what string, size int64) bar {
	if w == nil {
		return bar{Writer: io.Discard, finish: func() {}}
	}
	if f, ok := w.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		_, _ = fmt.Fprintf(w, "%s, %.1f MB\n", what, float64(max(size, 0))/1e6)
		return bar{Writer: io.Discard, finish: func() {}}
	}
	shown := progressbar.NewOptions64(size, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(what),
		progressbar.OptionShowBytes(true), progressbar.OptionSetWidth(30), progressbar.OptionThrottle(100*time.Millisecond))
	return bar{Writer: shown, finish: func() { _, _ = fmt.Fprintln(w) }}
}
