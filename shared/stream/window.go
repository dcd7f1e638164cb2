package stream

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/operator"
)

// Window is a span of event time, [Start, End), in UTC. Windows are aligned to 1970, so they are the same in every run.
type Window struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
}

// Windows divide event time. Times are kept in microseconds since 1970.
type Windows struct {
	size, slide, lateness time.Duration
}

// Tumbling windows follow one another: each event is in one. It panics unless size is at least a microsecond.
func Tumbling(size time.Duration) Windows { return Sliding(size, size) }

// Sliding windows are size long, and one begins every slide: each event is in size/slide of them. It panics unless
// size is a multiple of slide, and slide one of a microsecond.
func Sliding(size, slide time.Duration) Windows {
	if slide < time.Microsecond || slide%time.Microsecond != 0 || size < slide || size%slide != 0 {
		panic(fmt.Sprintf("shared/stream: windows of %s every %s: the size must be a multiple of the slide, and the slide one of 1µs", size, slide))
	}
	return Windows{size: size, slide: slide}
}

// Lateness is how long after its end, in event time, a window still takes events; 0 by default. It closes so much later.
func (w Windows) Lateness(d time.Duration) Windows { w.lateness = d; return w }

// pane is where the pane of an event time begins. Panes are as long as windows are apart, so each window is a row of
// whole panes, and an event is counted once however many windows it is in.
func (w Windows) pane(at int64) int64 {
	slide := w.slide.Microseconds()
	start := at / slide * slide
	if start > at { // before 1970
		start -= slide
	}
	return start
}

// late says whether the first window of a pane has closed for a partition with this watermark.
func (w Windows) late(pane, watermark int64) bool {
	return pane+w.slide.Microseconds()+w.lateness.Microseconds() <= watermark
}

// passed is the end of the newest window that may close when no watermark is lower than this.
func (w Windows) passed(watermark int64) int64 { return w.pane(watermark - w.lateness.Microseconds()) }

// ends are those of all windows that have one of the panes, in order.
func (w Windows) ends(panes []int64) []int64 {
	size, slide := w.size.Microseconds(), w.slide.Microseconds()
	set := map[int64]bool{}
	for _, p := range panes {
		for end := p + slide; end <= p+size; end += slide {
			set[end] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// ending is the window that ends then.
func (w Windows) ending(end int64) Window {
	return Window{Start: time.UnixMicro(end).Add(-w.size).UTC(), End: time.UnixMicro(end).UTC()}
}

// Result is what a window holds for a key.
type Result[A any] struct {
	Key    string
	Window Window
	Value  A
	// Revision is 1 when the window closes, and one higher whenever a computation over the whole history found another
	// value. It is 0 while the window is open.
	Revision int
}

// Aggregation is a pure computation over the events of a window: a sum, in the widest sense. What it makes of the events
// does not depend on their order, nor on how they are grouped; the value of no events at all is A's zero.
type Aggregation[A any] struct {
	// Lift is what one event adds to a key. A must be what JSON keeps.
	Lift func(r events.Recorded, key string) A
	// Merge adds two values up. It is associative and commutative, and changes neither.
	Merge func(a, b A) A
	// Event says what a closed window, or a revision of it, is told as; it carries the revision.
	Event func(r Result[A]) events.Event
	// Stream names the stream of one window and key, whose versions are its revisions: Key and Window say which.
	Stream func(r Result[A]) string
	// Keep queues, with tx.Later, what the service's read model keeps of results, in the transaction that appends them;
	// a result it has already is replaced by its next revision. nil: nothing is kept.
	Keep func(tx *eventstore.Tx, closed []Result[A]) error
}

// Total is an [Aggregation], of whatever value.
type Total interface {
	aggregate(name string, from Sources, windows Windows) operator.Handler
}

// Windowed is what is read, divided into windows.
type Windowed struct {
	from    Sources
	windows Windows
}

// Window divides a source into windows.
func (s Source) Window(w Windows) Windowed { return Windowed{Sources{s}, w} }

// Window divides sources into windows that hold the events of all.
func (ss Sources) Window(w Windows) Windowed { return Windowed{ss, w} }

// Aggregate makes an operator that says what each window holds, key by key, when it closes. name is stable: partial
// values are kept under it, and an operator whose value changed its shape gets a new one.
func (w Windowed) Aggregate(name string, total Total) operator.Definition {
	return define(name, w.from, func(*eventstore.Store) operator.Handler { return total.aggregate(name, w.from, w.windows) })
}

func (a Aggregation[A]) aggregate(name string, from Sources, windows Windows) operator.Handler {
	return newWindower(name, from, windows, a)
}
