package operator

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"
)

// ids are those of events, of each partition in order.
type ids map[int32][]string

func (i ids) count() int {
	n := 0
	for _, of := range i {
		n += len(of)
	}
	return n
}

// oracle works out from the owner's log alone what must be there: each event took effect once and in order, but for
// those that cannot be applied and those behind them of their keys, which are parked.
func oracle(log []*kgo.Record, poison func(id string) bool) (effects, parked ids) {
	effects, parked = ids{}, ids{}
	seen, blocked := map[string]bool{}, map[string]bool{}
	for _, r := range log {
		id, key := idOf(r), string(r.Key)
		switch {
		case seen[id]: // published twice
		case poison != nil && poison(id) || blocked[key]:
			blocked[key] = true
			parked[r.Partition] = append(parked[r.Partition], id)
		default:
			effects[r.Partition] = append(effects[r.Partition], id)
		}
		seen[id] = true
	}
	return effects, parked
}

// agrees waits until as much is there as the oracle says, and demands that nothing differs from it.
func (w *world) agrees(log []*kgo.Record, poison func(id string) bool) {
	w.t.Helper()
	effects, parked := oracle(log, poison)
	w.await(fmt.Sprintf("%d effects and %d parked", effects.count(), parked.count()), func() bool {
		return w.effects()+w.count("select count(*) from parked") >= effects.count()+parked.count()
	})
	w.same("effects", w.read("select partition, id from effects order by n"), effects)
	w.same("parked", w.read(`select partition, event_id from parked order by "offset"`), parked)
	w.stateFollowsCheckpoints()
}

func (w *world) read(sql string, args ...any) ids {
	w.t.Helper()
	found := ids{}
	rows, err := w.db.Pool.Query(context.Background(), sql, args...)
	if err != nil {
		w.t.Fatal(err)
	}
	var partition int32
	var id string
	_, err = pgx.ForEachRow(rows, []any{&partition, &id}, func() error {
		found[partition] = append(found[partition], id)
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

func (w *world) same(what string, have, want ids) {
	w.t.Helper()
	all := maps.Clone(want)
	maps.Copy(all, have)
	for _, p := range slices.Sorted(maps.Keys(all)) {
		if i := firstDifference(have[p], want[p]); i >= 0 {
			w.t.Errorf("partition %d: %d %s, want %d; they differ from number %d on", p, len(have[p]), what, len(want[p]), i)
		}
	}
}

// firstDifference is the place from which two lists differ; -1: they do not.
func firstDifference(a, b []string) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return i
		}
	}
	return -1
}
