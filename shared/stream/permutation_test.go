package stream

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/feira-shop/feira/shared/operator"
)

// shuffled puts records into another order in which none is late and those of one key are in the order they were in: the
// next is any key's first record, unless one that is left would fall behind the watermark.
func shuffled(t *rapid.T, log []operator.Record, disorder time.Duration) []operator.Record {
	rest, out := slices.Clone(log), make([]operator.Record, 0, len(log))
	for len(rest) > 0 {
		oldest := slices.MinFunc(rest, func(a, b operator.Record) int { return a.Time.Compare(b.Time) }).Time
		seen, may := map[string]bool{}, []int(nil)
		for i, r := range rest {
			if !seen[r.Key] && !r.Time.After(oldest.Add(disorder)) {
				may = append(may, i)
			}
			seen[r.Key] = true
		}
		i := may[rapid.IntRange(0, len(may)-1).Draw(t, "next")]
		out, rest = append(out, rest[i]), slices.Delete(rest, i, i+1)
	}
	return out
}

// In whatever order the events of different keys come, within the disorder, whatever the batches: what is said of each is
// the same, and so is what is kept.
func TestAnyOrderWithinTheDisorderSaysTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now, n := epoch, 0
		log := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) operator.Record {
			now = now.Add(time.Duration(rapid.IntRange(0, 1500).Draw(t, "later")) * time.Millisecond)
			n++
			c := clicked{ID: fmt.Sprint(n), Key: rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "key"), At: now}
			r := visit(c.Key, now)
			r.ID, r.Event = c.ID, c
			return r
		}), 1, 60).Draw(t, "log")
		rule := Rule[recent]{Apply: judge, Until: recent.until, Trim: recent.trim}
		from := keyed().Disorder(disorder)
		verdicts := func(log []operator.Record) (map[string]string, map[string]string) {
			d, of := disk{}, map[string]string{}
			p := restore(t, d, from, rule, onePart)
			for rest := log; len(rest) > 0; {
				n := rapid.IntRange(1, len(rest)).Draw(t, "batch")
				for _, e := range p.commit(t, d, rest[:n]) {
					of[e.(judged).ID] = e.(judged).Verdict
				}
				rest = rest[n:]
			}
			if d[onePart].late > 0 {
				t.Fatalf("%d events are late", d[onePart].late)
			}
			return of, restore(t, d, from, rule, onePart).states(t, onePart)
		}
		wantOf, wantStates := verdicts(log)
		gotOf, gotStates := verdicts(shuffled(t, log, disorder))
		if !maps.Equal(gotOf, wantOf) {
			t.Fatalf("the verdicts are %v, want %v", gotOf, wantOf)
		}
		if !maps.Equal(gotStates, wantStates) {
			t.Fatalf("the states are %v, want %v", gotStates, wantStates)
		}
	})
}
