package shoppers

import (
	"maps"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latency summarises durations.
type Latency struct {
	Count              int64
	P50, P90, P99, Max time.Duration
}

// Snapshot is how a run stands.
type Snapshot struct {
	Placed    int64            // orders that the shop took
	Open      int64            // of these, not settled yet
	Refused   int64            // checkouts that the shop did not take
	Paths     map[Path]int64   // orders placed, by path
	Outcomes  map[string]int64 // orders settled, by how: "confirmed/paid", "cancelled/out_of_stock"
	Retries   int64            // requests sent again because there was no answer
	Repeats   int64            // checkouts sent twice on purpose
	Differing int64            // repeats that got another answer than the first: a broken promise
	Restocked int64            // pieces
	Checkout  Latency          // until a checkout was answered, Prefer: wait aside
	Settled   Latency          // from a happy checkout until it was seen to be settled
}

const longest = 10 * time.Minute // what histograms can hold

type stats struct {
	mu       sync.Mutex
	now      Snapshot
	checkout *hdrhistogram.Histogram // microseconds
	settled  *hdrhistogram.Histogram
}

func newStats() *stats {
	histogram := func() *hdrhistogram.Histogram { return hdrhistogram.New(1, longest.Microseconds(), 3) }
	return &stats{
		now:      Snapshot{Paths: map[Path]int64{}, Outcomes: map[string]int64{}},
		checkout: histogram(), settled: histogram(),
	}
}

// count changes the figures.
func (s *stats) count(change func(*Snapshot)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.now)
}

func (s *stats) took(h *hdrhistogram.Histogram, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = h.RecordValue(min(d, longest).Microseconds()) // in range by the line itself
}

func (s *stats) snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.now
	out.Paths, out.Outcomes = maps.Clone(s.now.Paths), maps.Clone(s.now.Outcomes)
	out.Checkout, out.Settled = summary(s.checkout), summary(s.settled)
	return out
}

func summary(h *hdrhistogram.Histogram) Latency {
	at := func(percent float64) time.Duration {
		return time.Duration(h.ValueAtPercentile(percent)) * time.Microsecond
	}
	return Latency{Count: h.TotalCount(), P50: at(50), P90: at(90), P99: at(99), Max: time.Duration(h.Max()) * time.Microsecond}
}
