package eventstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

// patience is for signals that come at once on an idle machine.
const patience = 30 * time.Second

func receive(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("no signal: %s", what)
	}
}

// TestWakeAcrossProcesses: two stores over one database are two processes of a service.
func TestWakeAcrossProcesses(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	here, there := start(t, db.Pool), start(t, open(t, db.DSN, 4))
	receive(t, "it listens", there.Wake())
	for v := range int64(3) {
		_, err := here.Append(t.Context(), counted(t, "counter-1", v))
		must(t, err)
		receive(t, "in this process", here.Wake())
		receive(t, "in the other process", there.Wake())
	}
	must(t, here.Within(t.Context(), nothing))
	here.Committed() // as the operator loop does
	receive(t, "after an operator's commit", there.Wake())

	exec(t, db.Pool, "select pg_terminate_backend(pid) from pg_stat_activity where query = 'listen feira_events' and datname = current_database()")
	receive(t, "it listens again", there.Wake())
}

func TestWatch(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	here, there := start(t, db.Pool), start(t, open(t, db.DSN, 4))
	watched, stop := there.Watch("counter-1")
	defer stop()
	other, stopOther := there.Watch("counter-2")
	defer stopOther()
	receive(t, "the first signal", watched)
	for v := range int64(20) {
		_, err := here.Append(t.Context(), counted(t, "counter-1", v))
		must(t, err)
		receive(t, fmt.Sprintf("version %d", v+1), watched)
		if v > 0 {
			continue
		}
		select { // the other's first signal came with this one's, which is over when the next has come, or not at all
		case <-other:
		default:
		}
	}
	select {
	case <-other:
		t.Error("a stream without events was signalled")
	default:
	}
	stopOther()
	_, err := here.Append(t.Context(), counted(t, "counter-2", 0))
	must(t, err)
	_, err = here.Append(t.Context(), counted(t, "counter-1", 20))
	must(t, err)
	receive(t, "the last version", watched)
	select {
	case <-other:
		t.Error("a stopped watcher was signalled")
	default:
	}
}

// TestWatchThenLoad: between Watch and the signal nothing can be missed, however the two race.
func TestWatchThenLoad(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	s := start(t, db.Pool)
	for i := range 100 {
		stream := fmt.Sprintf("counter-%d", i)
		written := appendLater(s, t.Context(), counted(t, stream, 0))
		changed, stop := s.Watch(stream)
		for deadline := time.Now().Add(patience); ; {
			loaded, err := s.Load(t.Context(), stream)
			must(t, err)
			if loaded.Version == 1 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("the append was never seen")
			}
			receive(t, stream, changed)
		}
		stop()
		must(t, <-written)
	}
}
