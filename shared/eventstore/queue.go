package eventstore

import (
	"container/list"
	"sync"
	"sync/atomic"
	"time"
)

// Who owns a request: as long as it waits its caller can take it back; once it was sent only the database knows.
const (
	waiting   = int32(iota)
	sent      // in a statement that was, or may have been, received by the server
	withdrawn // the caller left while it waited: it is never written
	left      // the caller left while it was sent: nobody asks for the outcome any more
)

// request is an append on its way through the group commit.
type request struct {
	Append
	bytes   int
	state   atomic.Int32
	outcome chan outcome // receives once, unless the caller left

	// Written only by the lane that holds the request.
	alone     bool // shares no flush with others, since one with it failed
	uncertain bool // an earlier try may have been committed
	flushed   flush

	place *list.Element // in the queue that holds it; guarded by the queue
	queue *queue        // the same
}

// flush is the transaction that a request was last sent with.
type flush struct {
	began    time.Time
	requests int
}

type outcome struct {
	result Result
	err    error
}

func newRequest(a Append) *request {
	r := &request{Append: a, outcome: make(chan outcome, 1), bytes: len(a.State)}
	for i := range a.Events {
		r.bytes += len(a.Events[i].Data) + len(a.Events[i].Meta)
	}
	for i := range a.Jobs {
		r.bytes += len(a.Jobs[i].Args)
	}
	return r
}

func (r *request) settle(result Result, err error) { r.outcome <- outcome{result, err} }

// claim makes a request the lane's; false when its caller left. One whose outcome is unknown is still sent.
func (r *request) claim() bool {
	return r.state.CompareAndSwap(waiting, sent) || r.state.Load() == sent
}

// unsend gives a request that was certainly not written back to its caller's control.
func (r *request) unsend() {
	if !r.uncertain {
		r.state.CompareAndSwap(sent, waiting)
	}
}

// leave is the caller giving up; true when the request will certainly not be written.
func (r *request) leave() bool {
	for {
		if r.state.CompareAndSwap(waiting, withdrawn) {
			return true
		}
		if r.state.CompareAndSwap(sent, left) {
			return false
		}
	}
}

// queue holds requests in the order in which they came.
type queue struct {
	mu     sync.Mutex
	list   list.List
	closed bool
	ready  chan struct{} // receives when there may be something to take
}

func newQueue() *queue { return &queue{ready: make(chan struct{}, 1)} }

// push adds a request at the end; false when the queue was closed.
func (q *queue) push(r *request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	r.place, r.queue = q.list.PushBack(r), q
	q.signal()
	return true
}

// putBack adds what was taken before, also to a closed queue: at the front, or behind all others.
func (q *queue) putBack(front bool, batch ...*request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range batch {
		if front {
			r := batch[len(batch)-1-i]
			r.place, r.queue = q.list.PushFront(r), q
		} else {
			r := batch[i]
			r.place, r.queue = q.list.PushBack(r), q
		}
	}
	q.signal()
}

// remove forgets a request that its caller took back, so that what waits out an outage is not kept in memory.
func (q *queue) remove(r *request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if r.place != nil && r.queue == q {
		q.list.Remove(r.place)
		r.place = nil
	}
}

func (q *queue) signal() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// close refuses new requests.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.list.Len()
}

// Bounds of one flush. More requests make a flush longer, not cheaper.
const (
	maxFlush      = 128
	maxFlushBytes = 4 << 20
	maxScan       = 4096 // how far to look past requests that must wait for the next flush
)

// take claims the requests of the next flush: at most limit, one per stream and job, in order. Those of a stream
// that is already in wait for the next flush, and so does one that must be alone.
func (q *queue) take(limit int) []*request {
	q.mu.Lock()
	defer q.mu.Unlock()
	var batch []*request
	var bytes int
	streams := make(map[string]bool, min(limit, q.list.Len()))
	jobs := map[int64]bool{}
	next := q.list.Front()
	for scanned := 0; next != nil && len(batch) < limit && scanned < maxScan; scanned++ {
		place := next
		r := place.Value.(*request)
		next = place.Next()
		if streams[r.Stream] || r.Attempt != nil && jobs[r.Attempt.JobID] {
			continue
		}
		if len(batch) > 0 && (r.alone || bytes+r.bytes > maxFlushBytes) {
			break
		}
		q.list.Remove(place)
		r.place = nil
		if !r.claim() {
			continue
		}
		batch = append(batch, r)
		bytes += r.bytes
		streams[r.Stream] = true
		if r.Attempt != nil {
			jobs[r.Attempt.JobID] = true
		}
		if r.alone {
			break
		}
	}
	return batch
}
