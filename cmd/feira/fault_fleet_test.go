package main_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feira-shop/feira/internal/shop"
	"github.com/feira-shop/feira/shared/auth"
	"github.com/feira-shop/feira/shared/faulttest"
	"github.com/feira-shop/feira/sim/shoppers"
)

// failing is the program with the points at which it can be taken away; it is built when a test first needs it.
var failing = sync.OnceValues(func() (string, error) {
	path := filepath.Join(folder, "feira-failpoints")
	out, err := exec.Command("go", "build", "-tags", "failpoints", "-o", path, ".").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("build the program with failpoints: %w\n%s", err, out)
	}
	return path, err
})

// fleet is a shop of processes that can be started again at their addresses, beside a demo that gives them Kafka,
// Postgres and the payment provider.
type fleet struct {
	t       *testing.T
	demo    *running
	program string
	address map[string]string // of services and the gateway
}

// fleetWindow is how long analytics' windows are: short, so that it has something to say.
const fleetWindow = "2s"

// newFleet starts the demo without the given services, and none of these.
func newFleet(t *testing.T, services ...string) *fleet {
	t.Helper()
	f := &fleet{t: t, address: map[string]string{}}
	var err error
	if f.program, err = failing(); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(services, "gateway") {
		f.address[name] = freeAddress(t)
	}
	f.demo = startDemo(t, newFolder(t), "--without="+strings.Join(services, ","), "--shoppers=0", "--deadline=10m", "--window="+fleetWindow)
	return f
}

// start starts a service, or the gateway, with a failpoint; "" is none. It may be called from any goroutine.
func (f *fleet) start(name, failpoint string, args ...string) (*process, error) {
	f.t.Helper()
	args = append([]string{
		"--env-file=" + f.demo.file(), "run", name, "--listen=" + f.address[name], "--member=" + name, "--hold=2s", "--rate=0", "--window=" + fleetWindow,
		"--log-format=json", "--log-level=warn",
	}, args...)
	return launch(f.t, f.program, []string{"FEIRA_FAILPOINT=" + failpoint}, args...)
}

// mustRun starts a service, or the gateway, and waits until it is ready.
func (f *fleet) mustRun(name string, args ...string) *process {
	f.t.Helper()
	p, err := f.start(name, "", args...)
	if err != nil {
		f.t.Fatal(err)
	}
	f.awaitReady(name)
	return p
}

func (f *fleet) awaitReady(name string) {
	f.t.Helper()
	eventually(f.t, name+" to be ready", func() bool { return isReady(f.t.Context(), f.address[name]) })
}

// isReady is also asked while nobody listens.
func isReady(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	status, _, err := get(ctx, "http://"+address+"/readyz")
	return err == nil && status == http.StatusOK
}

// openShop starts the gateway and gives the shop's address.
func (f *fleet) openShop() string {
	f.t.Helper()
	var upstreams []string
	for _, d := range shop.Services(shop.Config{}) {
		if address := f.address[d.Name]; address != "" && d.Routes != nil {
			upstreams = append(upstreams, d.Name+"="+address)
		}
	}
	f.mustRun("gateway", "--upstreams="+strings.Join(upstreams, ","))
	return "http://" + f.address["gateway"]
}

// Ports of ours lie below those that the system gives to outgoing connections, so that one whose owner was killed is
// not taken by somebody's client.
const lowestPort, highestPort = 20000, 30000

// givenAddresses are those that freeAddress has found: they may be free until their owner starts.
var givenAddresses sync.Map

// freeAddress finds an address that can be listened on, and finds none twice.
func freeAddress(t *testing.T) string {
	t.Helper()
	var err error
	for range 100 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(lowestPort+rand.IntN(highestPort-lowestPort)))
		if _, given := givenAddresses.LoadOrStore(address, true); given {
			continue
		}
		var l net.Listener
		if l, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", address); err == nil {
			if err = l.Close(); err == nil {
				return address
			}
		}
	}
	t.Fatalf("no free port: %v", err)
	return ""
}

// crowd is shoppers under way.
type crowd struct {
	t       *testing.T
	run     *faulttest.Run
	all     *shoppers.Shoppers
	outcome chan error
}

// startCrowd has so many people a second order at a shop, who repeat what was not answered, with so many cards; 0: each
// order has one of its own.
func startCrowd(t *testing.T, run *faulttest.Run, shop, keyFile string, perSecond float64, cards int64) *crowd {
	t.Helper()
	key := keyOf(t, keyFile)
	all, err := shoppers.New(shoppers.Options{
		BaseURL: shop, Rate: perSecond, Cards: cards, Seed: run.Dice().Uint64(), Settle: patience,
		Token:         func(customer string) string { return sign(key, customer, auth.Customer) },
		OperatorToken: func() string { return sign(key, "keeper", auth.Operator) },
		// What a peak needed is gone before the next fault, or it would count as what the shop holds.
		Client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100, IdleConnTimeout: 5 * time.Second}},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := &crowd{t: t, run: run, all: all, outcome: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { c.outcome <- all.Run(ctx) }()
	t.Cleanup(func() { cancel(); all.Stop() })
	return c
}

// settle ends the ordering and waits until every order has come to its end.
func (c *crowd) settle() {
	c.t.Helper()
	c.all.Stop()
	if err := <-c.outcome; err != nil {
		c.t.Error(err)
	}
	s := c.all.Snapshot()
	c.run.Count("orders", int(s.Placed))
	c.run.Count("requests repeated", int(s.Retries))
	if s.Placed == 0 || s.Refused > 0 {
		c.t.Errorf("the shop took %d orders and refused %d", s.Placed, s.Refused)
	}
}

func keyOf(t *testing.T, file string) *auth.Key {
	t.Helper()
	key, err := auth.LoadKey(file)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sign makes a token; "" when it cannot, which the shop answers with 401.
func sign(key *auth.Key, who string, role auth.Role) string {
	token, err := key.Sign(who, []auth.Role{role}, 2*time.Hour)
	if err != nil {
		return ""
	}
	return token
}
