//go:build e2e

package flink

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// number reads a setting of the environment.
func number(t *testing.T, name string, usual uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 {
		t.Fatalf("%s=%s: a positive whole number is wanted", name, text)
	}
	return n
}

// TestParity: Flink, the shop's operators and a naive computation come to one answer.
func TestParity(t *testing.T) {
	seed, n := number(t, "SEED", rand.Uint64()), int(number(t, "EVENTS", 200_000))
	t.Logf("SEED=%d EVENTS=%d", seed, n)
	h := generate(seed, n)
	if worst, inOrder := disordered(h); worst >= disorder || worst < disorder/2 || !inOrder {
		t.Fatalf("events are up to %s behind, of at most %s; in order per card: %v", worst, disorder, inOrder)
	}
	want := naive(h)
	address := startBroker(t)
	began := time.Now()
	sent := newPublisher(t, h, address)
	sent.send(t, h.facts)
	sent.finish(t)
	t.Logf("%d events, %d records sent twice and %d ticks in %s; they make %d windows and %d duplicates", len(h.facts), sent.repeats, sent.ticks,
		time.Since(began).Round(time.Second), len(want.spend), len(want.duplicates))

	f := newFlink(t, address)
	start := f.run(t, "windows.sql", "from=latest-offset")
	windows := f.run(t, "windows.sql")
	duplicates := f.run(t, "duplicates.sql")
	got, err := f.said(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "Flink", got, want)
	o := newOurs(t, address)
	us := answer{map[spendKey]spend{}, map[string]string{}}
	spent := o.analytics(t, us)
	judged := o.fraud(t, us)
	equal(t, "ours", us, want)
	t.Log(table(n, start, [][]cost{{windows, spent}, {duplicates, judged}}))
}

// table is what each computation cost, side by side.
func table(n int, start cost, costs [][]cost) string {
	perMillion := func(c time.Duration) float64 { return c.Seconds() * 1e6 / float64(n) }
	text := fmt.Sprintf("cost of %d events, in CPU-s per million (without start: %.1f CPU-s and %.1f s more for each job of Flink's)\n", n, start.cpu.Seconds(), start.wall.Seconds())
	text += fmt.Sprintf("%-12s%12s%12s%12s%12s\n", "", "Flink", "ours", "Flink, s", "ours, s")
	for i, what := range []string{"windows", "duplicates"} {
		flink, ours := costs[i][0], costs[i][1]
		text += fmt.Sprintf("%-12s%12.1f%12.1f%12.1f%12.1f\n", what, perMillion(flink.cpu-start.cpu), perMillion(ours.cpu), flink.wall.Seconds(), ours.wall.Seconds())
	}
	return text
}

// equal compares row by row.
func equal(t *testing.T, whose string, got, want answer) {
	t.Helper()
	compare(t, whose+": window", got.spend, want.spend)
	compare(t, whose+": duplicate", got.duplicates, want.duplicates)
}

// shown is how many differences are told.
const shown = 10

func compare[K, V comparable](t *testing.T, what string, got, want map[K]V) {
	t.Helper()
	differences := 0
	differ := func(key K, have, must any) {
		if differences++; differences <= shown {
			t.Errorf("%s %v is %v, must be %v", what, key, have, must)
		}
	}
	for key, must := range want {
		if have, there := got[key]; !there {
			differ(key, "missing", must)
		} else if have != must {
			differ(key, have, must)
		}
	}
	for key := range maps.Keys(got) {
		if _, must := want[key]; !must {
			differ(key, got[key], "missing")
		}
	}
	if differences > shown {
		t.Errorf("%s: %d differences", what, differences)
	}
}
