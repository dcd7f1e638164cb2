package main_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/feira-shop/feira/internal/shop"
	"github.com/feira-shop/feira/shared/auth"
	"github.com/feira-shop/feira/shared/faulttest"
	"github.com/feira-shop/feira/shared/service"
)

// The points of the runtime at which a process of a service is killed.
var (
	operatorPoints = []string{
		"operator.before-begin", "operator.after-apply", "operator.before-commit", "operator.after-commit", "operator.after-mark",
	}
	relayPoints  = []string{"relay.before-send", "relay.after-ack", "relay.before-cursor", "relay.after-cursor"}
	appendPoints = []string{"eventstore.before-append", "eventstore.after-append"} // of the group commit
	jobPoints    = []string{"jobs.before-effect", "jobs.after-effect", "jobs.after-outcome"}
)

// killsOf lists where a service's process is killed, in random order: every operator of it at every point in full, some
// of them in short, and its store, its relay and its jobs, which have tests of their own, less often.
func killsOf(run *faulttest.Run, dice *rand.Rand, d service.Definition) []string {
	var kills []string
	add := func(times int, points []string, who string, most int) {
		for range times {
			for _, p := range points {
				kills = append(kills, fmt.Sprintf("%s%s:%d", p, who, 1+dice.IntN(most)))
			}
		}
	}
	for _, o := range d.Operators {
		add(run.Times(1, 10), operatorPoints, "@"+o.Name, 8)
	}
	for _, j := range d.Jobs {
		add(run.Times(1, 3), jobPoints, "@"+j.Kind, 1) // few orders are voided or refunded
	}
	add(run.Times(1, 3), relayPoints, "", 8)
	if d.Name == "orders" || d.Name == "payments" { // what the others decide, their operators append
		add(run.Times(1, 3), appendPoints, "", 8)
	}
	dice.Shuffle(len(kills), func(i, j int) { kills[i], kills[j] = kills[j], kills[i] })
	if short := run.Times(0, 1) == 0; short {
		return kills[:min(2, len(kills))]
	}
	return kills
}

// Every service is a process of its own, and each is killed at one point after the other while people shop, all of them
// at the same time. At the end every order has ended and every table is what the event stores give.
func TestFaultServicesKilled(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{
		Number: 4, Name: "Consumer kill matrix",
		Does: "Every operator of the shop, and the stores, relays and jobs beside them, is killed at every point of a batch, all services at once and under load; every order ends, and the books are right.",
	})
	f := newFleet(t, shop.Names()...)
	dice := run.Dice()
	catalog := f.mustRun("catalog")
	f.mustRun("orders").kill() // which knows the products now
	catalog.kill()
	url := f.openShop()
	people := startCrowd(t, run, url, f.demo.env["FEIRA_TOKEN_KEY"], 10, 0)
	stop := changePrices(t, url, f.demo.env["FEIRA_TOKEN_KEY"])
	var lanes errgroup.Group
	for _, d := range shop.Services(shop.Config{}) {
		kills := killsOf(run, dice, d)
		lanes.Go(func() error {
			for _, at := range kills {
				if err := f.killAt(d.Name, at); err != nil {
					return err
				}
				run.Count("kills of "+d.Name, 1)
			}
			_, err := f.start(d.Name, "")
			return err
		})
	}
	if err := lanes.Wait(); err != nil {
		t.Fatal(err)
	}
	stop()
	people.settle()
	has(t, f.demo.feira(t, "verify", "--settled", "--wait=60s").ok(t), "verify: no difference")
}

// killAt starts a service and waits until the point has killed it.
func (f *fleet) killAt(service, failpoint string) error {
	p, err := f.start(service, failpoint)
	if err != nil {
		return err
	}
	select {
	case <-p.ended:
	case <-time.After(patience):
		return fmt.Errorf("%s has not passed %s within %s", service, failpoint, patience)
	}
	status, _ := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if point, _, _ := strings.Cut(failpoint, "@"); status.Signal() != syscall.SIGKILL || !strings.Contains(p.out.String(), "failpoint: "+strings.Split(point, ":")[0]) {
		return fmt.Errorf("%s ended by itself (%s) before %s:\n%s", service, p.cmd.ProcessState, failpoint, p.out)
	}
	return nil
}

// changePrices gives the catalogue and the topic of clicks something to tell, a few times a second, until it is stopped.
// What is not answered is left: nobody waits for it.
func changePrices(t *testing.T, shop, keyFile string) (stop func()) {
	t.Helper()
	token := sign(keyOf(t, keyFile), "keeper", auth.Operator)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 1; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-time.After(200 * time.Millisecond):
			}
			body := fmt.Sprintf(`{"name":"Bread","description":"Of the day.","price":{"amount":%d,"currency":"BRL"},"active":true}`, n)
			_, _, _ = request(ctx, http.MethodPut, shop+"/v1/products/BREAD-OF-THE-DAY", token, body, nil) // see above
			click := fmt.Sprintf(`{"id_usuario":%d,"acao":"clique","timestamp":%d}`, n, time.Now().Unix())
			_, _, _ = request(ctx, http.MethodPost, shop+"/v1/clicks", token, click, nil)
		}
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

// request calls the API; unlike [send] it may meet nobody.
func request(ctx context.Context, method, url, token, body string, headers map[string]string) (status int, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, nil, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	res, err := caller.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	answer, err = io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}

// caller keeps as many connections as the tests have clients.
var caller = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

func get(ctx context.Context, url string) (status int, answer []byte, err error) {
	return request(ctx, http.MethodGet, url, "", "", nil)
}
