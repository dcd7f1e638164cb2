package faulttest

import (
	"context"
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
	tb    testing.TB
	proxy *toxiproxy.Proxy
}

// Before puts a network before the server at a host:port. It is taken away when the test ends.
func Before(tb testing.TB, server string) *Network {
	tb.Helper()
	log := zerolog.Nop()
	n := &Network{tb: tb, proxy: toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), log), "network", "127.0.0.1:0", server)}
	n.Up()
	tb.Cleanup(n.proxy.Stop)
	return n
}

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
	n.tb.Helper()
	if err := n.proxy.Start(); err != nil {
		n.tb.Errorf("the network does not come up: %v", err)
	}
}

// Cut ends the connections that there are; new ones are taken at once.
func (n *Network) Cut() {
	n.tb.Helper()
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
	n.tb.Helper()
	if _, err := n.proxy.Toxics.AddToxicJson(strings.NewReader(definition)); err != nil {
		n.tb.Errorf("the network cannot be made worse: %v", err)
	}
}
