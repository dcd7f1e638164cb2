package eventstore

import (
	"context"
	"encoding/json"
	"sync"
	"time"
)

const (
	// notifyChannel carries the instance id of the store that committed.
	notifyChannel = "feira_events"
	// notifyGap is the least time between two notifications: one per transaction would take most of the throughput.
	notifyGap     = 5 * time.Millisecond
	notifyTimeout = 2 * time.Second
	listenBackoff = time.Second
)

// Nothing is lost with this transaction, and it holds a lock of the whole server while it commits: it need not wait
// for the disk.
const notifySQL = `select set_config('synchronous_commit', 'off', true), pg_notify($1, $2),
 (select count(pg_notify(current_schema() || '.river_insert', q)) from unnest($3::text[]) q)`

// notifier tells other processes of commits: stores and relays by one channel, River's clients by River's.
type notifier struct {
	mu     sync.Mutex
	queues map[string]bool // River queues with new jobs
	kick   chan struct{}
}

func newNotifier() *notifier {
	return &notifier{queues: map[string]bool{}, kick: make(chan struct{}, 1)}
}

func (n *notifier) add(queues []string) {
	if len(queues) > 0 {
		n.mu.Lock()
		for _, q := range queues {
			n.queues[q] = true
		}
		n.mu.Unlock()
	}
	poke(n.kick)
}

// take empties the set of queues, as River's payloads.
func (n *notifier) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var payloads []string
	for q := range n.queues {
		payloads = append(payloads, riverPayload(q))
	}
	clear(n.queues)
	return payloads
}

// poke makes c receive, unless it already has something to.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Committed tells relay and watchers in this process, and soon those in others, that new events may be there. The
// store calls it after its own commits; the operator loop calls it after its.
func (s *Store) Committed() { s.committed(nil) }

// committed also tells River's clients of new jobs in queues.
func (s *Store) committed(queues []string) {
	poke(s.wake)
	s.tail.poke()
	s.notifier.add(queues)
}

// Wake returns a channel that receives after commits, in this process or (by NOTIFY) in another. For the relay:
// there is one such channel per store, so it has one reader.
func (s *Store) Wake() <-chan struct{} { return s.wake }

// notify sends notifications until ctx ends, the last one included. One that fails is not repeated: everybody polls
// as well.
func (s *Store) notify(ctx context.Context) {
	own := ownConn{store: s}
	defer own.close(ctx)
	defer func() {
		select {
		case <-s.notifier.kick:
			_ = s.notifyOnce(context.WithoutCancel(ctx), &own)
		default:
		}
	}()
	gap := time.NewTicker(notifyGap)
	defer gap.Stop()
	for {
		select {
		case <-s.notifier.kick:
		case <-ctx.Done():
			return
		}
		if err := s.notifyOnce(ctx, &own); err != nil && ctx.Err() == nil {
			s.log.Debug("notification not sent", "error", err)
		}
		gap.Reset(notifyGap)
		select {
		case <-gap.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *Store) notifyOnce(ctx context.Context, own *ownConn) error {
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	conn, err := own.lend(ctx)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, notifySQL, notifyChannel, s.instance, s.notifier.take())
	own.giveBack(ctx, err)
	return err
}

// listen wakes relay and watchers when another process has committed, until ctx ends.
func (s *Store) listen(ctx context.Context) {
	for ctx.Err() == nil {
		err := s.listenOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		s.log.Debug("listening for commits of other processes was interrupted", "error", err)
		select {
		case <-time.After(listenBackoff):
		case <-ctx.Done():
		}
	}
}

func (s *Store) listenOnce(ctx context.Context) error {
	conn, err := s.dial(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing)
	}()
	if _, err := conn.Exec(ctx, "listen "+notifyChannel); err != nil {
		return err
	}
	for {
		poke(s.wake) // also once at the start: something may have been missed
		s.tail.poke()
		for {
			n, err := conn.WaitForNotification(ctx)
			if err != nil {
				return err
			}
			if n.Payload != s.instance {
				break
			}
		}
	}
}

// queuesOf lists the River queues for which requests insert jobs.
func queuesOf(appends []Append) []string {
	var queues []string
	for i := range appends {
		for j := range appends[i].Jobs {
			queues = append(queues, appends[i].Jobs[j].Queue)
		}
	}
	return queues
}

// riverPayload is what River's clients expect in a notification of new jobs.
func riverPayload(queue string) string {
	if queue == "" {
		queue = "default"
	}
	payload, err := json.Marshal(map[string]string{"queue": queue})
	if err != nil { // never for strings
		return "{}"
	}
	return string(payload)
}
