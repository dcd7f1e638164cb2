package stream

import (
	"runtime"
	"slices"
	"time"
)

// A decision reads memory at about so many places that no cache holds where there are a million keys: the map's group,
// the slot, the key's text, the entry, the state and its parts.
const coldReads = 6

// perCard is the memory, in words of eight bytes, that a card is spread over: what is kept of it, garbage included.
const perCard = 128

// coldRead is how long that many reads alone take on this machine, one after the other and each where the one before
// says, at the 99th percentile of the best stretch, as decisions are measured. On a server of its own it is well below
// a microsecond; where neighbours share memory and processors it can be more than a decision may take, and then the
// machine cannot show what the code does.
func coldRead(cards int) time.Duration {
	memory := make([]uint64, cards*perCard)
	for i := range memory {
		memory[i] = uint64(i) * 0x9E3779B97F4A7C15 // Fibonacci hashing, Knuth, The Art of Computer Programming 3, 6.4
	}
	var best time.Duration
	var at, random, sum uint64
	for range 20 {
		took := make([]time.Duration, stretch)
		for i := range took {
			begun := time.Now()
			for range coldReads {
				random = random*6364136223846793005 + 1442695040888963407 // Knuth's MMIX
				at = memory[(at^random)>>16%uint64(len(memory))]
			}
			took[i] = time.Since(begun)
		}
		sum += at
		slices.Sort(took)
		if p := percentile(took, 99); best == 0 || p < best {
			best = p
		}
	}
	runtime.KeepAlive(sum) // or the reads are left out
	return best
}
