package fraud

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/uuid"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/faulttest"
)

// remembered is a state with so many cards, and an authorisation of each, later than what is remembered.
func remembered(cards int) (map[string]Profile, []events.Recorded) {
	state := make(map[string]Profile, cards)
	next := make([]events.Recorded, cards)
	for i := range next {
		first, second := onCard(i, "first", 0), onCard(i, "second", 4*time.Second)
		state[card(first)], _ = builtIn.Apply(Profile{}, first, false)
		next[i] = second
	}
	return state, next
}

func onCard(i int, payment string, at time.Duration) events.Recorded {
	e := named(authorized(payment, at)).Event.(events.PaymentAuthorized)
	e.CardFingerprint = fmt.Sprintf("card-%d", i)
	return events.Recorded{Event: e}
}

// named gives a payment and its order names as the shop does; those of one payment are always the same.
func named(r events.Recorded) events.Recorded {
	e := r.Event.(events.PaymentAuthorized)
	e.Payment, e.Order = uuidOf(e.Payment), uuidOf(e.Order)
	return events.Recorded{Event: e}
}

func uuidOf(text string) string {
	if _, there := uuids[text]; !there {
		uuids[text] = uuid.NewSHA1(uuid.Nil, []byte(text)).String()
	}
	return uuids[text]
}

var uuids = map[string]string{}

// BenchmarkDecision is what a verdict costs in memory, with 200,000 cards remembered.
func BenchmarkDecision(b *testing.B) {
	state, next := remembered(200_000)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		r := next[i%len(next)]
		if _, said := builtIn.Apply(state[card(r)], r, false); len(said) != 1 {
			b.Fatalf("%d verdicts", len(said))
		}
		i++
	}
}

// A decision takes less than 5 µs. Other processes share the machine, so the best of many short runs counts: what is
// measured is the work, not the waiting.
func TestADecisionTakesMicroseconds(t *testing.T) {
	const each = 1000
	state, next := remembered(50_000)
	best := time.Hour
	for from := 0; from+each <= len(next); from += each {
		begun := time.Now()
		for _, r := range next[from : from+each] {
			if _, said := builtIn.Apply(state[card(r)], r, false); len(said) != 1 {
				t.Fatalf("%d verdicts", len(said))
			}
		}
		best = min(best, time.Since(begun)/each)
	}
	t.Logf("a decision takes %v", best)
	if limit := 5 * time.Microsecond * slowdown; best > limit {
		t.Errorf("a decision takes %v, at most %v are allowed", best, limit)
	}
}

// regular is a card with so many purchases, one every three minutes up to now, the seventh minute.
func regular(purchases int) Profile {
	const now, disorder = 7 * time.Minute, 5 * time.Minute
	var c Profile
	for i := range purchases {
		at := now - time.Duration(purchases-i)*3*time.Minute
		c, _ = builtIn.Apply(c, paying(fmt.Sprint(i), at, int64(1000+i)), false)
	}
	return c.Trim(noon.Add(now - disorder))
}

// Single decisions, of 50,000 cards new and old, one in ten of them held and explained, are under 2 µs at the 99th
// percentile. The best of many short runs counts: else the slowest decision in a hundred is one that had to wait for
// others on the machine. Every round but the first finds the memory that it needs in the process's hands, as in a
// service that runs; before, each new page of it costs a microsecond.
func TestFaultADecisionAtThe99thPercentile(t *testing.T) {
	fault := faulttest.Begin(t, faulttest.Plan{
		Name: "A decision at the 99th percentile",
		Does: "50,000 cards new and old, one payment in ten held and explained: 99 of 100 decisions take at most 2 µs in the best thousand",
	})
	const rounds, patience, each, all = 4, 20 * time.Second, 1000, 50_000
	kinds := []Profile{{}, {}, {}, {}, regular(1), regular(1), regular(1), regular(3), regular(3), regular(20)}
	fresh := make([]Profile, all)
	for i := range fresh {
		fresh[i], _ = builtIn.Apply(kinds[i%len(kinds)], named(paying("before", time.Minute, int64(1000+i%500))), false)
	}
	company := time.Duration(fault.Times(2, 1)) // in a short run tests of other packages share the processor's caches
	limit, began := company*2*time.Microsecond*slowdown, time.Now()
	best, state := time.Hour, make([]Profile, all)
	for round := 0; round < rounds || best > limit && time.Since(began) < patience; round++ { // others may be busy for long
		copy(state, fresh)
		runtime.GC()
		for from := 0; from < all; from += each {
			best = min(best, slowest(t, state[from:from+each]))
		}
	}
	fault.Found("99 % of decisions take at most", best.String())
	if best > limit {
		t.Errorf("99 %% of decisions take up to %v, at most %v is allowed", best, limit)
	}
}

// slowest judges a purchase on each card, and is how long the slowest took, but for one in a hundred.
func slowest(t *testing.T, cards []Profile) time.Duration {
	t.Helper()
	h := hdrhistogram.New(1, time.Second.Nanoseconds(), 3)
	for i := range cards {
		amount := int64(1000 + i%500)
		if i%10 == i/10%10 { // whatever kind of card it is
			amount = 400_000
		}
		r := named(paying("now", 7*time.Minute, amount))
		begun := time.Now()
		after, said := builtIn.Apply(cards[i], r, false)
		took := time.Since(begun)
		if cards[i] = after; len(said) != 1 {
			t.Fatalf("%d verdicts", len(said))
		}
		if err := h.RecordValue(max(1, took.Nanoseconds())); err != nil {
			t.Fatal(err)
		}
	}
	return time.Duration(h.ValueAtPercentile(99))
}

// A decision copies the four lists that it changes, and makes one verdict of its measures.
func TestADecisionAllocatesLittle(t *testing.T) {
	if slowdown > 1 {
		return // the race detector allocates too
	}
	c, r := regular(20), named(paying("now", 7*time.Minute, 1234))
	if n := testing.AllocsPerRun(1000, func() { builtIn.Apply(c, r, false) }); n > 7 {
		t.Errorf("%g allocations, 7 are enough", n)
	}
}
