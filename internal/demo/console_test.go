package demo

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feira-shop/feira/shared/web"
	"github.com/feira-shop/feira/sim/shoppers"
)

func TestTheLiveLineStaysOneLine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	columns := 20
	c := &console{out: &out, width: func() int { return columns }}
	c.status("12345678901234567890")
	if got := out.String(); got != clearLine+"123456789012345678…" {
		t.Errorf("on 20 columns: %q", got)
	}
	out.Reset()
	c.status("short")
	c.status("short")
	c.note("news: %d", 7)
	if got := out.String(); got != clearLine+"short"+clearLine+"feira: news: 7\nshort" {
		t.Errorf("a note above the live line: %q", got)
	}
	out.Reset()
	c.status("")
	c.note("last")
	if got := out.String(); got != clearLine+"feira: last\n" {
		t.Errorf("after the live line: %q", got)
	}
}

func TestWhatIsNoTerminalGetsLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := &console{out: &out}
	c.status("one")
	c.status("")
	counts(c, "title", []shoppers.Path{"sold_out"}, map[shoppers.Path]int64{"sold_out": 3})
	if got, want := out.String(), "feira: one\ntitle\n  sold out                                3\n"; got != want {
		t.Errorf("got %q, expected %q", got, want)
	}
}

func TestTheRateIsOfTheLastSeconds(t *testing.T) {
	t.Parallel()
	var m meter
	at := time.Unix(0, 0)
	if got := m.rate(at, 100); got != 0 {
		t.Errorf("at first %g", got)
	}
	count := int64(100)
	for range 60 { // half a minute of 10 per second
		at, count = at.Add(500*time.Millisecond), count+5
		if got := m.rate(at, count); got != 10 {
			t.Fatalf("%g at %s", got, at)
		}
	}
	if len(m.samples) > 12 {
		t.Errorf("%d samples are kept", len(m.samples))
	}
	if got := m.rate(at.Add(rateOver), count); got > 1 {
		t.Errorf("%g after seconds of nothing", got)
	}
}

func TestAFailureThatLastsIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		var failure atomic.Pointer[error]
		d := &demo{console: &console{out: &out}, health: web.NewHealth(nil)}
		d.health.Add("orders: relay", func(context.Context) error {
			if err := failure.Load(); err != nil {
				return *err
			}
			return nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go d.watchHealth(ctx)
		during := func(err error, seconds int) {
			failure.Store(&err)
			time.Sleep(time.Duration(seconds) * healthEvery) // of the bubble's clock
			synctest.Wait()
		}
		time.Sleep(healthEvery / 2) // between two looks
		during(nil, 3)
		during(errors.New("in passing"), 1)
		during(nil, 3)
		if out.Len() > 0 {
			t.Errorf("a failure in passing is told: %q", &out)
		}
		during(errors.New("the broker is away"), 5)
		during(nil, 3)
		if got := out.String(); got != "feira: not ready: orders: relay: the broker is away\nfeira: ready again: orders: relay\n" {
			t.Errorf("told: %q", got)
		}
	})
}

func TestTheLineOfAShopBeginsWithItsOrders(t *testing.T) {
	t.Parallel()
	got := line(shoppers.Snapshot{Placed: 12, Open: 3}, 2.04)
	if got != "12 orders, 3 under way, 2.0/s" {
		t.Errorf("without latencies: %q", got)
	}
	got = line(shoppers.Snapshot{Checkout: shoppers.Latency{Count: 1, P50: 7123 * time.Microsecond, P99: 1234567 * time.Microsecond}}, 0)
	if !strings.HasSuffix(got, "checkout p50 7.1ms p99 1.235s") {
		t.Errorf("with latencies: %q", got)
	}
}
