package eventstore_test

import (
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// proxy stands between a client and Postgres and cuts connections around large writes, which are commits: the
// small ones that connect and prepare go through.
type proxy struct {
	t        *testing.T
	listener net.Listener
	server   string
	percent  int // of the large writes that are cut
	cuts     [4]atomic.Int64
	open     sync.WaitGroup
	random   func(n int) int
}

const (
	largeWrite = 400 // bytes
	bind       = 'B' // first byte of a write that executes a prepared statement
)

// What happens to a large write that is cut.
const (
	cutBefore = iota // the server never gets it
	cutWithin        // the server gets half of it
	cutAfter         // the server gets it, the answer is lost
	cutLate          // as before, and the server gets it some time after the client saw the cut
)

// throughProxy returns the address of a proxy before dsn's server, and the proxy.
func throughProxy(t *testing.T, dsn string, percent int, dice *rand.Rand) (string, *proxy) {
	t.Helper()
	u, err := url.Parse(dsn)
	must(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var mu sync.Mutex
	p := &proxy{t: t, listener: listener, server: u.Host, percent: percent, random: func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return dice.IntN(n)
	}}
	p.open.Go(p.accept)
	u.Host = listener.Addr().String()
	return u.String(), p
}

// stop is called after the clients are gone.
func (p *proxy) stop() {
	_ = p.listener.Close()
	p.open.Wait()
}

func (p *proxy) total() (n int64) {
	for i := range p.cuts {
		n += p.cuts[i].Load()
	}
	return n
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.open.Go(func() {
			_, _ = io.Copy(client, server)
			_ = client.Close()
			_ = server.Close()
		})
		p.open.Go(func() { p.forward(client, server) })
	}
}

func (p *proxy) forward(client, server net.Conn) {
	defer func() {
		_ = client.Close()
		_ = server.Close()
	}()
	buf := make([]byte, 1<<20)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		if n >= largeWrite && buf[0] == bind && p.random(100) < p.percent {
			p.cut(client, server, buf[:n])
			return
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (p *proxy) cut(client, server net.Conn, write []byte) {
	kind := p.random(len(p.cuts))
	p.cuts[kind].Add(1)
	switch kind {
	case cutBefore:
	case cutWithin:
		_, _ = server.Write(write[:len(write)/2])
	case cutAfter:
		_ = client.Close()
		_, _ = server.Write(write)
	case cutLate:
		_ = client.Close()
		time.Sleep(time.Duration(p.random(40)) * time.Millisecond) // the fault itself, nothing waits for it
		_, _ = server.Write(write)
	}
}
