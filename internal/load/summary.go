package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const longest = 30 * time.Minute // what the histogram can hold

// Summary is how a run went, or goes. Latencies are those of all requests, failures too; of requests that were
// due and could not be sent they are a lower bound.
type Summary struct {
	Target   time.Duration // for how long requests are sent
	Elapsed  time.Duration
	Rate     float64 // wanted, per second; 0 in a closed loop
	Achieved float64 // answered without failure, per second
	Sent     int64
	InFlight int64
	OK       int64
	Failed   int64
	// Unsent are requests of an open loop that were due, but for which too many were unanswered until the end.
	Unsent int64
	Words  map[string]int64 // answers by what [Do] said

	Mean, P50, P90, P99, P999, Max time.Duration
}

type record struct {
	mu      sync.Mutex
	now     Summary
	latency *hdrhistogram.Histogram // microseconds
}

func newRecord(o Options) *record {
	return &record{
		now:     Summary{Target: o.Duration, Rate: o.Rate, Words: map[string]int64{}},
		latency: hdrhistogram.New(1, longest.Microseconds(), 3),
	}
}

func (r *record) sent() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now.Sent++
	r.now.InFlight++
}

func (r *record) answered(word string, err error, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now.InFlight--
	switch {
	case err == nil:
		r.now.OK++
	case word == "":
		word = reason(err)
		fallthrough
	default:
		r.now.Failed++
	}
	r.now.Words[word]++
	_ = r.latency.RecordValue(min(took, longest).Microseconds()) // in range by the line itself
}

func (r *record) unsent(atLeast time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now.Unsent++
	_ = r.latency.RecordValue(min(atLeast, longest).Microseconds()) // see answered
}

// reason groups errors; their texts hold addresses and ports.
func reason(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	}
	return "no answer"
}

func (r *record) summary(elapsed time.Duration) Summary {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, at := r.now, func(percent float64) time.Duration {
		return time.Duration(r.latency.ValueAtPercentile(percent)) * time.Microsecond
	}
	s.Words = maps.Clone(r.now.Words)
	s.Elapsed = elapsed
	if elapsed > 0 {
		s.Achieved = float64(s.OK) / elapsed.Seconds()
	}
	s.Mean = time.Duration(r.latency.Mean() * float64(time.Microsecond))
	s.P50, s.P90, s.P99, s.P999 = at(50), at(90), at(99), at(99.9)
	s.Max = time.Duration(r.latency.Max()) * time.Microsecond
	return s
}

// Write prints the summary as aligned lines.
func (s Summary) Write(w io.Writer) error {
	out := fmt.Sprintf("sent       %d in %s\n", s.Sent, s.Elapsed.Round(time.Millisecond))
	if s.Rate > 0 {
		out += fmt.Sprintf("rate       %.1f/s answered of %.1f/s wanted\n", s.Achieved, s.Rate)
	} else {
		out += fmt.Sprintf("rate       %.1f/s answered\n", s.Achieved)
	}
	out += fmt.Sprintf("answers    %d good, %d failed\n", s.OK, s.Failed)
	for _, word := range slices.Sorted(maps.Keys(s.Words)) {
		out += fmt.Sprintf("           %d × %s\n", s.Words[word], word)
	}
	if s.Unsent > 0 {
		out += fmt.Sprintf("unsent     %d were due and never sent: the shop is slower than the load, and latencies are lower bounds\n", s.Unsent)
	}
	short := func(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
	out += fmt.Sprintf("latency    mean %s  p50 %s  p90 %s  p99 %s  p99.9 %s  max %s\n",
		short(s.Mean), short(s.P50), short(s.P90), short(s.P99), short(s.P999), short(s.Max))
	_, err := io.WriteString(w, out)
	return err
}
