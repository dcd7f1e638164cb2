package stream

import (
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// Whatever is added and removed, a key is found where it is, and places are given again.
func TestATableHoldsWhatItWasGiven(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		table, want, most := newShard[int]().keys, map[string]int{}, 0
		for range rapid.IntRange(1, 20).Draw(t, "rounds") {
			for n := range rapid.IntRange(0, 2*block).Draw(t, "added") {
				key := strconv.Itoa(rapid.IntRange(0, 10).Draw(t, "family")*10_000 + n)
				if _, there := want[key]; !there {
					want[key] = n
					table.add(entry[int]{key: key, state: n})
				}
			}
			most = max(most, len(want))
			for n := range rapid.IntRange(0, 2*block).Draw(t, "removed") {
				key := strconv.Itoa(rapid.IntRange(0, 10).Draw(t, "family")*10_000 + n)
				if at, there := table.find(key); there {
					delete(want, key)
					table.remove(at)
				}
			}
		}
		seen := 0
		for at, e := range table.all() {
			if found, there := table.find(e.key); !there || found != at || e.state != want[e.key] {
				t.Fatalf("%s has the state %d at %d, and is looked for at %d; want %d", e.key, e.state, at, found, want[e.key])
			}
			seen++
		}
		if seen != len(want) || table.len() != len(want) || int(table.ends) > most {
			t.Fatalf("%d entries, %d keys, want %d; %d places for at most %d at once", seen, table.len(), len(want), table.ends, most)
		}
	})
}
