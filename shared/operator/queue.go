package operator

import (
	"sync"
	"time"
)

// queue holds what a claim has read and the loop has not taken. It is bounded by records and by bytes, so a slow
// database stops the reading, never the session.
type queue struct {
	mu       sync.Mutex
	items    []*item
	bytes    int
	maxItems int
	maxBytes int
	room     chan struct{} // receives after the loop took something
}

func newQueue(maxItems, maxBytes int) *queue {
	return &queue{maxItems: maxItems, maxBytes: maxBytes, room: make(chan struct{}, 1)}
}

// offer adds items unless the queue is full. It may overshoot by one bulk.
func (q *queue) offer(items []*item) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) >= q.maxItems || q.bytes >= q.maxBytes {
		return false
	}
	q.items = append(q.items, items...)
	for _, it := range items {
		q.bytes += it.size
	}
	return true
}

// take removes up to n items of together about maxBytes, at least one if there is any.
func (q *queue) take(n, maxBytes int) []*item {
	q.mu.Lock()
	defer q.mu.Unlock()
	count, bytes := 0, 0
	for count < min(n, len(q.items)) && (count == 0 || bytes < maxBytes) {
		bytes += q.items[count].size
		count++
	}
	taken := q.items[:count:count]
	q.items = q.items[count:]
	q.bytes -= bytes
	if count > 0 {
		select {
		case q.room <- struct{}{}:
		default:
		}
	}
	return taken
}

// head is the time of the record that waits longest.
func (q *queue) head() (at time.Time, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return time.Time{}, false
	}
	return q.items[0].raw.timestamp, true
}
