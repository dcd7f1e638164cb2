package eventstore

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	tailPoll = time.Second          // a notification can be lost
	tailGap  = 5 * time.Millisecond // least time between two reads
	tailPage = 2000
)

// tail reads which streams got events and tells those who watch them: one reader per process, however many
// watchers, and no reads at all while there are none.
type tail struct {
	mu       sync.Mutex
	watchers map[string]map[*watcher]struct{}
	restart  bool // the first watcher came: what was committed before does not matter to it
	kick     chan struct{}
}

type watcher struct{ changed chan struct{} }

func newTail() *tail {
	return &tail{watchers: map[string]map[*watcher]struct{}{}, kick: make(chan struct{}, 1)}
}

func (t *tail) poke() { poke(t.kick) }

// Watch returns a channel that receives whenever the stream may have new events, from any process. Watch first,
// then load: what is committed after the load makes the channel receive. The caller must call stop.
func (s *Store) Watch(stream string) (changed <-chan struct{}, stop func()) {
	w := &watcher{changed: make(chan struct{}, 1)}
	s.tail.add(stream, w)
	return w.changed, func() { s.tail.remove(stream, w) }
}

func (t *tail) add(stream string, w *watcher) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.watchers) == 0 {
		t.restart = true
		t.poke()
	}
	if t.watchers[stream] == nil {
		t.watchers[stream] = map[*watcher]struct{}{}
	}
	t.watchers[stream][w] = struct{}{}
}

func (t *tail) remove(stream string, w *watcher) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.watchers[stream], w)
	if len(t.watchers[stream]) == 0 {
		delete(t.watchers, stream)
	}
}

// state says whether anybody watches, and whether to begin at the newest event.
func (t *tail) state() (watched, restart bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	restart = t.restart
	t.restart = false
	return len(t.watchers) > 0, restart
}

// changed tells the watchers of streams; nil means all.
func (t *tail) changed(streams []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if streams == nil {
		for _, all := range t.watchers {
			for w := range all {
				poke(w.changed)
			}
		}
	}
	for _, stream := range streams {
		for w := range t.watchers[stream] {
			poke(w.changed)
		}
	}
}

// follow serves watchers until ctx ends.
func (s *Store) follow(ctx context.Context) {
	poll := time.NewTicker(tailPoll)
	defer poll.Stop()
	gap := time.NewTicker(tailGap)
	defer gap.Stop()
	r := tailReader{store: s, own: ownConn{store: s}}
	defer r.own.close(ctx)
	for {
		select {
		case <-s.tail.kick:
		case <-poll.C:
		case <-ctx.Done():
			return
		}
		watched, restart := s.tail.state()
		r.known = r.known && !restart
		if !watched {
			continue
		}
		if err := r.look(ctx); err != nil && ctx.Err() == nil {
			s.log.Debug("watched streams could not be read", "error", err)
		}
		gap.Reset(tailGap)
		select {
		case <-gap.C:
		case <-ctx.Done():
			return
		}
	}
}

// tailReader is how far a store's tail was read.
type tailReader struct {
	store  *Store
	own    ownConn
	cursor int64
	known  bool // the cursor
}

// look tells watchers of all events after the cursor.
func (r *tailReader) look(ctx context.Context) error {
	conn, err := r.own.lend(ctx)
	if err != nil {
		return err
	}
	if r.known {
		err = r.fanOut(ctx, conn)
	} else {
		err = r.begin(ctx, conn)
	}
	r.own.giveBack(ctx, err)
	return err
}

// begin is at the newest event.
func (r *tailReader) begin(ctx context.Context, conn *pgx.Conn) error {
	err := conn.QueryRow(ctx, "select coalesce(max(position), 0) from events").Scan(&r.cursor)
	if err != nil {
		return err
	}
	r.known = true
	r.store.tail.changed(nil) // what came between their Watch and now is behind the cursor
	return nil
}

// fanOut moves the cursor. Positions are in commit order, so none is missed.
func (r *tailReader) fanOut(ctx context.Context, conn *pgx.Conn) error {
	for {
		rows, err := conn.Query(ctx, "select position, stream from events where position > $1 order by position limit $2", r.cursor, tailPage)
		if err != nil {
			return err
		}
		streams := []string{}
		var position int64
		var stream string
		last := r.cursor
		if _, err := pgx.ForEachRow(rows, []any{&position, &stream}, func() error {
			streams = append(streams, stream)
			last = position
			return nil
		}); err != nil {
			return err
		}
		r.cursor = last
		r.store.tail.changed(streams)
		if len(streams) < tailPage {
			return nil
		}
	}
}
