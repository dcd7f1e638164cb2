package relay

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/events"
)

// noted collects what a person would have been written down for.
type noted []string

func (n *noted) note(_ context.Context, _ pgx.Tx, detail string) error {
	*n = append(*n, detail)
	return nil
}

func (e *env) recover(dry bool) (Recovered, noted, error) {
	var n noted
	r, err := Recover(e.t.Context(), e.db.DSN, e.broker.Config("recover"), e.topic, dry, n.note)
	return r, n, err
}

// lose publishes 60 events, keeps a dump, publishes 41 more, and restores the dump.
func (e *env) lose() {
	e.t.Helper()
	e.append(placed, keys(60)...)
	_, stop := e.start()
	e.drained()
	e.dump()
	e.append(placed, keys(41)...)
	e.drained()
	stop()
	e.restore()
}

func TestAStoreGetsBackWhatItLostFromItsLog(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		since int // events written since the restore
	}{"nothing new": {0}, "few, on reused positions": {5}, "many, beyond them": {200}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, events.Orders)
			e.lose()
			if c.since > 0 {
				e.append(placed, keys(c.since)...)
			}
			r, stop := e.start()
			e.until("the relay has stopped", func() bool { return r.Health() != nil })
			before := e.ends()

			found, said, err := e.recover(true)
			if err != nil || found.Events != 41 || len(found.Streams) != 41 || found.Moved != c.since || len(said) != 0 {
				t.Fatalf("a dry run found %+v, noted %v: %v", found, said, err)
			}
			var n int
			if e.scan(&n, "select count(*) from events"); n != 60+c.since {
				t.Fatalf("a dry run left %d events", n)
			}
			stop()
			if found, said, err = e.recover(false); err != nil || found.Events != 41 || found.Moved != c.since || len(said) != 1 || !strings.HasPrefix(said[0], "41 events") {
				t.Fatalf("it recovered %+v, noted %v: %v", found, said, err)
			}
			e.append(placed, keys(10)...) // the next positions are free
			e.start()
			e.drained()
			if repeated := e.check(); repeated != 41 {
				t.Errorf("%d records were repeated, expected those that came back", repeated)
			}
			if e.scan(&n, "select count(*) from events"); n != 60+41+c.since+10 {
				t.Errorf("%d events in the end", n)
			}
			if e.ends() != before+int64(41+c.since+10) {
				t.Errorf("%d records were written", e.ends()-before)
			}
			if e.scan(&n, "select count(*) from streams where shape = 0 and version = 1"); n != 41 {
				t.Errorf("%d streams are left to be folded anew", n)
			}
		})
	}
}

func TestWhatCannotBeRecoveredIsNamed(t *testing.T) {
	t.Parallel()
	t.Run("a stream went another way", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, events.Orders)
		e.lose()
		log := e.log(0)
		e.exec(`insert into events (stream, version, type, key, data, meta) values ($1, 1, $2, 'k', '{}', '{"id":"other"}')`,
			log[len(log)-1].Subject, placed)
		_, said, err := e.recover(false)
		var diverged *DivergedError
		if !errors.As(err, &diverged) || diverged.Stream != log[len(log)-1].Subject || len(said) != 0 {
			t.Errorf("got %v, noted %v", err, said)
		}
	})
	t.Run("the log has a hole, too", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, events.Orders)
		e.lose()
		e.exec("update relay_partitions set last_position = 1")
		_, _, err := e.recover(false)
		var hole *LogGapError
		if !errors.As(err, &hole) || hole.Have != 1 || hole.Need <= 1 {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a relay leads", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, events.Orders)
		e.append(placed, keys(6)...)
		e.start()
		e.drained()
		if _, _, err := e.recover(true); !errors.Is(err, ErrLeading) {
			t.Errorf("got %v", err)
		}
		if _, err := PublishAnew(t.Context(), e.db.DSN, e.topic, true, nil); !errors.Is(err, ErrLeading) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("nothing was published", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t, events.Orders)
		var never *NeverPublishedError
		if _, _, err := e.recover(true); !errors.As(err, &never) {
			t.Errorf("got %v", err)
		}
		if _, err := PublishAnew(t.Context(), e.db.DSN, e.topic, true, nil); !errors.As(err, &never) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a compacted topic", func(t *testing.T) {
		t.Parallel()
		var compacted *CompactedError
		if _, err := Recover(t.Context(), "", newEnv(t, events.Catalog).broker.Config("recover"), events.Catalog, true, nil); !errors.As(err, &compacted) {
			t.Errorf("got %v", err)
		}
	})
}

// remake deletes the topic and makes it again.
func (e *env) remake(partitions int32) {
	e.t.Helper()
	c := e.broker.Cluster()
	if err := errors.Join(c.DeleteTopic(e.topic.Name), c.CreateTopic(e.topic.Name, partitions, nil)); err != nil {
		e.t.Fatal(err)
	}
}

// The topic is deleted and made again with other partitions; then the store is published to it from its first event.
func TestAStoreIsPublishedAnew(t *testing.T) {
	t.Parallel()
	e := newEnv(t, events.Orders)
	e.append(placed, keys(60)...)
	r, stop := e.start()
	e.drained()
	e.remake(e.topic.Partitions + 1)
	e.append(placed, keys(1)...)
	e.until("the relay has stopped", func() bool { return r.Health() != nil })
	stop()
	status, err := StatusOf(t.Context(), e.db.Pool, e.topic)
	if err != nil || status.Position != 60 || status.Waiting != 1 || status.Oldest <= 0 || status.Stopped != r.Health().Error() {
		t.Errorf("the status is %+v: %v", status, err)
	}
	e.remake(e.topic.Partitions)
	var said noted
	a, err := PublishAnew(t.Context(), e.db.DSN, e.topic, true, said.note)
	if err != nil || a.Position != 60 || a.Newest != 61 || a.Partitions != int(e.topic.Partitions) || e.cursor() != 60 {
		t.Fatalf("a dry run found %+v, cursor at %d: %v", a, e.cursor(), err)
	}
	if _, err = PublishAnew(t.Context(), e.db.DSN, e.topic, false, said.note); err != nil || len(said) != 1 {
		t.Fatalf("noted %v: %v", said, err)
	}
	e.start()
	e.drained()
	if status, err = StatusOf(t.Context(), e.db.Pool, e.topic); err != nil || status.Stopped != "" || status.Waiting != 0 {
		t.Errorf("the status is %+v: %v", status, err)
	}
	if n := e.check(); n != 0 {
		t.Errorf("%d records were repeated on a new topic", n)
	}
}
