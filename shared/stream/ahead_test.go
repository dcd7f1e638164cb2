package stream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/operator"
)

// counting is a database that counts how often partial values are read.
type counting struct {
	operator.Querier
	reads int
}

func (c *counting) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if strings.Contains(sql, "entries from stream_partials") {
		c.reads++
	}
	return c.Querier.Query(ctx, sql, args...)
}

// Three windows of many keys are said in many closings, and read once; a process that takes over reads the rest.
func TestAWindowOfManyKeysIsReadOnce(t *testing.T) {
	t.Parallel()
	const keys, most = 50, 7
	f := newField(t)
	f.begin("many", clicksIn(0), tens, []int32{0})
	for i := range 3 * keys {
		at := epoch.Add(time.Duration(i/keys) * 10 * time.Second)
		f.click(0, string(rune('A'+i%keys)), at, at)
	}
	f.tick(0, epoch.Add(time.Hour))
	h := f.hands[0]
	f.batch(h, 1000, true)
	h.Settle(true)
	q := &counting{Querier: f.db.Pool}
	closings, said := 0, 0
	for ; ; closings++ {
		if closings == 4 {
			h = f.restored([]int32{0})
		}
		n, err := h.Look(t.Context(), q, most)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
		said += n
		if err := f.tryClose(h); err != nil {
			t.Fatal(err)
		}
		h.Closed(true)
	}
	if said != 3*keys || closings != (3*keys+most-1)/most {
		t.Errorf("%d results were said in %d closings, want %d in %d", said, closings, 3*keys, (3*keys+most-1)/most)
	}
	if q.reads != 2 {
		t.Errorf("partial values were read %d times, want once by each of two processes", q.reads)
	}
	f.agrees()
}

// What a window holds was added up, and then a partition is added to the topic, whose first event is of that window. It
// is not late, since the window is not closed; so the closing that does not know it is refused, and the next one does.
func TestAPartitionIsAddedBeforeAClosing(t *testing.T) {
	t.Parallel()
	f := newField(t)
	f.begin("added", clicksIn(0), tens, []int32{0})
	for i := range 20 {
		at := epoch.Add(time.Duration(i) * time.Second)
		f.click(0, fmt.Sprintf("%c", 'a'+i%3), at, at)
	}
	f.tick(0, epoch.Add(time.Hour))
	h := f.hands[0]
	f.batch(h, 100, true)
	h.Settle(true)
	if n, err := h.Look(t.Context(), f.db.Pool, 2); n != 2 || err != nil {
		t.Fatalf("%d results, %v", n, err)
	}
	f.own("added", 1)
	later := f.restored([]int32{1})
	f.hands = append(f.hands, later)
	f.click(1, "a", epoch.Add(time.Second), epoch.Add(time.Second))
	f.tick(1, epoch.Add(time.Hour))
	f.batch(later, 100, true)
	later.Settle(true)
	var added *PartitionAddedError
	if err := f.tryClose(h); !errors.As(err, &added) || added.Knew != 1 || added.Have != 2 {
		t.Errorf("the closing ended with: %v", err)
	}
	h.Closed(false)
	f.finish()
	f.agrees()
}

// A partition that is added while a closing is under way waits for its end: what has closed by then is closed for it too.
func TestAPartitionIsAddedDuringAClosing(t *testing.T) {
	t.Parallel()
	f := newField(t)
	f.begin("during", clicksIn(0), tens, []int32{0})
	f.click(0, "a", epoch, epoch)
	f.tick(0, epoch.Add(time.Hour))
	h := f.hands[0]
	f.batch(h, 100, true)
	h.Settle(true)
	if n, err := h.Look(t.Context(), f.db.Pool, 2); n != 1 || err != nil {
		t.Fatalf("%d results, %v", n, err)
	}
	tx := f.open()
	defer tx.Rollback()
	if err := h.Close(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	f.own("during", 1)
	restored := make(chan *hand, 1)
	go func() { restored <- f.restored([]int32{1}) }()
	f.awaitLock("insert into stream_windows")
	if err := tx.Commit(t.Context(), "op_commit", f.checkpoints(map[int32]int{0: f.at[0]})...); err != nil {
		t.Fatal(err)
	}
	later := <-restored
	f.click(1, "a", epoch.Add(time.Second), epoch.Add(time.Second))
	f.batch(later, 100, true)
	if n := f.count("select count(*) from stream_late where reason = 'late'"); n != 1 {
		t.Errorf("%d of one event of the closed window are late", n)
	}
}
