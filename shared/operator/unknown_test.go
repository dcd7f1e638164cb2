package operator

import (
	"bytes"
	"context"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/pg"
)

// cutter stands between a pool and Postgres and cuts connections around a commit.
type cutter struct {
	net.Listener
	target  string
	armed   atomic.Int64 // commits still to be cut
	answer  bool         // cut before the answer, the commit having happened; else before the server sees it
	cuts    atomic.Int64
	down    atomic.Bool // nothing passes
	refused atomic.Int64
	conns   sync.WaitGroup
}

func newCutter(t *testing.T, dsn string, answer bool) (*cutter, string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{target: u.Host, answer: answer}
	if c.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	c.conns.Go(c.serve)
	t.Cleanup(func() { _ = c.Close(); c.conns.Wait() })
	u.Host = c.Addr().String()
	return c, u.String()
}

func (c *cutter) serve() {
	for {
		client, err := c.Accept()
		if err != nil {
			return
		}
		if c.down.Load() {
			c.refused.Add(1)
			_ = client.Close()
			continue
		}
		server, err := net.Dial("tcp", c.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		var cutting atomic.Bool
		both := func() { _ = client.Close(); _ = server.Close() }
		c.conns.Go(func() { defer both(); c.forward(client, server, &cutting) })
		c.conns.Go(func() { defer both(); c.back(server, client, &cutting) })
	}
}

// forward looks for the call that commits.
func (c *cutter) forward(client, server net.Conn, cutting *atomic.Bool) {
	buf := make([]byte, 1<<20)
	for {
		n, err := client.Read(buf)
		if err != nil || c.down.Load() {
			return
		}
		// Statements are prepared, so only arguments show: keys are sent with what commits, and nowhere else.
		if bytes.Contains(buf[:n], []byte("key-")) && c.armed.Add(-1) >= 0 {
			c.cuts.Add(1)
			if !c.answer {
				return
			}
			cutting.Store(true)
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (c *cutter) back(server, client net.Conn, cutting *atomic.Bool) {
	buf := make([]byte, 1<<20)
	for {
		n, err := server.Read(buf)
		if err != nil || cutting.Load() && bytes.Contains(buf[:n], []byte("COMMIT")) {
			return
		}
		if cutting.Load() {
			continue
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}

func TestACutCommitTakesEffectOnce(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]bool{"before the server has it": false, "before its answer arrives": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, facts)
			cut, dsn := newCutter(t, w.db.DSN, answer)
			pool, err := pg.Open(t.Context(), dsn, pg.PoolOptions{Name: "cut", MaxConns: 4})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Close)
			direct := w.store
			w.store = eventstore.New(pool, eventstore.Options{Service: "tests", Registry: direct.Registry()})
			s := &remembering{}
			o := w.operator(w.definition(s, facts), "m1")
			w.start(o)
			w.publishFacts(facts, 30)
			w.awaitEffects(30)
			for range 5 {
				cut.armed.Store(1)
				n := w.effects()
				w.publishFacts(facts, 30)
				w.awaitEffects(n + 30)
			}
			if cut.cuts.Load() < 5 {
				t.Errorf("only %d commits were cut", cut.cuts.Load())
			}
			w.await("the memory", func() bool { return s.total() == w.effects() })
			if s.unsettled() != 0 {
				t.Error("an outcome was never told to the handler")
			}
		})
	}
}

// remembering is a ledger with state in memory: the number of effects of each partition.
type remembering struct {
	ledger
	mu       sync.Mutex
	counts   map[int32]int
	pending  map[int32]int
	restores int
	releases int
	ticks    int
}

func (r *remembering) Apply(ctx context.Context, tx *eventstore.Tx, b []Record) error {
	r.mu.Lock()
	if r.pending != nil {
		r.mu.Unlock()
		return Reject(errUnsettled)
	}
	r.pending = map[int32]int{}
	events := b[:0:0]
	for _, rec := range b {
		if rec.Sequence == 0 {
			r.ticks++
			continue
		}
		r.pending[rec.Partition]++
		events = append(events, rec)
	}
	r.mu.Unlock()
	return r.ledger.Apply(ctx, tx, events)
}

func (r *remembering) Restore(ctx context.Context, q Querier, c Claim) error {
	var n int
	if err := q.QueryRow(ctx, "select count(*) from effects where topic = $1 and partition = $2", c.Topic, c.Partition).Scan(&n); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts = map[int32]int{}
	}
	r.counts[c.Partition] = n
	r.restores++
	return nil
}

func (r *remembering) Release(c Claim) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.counts, c.Partition)
	r.releases++
}

func (r *remembering) Settle(committed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if committed {
		for p, n := range r.pending {
			r.counts[p] += n
		}
	}
	r.pending = nil
}

func (r *remembering) total() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, c := range r.counts {
		n += c
	}
	return n
}

func (r *remembering) unsettled() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pending)
}
