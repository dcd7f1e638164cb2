package faulttest

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// Network lies between clients and a server and can be taken down, cut and slowed.
type Network struct {
	proxy *toxiproxy.Proxy
	fail  func(format string, args ...any)
}

// Before puts a network before the server at a host:port. It is taken away when the test ends.
func Before(tb testing.TB, server string) *Network {
	tb.Helper()
	n, err := Open(server, "127.0.0.1:0", tb.Errorf)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(n.Close)
	return n
}

// Open is [Before] outside a test: clients connect at listen, and fail is told what goes wrong later.
func Open(server, listen string, fail func(format string, args ...any)) (*Network, error) {
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	n := &Network{proxy: toxiproxy.NewProxy(api, "network", listen, server), fail: fail}
	if err := n.proxy.Start(); err != nil {
		return nil, fmt.Errorf("a network before %s: %w", server, err)
	}
	return n, nil
}

// Close ends it and its connections.
func (n *Network) Close() { n.proxy.Stop() }

// BeforePostgres is [Before] for the server of a connection string, and gives the string that leads through it.
func BeforePostgres(tb testing.TB, dsn string) (*Network, string) {
	tb.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		tb.Fatalf("the address of the database: %v", err)
	}
	n := Before(tb, u.Host)
	u.Host = n.Address()
	return n, u.String()
}

// Address is where clients connect.
func (n *Network) Address() string { return n.proxy.Listen }

// Down refuses connections and ends those that there are.
func (n *Network) Down() { n.proxy.Stop() }

// Up takes connections again, at the same address.
func (n *Network) Up() {
	if err := n.proxy.Start(); err != nil {
		n.fail("the network does not come up: %v", err)
	}
}

// Cut ends the connections that there are; new ones are taken at once.
func (n *Network) Cut() {
	n.Down()
	n.Up()
}

// Hang keeps connections open and lets nothing through, in neither direction, until [Network.Heal].
func (n *Network) Hang() {
	n.toxic(`{"name":"hang-up","type":"timeout","stream":"upstream","attributes":{"timeout":0}}`)
	n.toxic(`{"name":"hang-down","type":"timeout","stream":"downstream","attributes":{"timeout":0}}`)
}

// Slow delays what the server answers, until [Network.Heal].
func (n *Network) Slow(by time.Duration) {
	n.toxic(`{"name":"slow","type":"latency","stream":"downstream","attributes":{"latency":` + strconv.FormatInt(by.Milliseconds(), 10) + `}}`)
}

// Heal ends [Network.Hang] and [Network.Slow].
func (n *Network) Heal() { n.proxy.Toxics.ResetToxics(context.Background()) }

func (n *Network) toxic(definition string) {
	if _, err := n.proxy.Toxics.AddToxicJson(strings.NewReader(definition)); err != nil {
		n.fail("the network cannot be made worse: %v", err)
	}
}
