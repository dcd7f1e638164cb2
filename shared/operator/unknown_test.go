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
	"github.com/feira-shop/feira/shared/faulttest"
	"github.com/feira-shop/feira/shared/pg"
)

// cut is what a [cutter] does to a commit.
type cut int

const (
	unseen   cut = iota // the server never gets it
	answered            // the server commits, its answer is lost
	late                // the server gets it some time after the client has lost the connection
)

// cutter stands between a pool and Postgres and cuts connections around commits.
type cutter struct {
	net.Listener
	target  string
	how     cut
	armed   atomic.Int64 // commits still to be cut
	cuts    atomic.Int64
	arrived atomic.Int64  // late ones that have been answered by the server
	release chan struct{} // lets late ones arrive
	down    atomic.Bool   // nothing passes
	refused atomic.Int64
	conns   sync.WaitGroup
}

// newCutter gives the address at which the database can be reached through it.
func newCutter(t *testing.T, dsn string, how cut) (*cutter, string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{target: u.Host, how: how, release: make(chan struct{})}
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
		server, err := net.Dial("tcp", c.target)
		if err != nil || c.down.Load() {
			c.refused.Add(1)
			_ = client.Close()
			if err == nil {
				_ = server.Close()
			}
			continue
		}
		p := &passage{cutter: c, client: client, server: server}
		c.conns.Go(p.forward)
		c.conns.Go(p.back)
	}
}

// passage is one connection through a cutter.
type passage struct {
	*cutter
	client, server net.Conn
	cutting        atomic.Bool
}

func (p *passage) end() { _ = p.client.Close(); _ = p.server.Close() }

// forward looks for what commits. Statements are prepared, so only arguments show: keys are sent with the
// commit, and nowhere else.
func (p *passage) forward() {
	buf := make([]byte, 1<<20)
	for {
		n, err := p.client.Read(buf)
		if err != nil || p.down.Load() {
			p.end()
			return
		}
		if bytes.Contains(buf[:n], []byte("key-")) && p.armed.Add(-1) >= 0 {
			p.cuts.Add(1)
			switch p.how {
			case unseen:
				p.end()
				return
			case answered:
				p.cutting.Store(true)
			case late:
				p.cutting.Store(true)
				_ = p.client.Close()
				<-p.release
				_, _ = p.server.Write(buf[:n])
				return // back ends it
			}
		}
		if _, err := p.server.Write(buf[:n]); err != nil {
			p.end()
			return
		}
	}
}

func (p *passage) back() {
	defer p.end()
	buf := make([]byte, 1<<20)
	for {
		n, err := p.server.Read(buf)
		if err != nil {
			return
		}
		if !p.cutting.Load() {
			if _, err := p.client.Write(buf[:n]); err != nil && !p.cutting.Load() {
				return
			}
			continue
		}
		// An error, or the commit itself: the server is done with it.
		if bytes.Contains(buf[:n], []byte("COMMIT")) || bytes.Contains(buf[:n], []byte("FE001")) {
			p.arrived.Add(1)
			return
		}
	}
}

// A replay moves no offset. So a lost attempt that arrives after all could not be told from the next one, were
// its epoch not taken away first; and whether it was committed, only the parked rows tell.
func TestFaultCutReplay(t *testing.T) {
	t.Parallel()
	faulttest.Begin(t, faulttest.Plan{
		Number: 7, Name: "Connections cut around the commit of a replay",
		Does: "the commit of a replay is lost, loses its answer, or arrives when the next attempt is under way: the event takes effect once",
	})
	for name, how := range map[string]cut{"arriving late": late, "before its answer arrives": answered, "before the server has it": unseen} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, facts)
			cut, dsn := newCutter(t, w.db.DSN, how)
			pool, err := pg.Open(t.Context(), dsn, pg.PoolOptions{Name: "replay", MaxConns: 4})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Close)
			w.store = eventstore.New(pool, eventstore.Options{Service: "tests", Registry: w.store.Registry()})
			log := w.publishFacts(facts, 30)
			s := &remembering{}
			s.refuse(idOf(log[0]))
			o := w.operator(w.definition(s, facts), "m1")
			w.start(o)
			w.awaitCheckpoints(30)
			s.refuse()
			cut.armed.Store(1)
			ids, err := Replay(t.Context(), w.db.Pool, Selection{Operator: o.Name()}, "ana")
			if err != nil {
				t.Fatal(err)
			}
			w.awaitRequests(ids)
			close(cut.release)
			if how == late {
				w.await("the late attempt", func() bool { return cut.arrived.Load() == 1 })
			}
			w.awaitEffects2(30)
			if s.total() != 30 {
				t.Errorf("%d in memory, want 30", s.total())
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
