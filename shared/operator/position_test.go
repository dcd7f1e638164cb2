package operator

import (
	"testing"

	"github.com/feira-shop/feira/shared/events"
)

func TestPositionDropsDuplicatesAndFindsHoles(t *testing.T) {
	t.Parallel()
	chained := func(seq, prev int64) item {
		it := item{counted: true, chained: true}
		it.rec = Record{Recorded: events.Recorded{Sequence: seq, Previous: prev, HasPrevious: true}, Offset: 7}
		return it
	}
	compacted := item{counted: true, rec: Record{Recorded: events.Recorded{Sequence: 3}, Offset: 7}}
	foreign := item{fate: parking, rec: Record{Recorded: events.Recorded{Sequence: 999}, Offset: 7}}
	at := func(next, source int64) position { return position{next: next, source: source} }
	tests := []struct {
		name string
		from position
		it   item
		to   position
		fate fate
		hole *hole
	}{
		{"the first", at(0, 0), chained(1, 0), at(8, 1), applied, nil},
		{"the next", at(7, 4), chained(9, 4), at(8, 9), applied, nil},
		{"a duplicate", at(7, 9), chained(9, 4), at(8, 9), duplicate, nil},
		{"an older duplicate", at(7, 9), chained(4, 2), at(8, 9), duplicate, nil},
		{"a hole", at(7, 4), chained(12, 9), at(7, 4), applied, &hole{7, 4, 9}},
		{"the log's beginning is gone", at(5, 0), chained(12, 9), at(5, 0), applied, &hole{7, 0, 9}},
		{"its predecessor was applied before a duplicate run", at(7, 9), chained(10, 8), at(8, 10), applied, nil},
		{"adopted", position{7, 4, true}, chained(12, 9), at(8, 12), applied, nil},
		{"a duplicate does not use the adoption up", position{7, 9, true}, chained(4, 2), position{8, 9, true}, duplicate, nil},
		{"compacted, lower", at(7, 9), compacted, at(8, 9), applied, nil},
		{"compacted, higher", at(7, 1), compacted, at(8, 3), applied, nil},
		{"a stranger's sequence means nothing", at(7, 9), foreign, at(8, 9), parking, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			to, f, h := tt.from.advance(tt.it)
			if to != tt.to || f != tt.fate {
				t.Errorf("got %+v %v, want %+v %v", to, f, tt.to, tt.fate)
			}
			if (h == nil) != (tt.hole == nil) || h != nil && *h != *tt.hole {
				t.Errorf("hole %v, want %v", h, tt.hole)
			}
		})
	}
}
