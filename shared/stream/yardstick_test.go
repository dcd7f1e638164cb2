package stream

import (
	"runtime"
	"slices"
	"time"

	"github.com/feira-shop/feira/shared/events"
)

// A decision reads memory at about so many places that no cache holds where there are a million keys: the map's group,
// the slot, the key's text, the entry, the state and its parts.
const coldReads = 6

// perCard is the memory, in words of eight bytes, that a card is spread over: what is kept of it, garbage included.
const perCard = 128

// yardstick is how long this machine takes for the memory of a decision alone: so many reads, one after the other and
// each where the one before says, and room for an answer. It is measured as decisions are: the 99th percentile of the
// best stretch. On a server of its own it is well below two microseconds; where neighbours share memory and processors
// it can be more than a decision may take, and then the machine cannot show what the code does.
func yardstick(cards int) time.Duration {
	memory := make([]uint64, cards*perCard)
	for i := range memory {
		memory[i] = uint64(i) * 0x9E3779B97F4A7C15 // Fibonacci hashing, Knuth, The Art of Computer Programming 3, 6.4
	}
	var best time.Duration
	var at, random uint64
	var said [benchBatch]events.Event
	for range 20 {
		took := make([]time.Duration, stretch)
		for i := range took {
			begun := time.Now()
			for range coldReads {
				random = random*6364136223846793005 + 1442695040888963407 // Knuth's MMIX
				at = memory[(at^random)>>16%uint64(len(memory))]
			}
			said[i%len(said)] = events.PurchaseCleared{Verdict: events.Verdict{Score: int(at >> 32)}}
			took[i] = time.Since(begun)
		}
		slices.Sort(took)
		if p := percentile(took, 99); best == 0 || p < best {
			best = p
		}
	}
	runtime.KeepAlive(said)
	return best
}
