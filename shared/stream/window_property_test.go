package stream

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/faulttest"
)

// Whatever the order of events, their split into batches, the interleaving of partitions and of closings, and wherever
// processes are killed and transactions rolled back: the results are those of a naive computation, each said once.
func TestFaultWindowsInAnyOrder(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{
		Name: "Windows in any order",
		Does: "logs, windows, batches, owners, kills and rollbacks by chance: the results, the ledger and the table of late events " +
			"are those of a computation that sorts and adds, each result is said once, and no partial value is left",
	})
	f := newField(t)
	reached := map[string]int{}
	for round := range run.Times(20, 400) {
		f.rand = run.Dice()
		f.anyOperator(fmt.Sprintf("r%d", round))
		f.anyLog(40 + f.rand.IntN(120))
		f.anyRun(reached)
		if n := f.count("select coalesce(max(n), 0) from (select count(*) as n from stream_partials group by operator, topic, partition, pane) x"); n > 3 {
			t.Errorf("a pane has %d rows, at most 3 are left", n)
		}
		f.finish()
		want := f.agrees()
		for what, n := range want.counts {
			reached[string(what)] += n
		}
		if left := f.count("select count(*) from stream_partials where operator = $1", f.name); left != 0 {
			t.Errorf("%d rows of partial values are left although every window is closed", left)
		}
		if t.Failed() {
			t.Fatalf("round %d: %+v, disorder %s", round, f.w, f.from.disorder)
		}
	}
	for what, n := range reached {
		run.Count(what, n)
	}
	for _, what := range []string{"counted", "late", "quarantined", "closed early", "batch rolled back", "killed after a commit", "closing rolled back", "killed after a closing"} {
		if reached[what] == 0 {
			t.Errorf("the rounds had nothing of this: %s", what)
		}
	}
}

// anyOperator begins one with windows, bounds and owners by chance.
func (f *field) anyOperator(name string) {
	windows := []Windows{Tumbling(10 * time.Second), Sliding(30*time.Second, 10*time.Second), Sliding(20*time.Second, 5*time.Second)}
	w := windows[f.rand.IntN(len(windows))].Lateness(time.Duration(f.rand.IntN(3)) * 4 * time.Second)
	owners := [][][]int32{{{0}}, {{0, 1, 2}}, {{0, 2}, {1}}, {{0}, {1}, {2}}}
	from := clicksIn(time.Duration(f.rand.IntN(4)) * 5 * time.Second)
	from.other = f.rand.IntN(2) == 0 // the time of a click is its CloudEvents time, whoever says so
	f.begin(name, from, w, owners[f.rand.IntN(len(owners))]...)
}

// anyLog fills the partitions: time goes on, most events are a little behind, some far, some from the future; a
// partition may be silent but for ticks and what counts nowhere. The last ticks are behind everything.
func (f *field) anyLog(n int) {
	last := epoch
	for p := range f.log {
		idle := f.rand.IntN(4) == 0
		for i := range n {
			now := epoch.Add(time.Duration(i) * time.Second)
			last = latest(last, now)
			at := now.Add(-time.Duration(f.rand.Int64N(int64(f.from.disorder) + 1)))
			switch f.rand.IntN(12) {
			case 0:
				at = now.Add(-time.Duration(f.rand.IntN(90)) * time.Second)
			case 1:
				at = now.Add(defaultSkew + time.Second)
			case 2:
				f.tick(p, now.Add(-time.Second))
				continue
			case 3:
				ahead := now.Add(20 * time.Second)
				f.click(p, "", ahead, ahead)
				continue
			}
			if !idle {
				f.click(p, strings.Repeat(string(rune('a'+f.rand.IntN(3))), 1+f.rand.IntN(2))+string(rune('a'+f.rand.IntN(3))), now, at)
			}
		}
	}
	for p := range f.log {
		f.tick(p, last.Add(time.Hour))
	}
}

// anyRun does steps by chance until most of the log is applied.
func (f *field) anyRun(reached map[string]int) {
	for range 30 {
		i := f.rand.IntN(len(f.hands))
		if f.rand.IntN(3) > 0 {
			f.anyBatch(i, reached)
			continue
		}
		f.anyClosing(reached)
	}
}

func (f *field) anyBatch(i int, reached map[string]int) {
	h := f.hands[i]
	n := 1 + f.rand.IntN(12)
	switch f.rand.IntN(6) {
	case 0:
		f.batch(h, n, false)
		h.Settle(false)
		reached["batch rolled back"]++
	case 1:
		f.batch(h, n, false)
		f.hands[i] = f.restored(h.owns)
	case 2:
		f.batch(h, n, true)
		f.hands[i] = f.restored(h.owns)
		reached["killed after a commit"]++
	default:
		f.batch(h, n, true)
		h.Settle(true)
	}
}

func (f *field) anyClosing(reached map[string]int) {
	h := f.hands[0]
	most := 1 + f.rand.IntN(9)
	fate := f.rand.IntN(4)
	if n := f.close(h, most, fate != 0 && fate != 1); n == 0 {
		return
	}
	switch fate {
	case 0:
		h.Closed(false)
		reached["closing rolled back"]++
	case 1:
		f.hands[0] = f.restored(h.owns)
	case 2:
		f.hands[0] = f.restored(h.owns)
		reached["killed after a closing"]++
	default:
		h.Closed(true)
		reached["closed early"]++
	}
}
