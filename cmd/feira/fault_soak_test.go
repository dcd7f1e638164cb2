package main_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/feira-shop/feira/shared/faulttest"
)

const (
	soakFor  = 20 * time.Minute
	soakRate = 50 // orders a second
	// soakCards come back every two minutes. What fraud remembers of a card is larger by each purchase for an hour, and by
	// each new card for 90 days, as it should; what must not grow is what a process holds besides.
	soakCards = 6000
	// mostPerCard bounds that, in bytes: in a run, six or seven purchases within the disorder and a dozen of the hour.
	mostPerCard = 2 << 10
	// A process is warm, and its figures say something, in runs of at least this length.
	warmAfter = 4 * time.Minute
	// growth is how much more of anything a process may hold in the last quarter of a run than in the second.
	growth = 1.10
)

// A shop of processes trades for a long time while something breaks every few seconds: a process, Kafka, Postgres, every
// connection to it. At the end every order has ended and the books are right, and the process that was never killed holds
// no more than it did.
func TestFaultSoak(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{
		Name: "Soak", Does: "Two replicas of the shop, the provider, Kafka and Postgres as processes, 50 orders a second, and a random fault every 10 s; the books are right, and memory and goroutines of the process that lives on do not grow.",
	})
	length, every := run.For(20*time.Second, soakFor), 10*time.Second
	if length < time.Minute { // some faults belong to a short run, too
		every = 3 * time.Second
	}
	s := newSoak(t, run)
	people := startCrowd(t, run, "http://"+s.address["kept"], s.tokenKey, soakRate, soakCards)
	var seen []figures
	faults := 0
	for end, next, sample := time.Now().Add(length), time.After(every), time.Tick(time.Second); time.Now().Before(end); {
		select {
		case <-next:
			s.fault()
			faults++
			next = time.After(every)
		case <-sample:
			if f, ok := s.look(); ok {
				f.faults = faults
				seen = append(seen, f)
			}
		case <-s.kept.ended:
			t.Fatal("the process that nobody killed has ended")
		}
	}
	people.settle()
	has(t, s.feira(t, "verify", "--settled", "--wait=90s"), "verify: no difference")
	s.compare(seen, length)
}

// soak is a shop of processes, and what may break of it.
type soak struct {
	*ground
	t       *testing.T
	run     *faulttest.Run
	dice    *rand.Rand
	address map[string]string
	kept    *process // never killed
	others  map[string]*process
}

func newSoak(t *testing.T, run *faulttest.Run) *soak {
	t.Helper()
	s := &soak{t: t, run: run, dice: run.Dice(), others: map[string]*process{}, address: map[string]string{}}
	for _, name := range []string{"kept", "killed", "provider"} {
		s.address[name] = freeAddress(t)
	}
	s.ground = newGround(t, s.address["provider"])
	s.others["provider"] = s.start("provider", "provider")
	s.kept = s.start("kept", "all")
	s.others["killed"] = s.start("killed", "all")
	for name, address := range s.address {
		eventually(t, name+" to be ready", func() bool { return isReady(t.Context(), address) })
	}
	return s
}

func (s *soak) start(name string, parts ...string) *process {
	s.t.Helper()
	args := append([]string{"--env-file=" + s.file, "run"}, parts...)
	return start(s.t, nil, append(args, "--member="+name, "--listen="+s.address[name])...)
}

// fault breaks one thing and brings it back.
func (s *soak) fault() {
	s.t.Helper()
	kill, away := s.dice.IntN(2) == 0, time.Duration(s.dice.IntN(2000))*time.Millisecond
	switch s.dice.IntN(5) {
	case 0:
		s.run.Count("restarts of Kafka", 1)
		s.kafka.restart(kill, away)
	case 1:
		s.run.Count("restarts of Postgres", 1)
		s.postgres.restart(kill, away)
	case 2:
		s.run.Count("cuts of all connections to Postgres", 1)
		s.network.Cut()
	case 3:
		s.run.Count("kills of the provider", 1)
		s.others["provider"].kill()
		s.others["provider"] = s.start("provider", "provider")
	case 4:
		s.run.Count("kills of a replica", 1)
		s.others["killed"].kill()
		s.others["killed"] = s.start("killed", "all")
	}
}

// figures are what a process holds, the states of its stream operators aside.
type figures struct {
	resident, heap, goroutines float64
	states                     float64 // bytes of them, as they are saved, which is about what they take in memory
	faults                     int     // that came before
}

// look reads what the process that is never killed says of itself.
func (s *soak) look() (figures, bool) {
	_, text, err := get(s.t.Context(), "http://"+s.address["kept"]+"/metrics")
	if err != nil {
		return figures{}, false
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(text)))
	if err != nil {
		return figures{}, false
	}
	gauge := func(name string) (sum float64) {
		for _, m := range families[name].GetMetric() {
			sum += m.GetGauge().GetValue()
		}
		return sum
	}
	f := figures{goroutines: gauge("go_goroutines"), states: gauge("feira_stream_state_bytes")}
	f.resident, f.heap = gauge("process_resident_memory_bytes")-f.states, gauge("go_memstats_heap_alloc_bytes")-f.states
	return f, f.resident > 0 && f.heap > 0 && f.goroutines > 0
}

// compare holds the last quarter of a run to the second.
func (s *soak) compare(seen []figures, length time.Duration) {
	s.t.Helper()
	if len(seen) < 8 {
		s.t.Fatalf("the process told of itself %d times only", len(seen))
	}
	quarter := len(seen) / 4
	second, last := seen[quarter:2*quarter], seen[len(seen)-quarter:]
	states := func(f figures) float64 { return f.states }
	remembered := calm(last, states)
	s.run.Found("states of stream operators, MiB", fmt.Sprintf("%.1f, then %.1f", calm(second, states)/(1<<20), remembered/(1<<20)))
	if length >= warmAfter && remembered == 0 || remembered > soakCards*mostPerCard {
		s.t.Errorf("%.0f bytes are remembered of %d cards, expected some, and at most %d of each", remembered, soakCards, mostPerCard)
	}
	for _, c := range []struct {
		what string
		unit float64
		of   func(figures) float64
	}{
		{"resident memory without states, MiB", 1 << 20, func(f figures) float64 { return f.resident }},
		{"Go heap without states, MiB", 1 << 20, func(f figures) float64 { return f.heap }},
		{"goroutines", 1, func(f figures) float64 { return f.goroutines }},
	} {
		before, after := calm(second, c.of), calm(last, c.of)
		s.run.Found(c.what, fmt.Sprintf("%.1f, then %.1f", before/c.unit, after/c.unit))
		if length >= warmAfter && after > before*growth {
			s.t.Errorf("%s grew from %.0f to %.0f", c.what, before/c.unit, after/c.unit)
		}
	}
}

// calm is the median of the least between two faults. A fault makes a peak, of requests that wait and are repeated; how high
// and how long depends on its kind, and the dice give one quarter more of a kind than another. What leaks is there in calm, too.
func calm(seen []figures, of func(figures) float64) float64 {
	var least []float64
	for i, f := range seen {
		if i == 0 || f.faults != seen[i-1].faults {
			least = append(least, of(f))
		}
		least[len(least)-1] = min(least[len(least)-1], of(f))
	}
	slices.Sort(least)
	return least[len(least)/2]
}
