package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/shared/telemetry/telemetrytest"
)

// part runs services in a process of their own with the demo's addresses, waits until they are ready, and gives its
// address.
func part(t *testing.T, r *running, args ...string) (p *process, address string) {
	t.Helper()
	p, address = begin(t, r, args...)
	eventually(t, "ready: "+strings.Join(args, " "), func() bool { return ready(t, address) })
	return p, address
}

// begin is part without waiting.
func begin(t *testing.T, r *running, args ...string) (p *process, address string) {
	t.Helper()
	p = start(t, nil, append([]string{"--env-file=" + r.file(), "run", "--listen=127.0.0.1:0", "--log-format=json"}, args...)...)
	p.until(`"msg":"running"`)
	match := regexp.MustCompile(`"msg":"running".*"listen":"([^"]+)"`).FindStringSubmatch(p.out.String())
	if match == nil {
		t.Fatalf("no address in:\n%s", p.out)
	}
	return p, match[1]
}

func ready(t *testing.T, address string) bool {
	t.Helper()
	return send(t, http.MethodGet, "http://"+address+"/readyz", "", "", nil, nil).StatusCode == http.StatusOK
}

// progress is how far the operators of a database have come: the sum of their offsets.
func progress(t *testing.T, pool *pgxpool.Pool) int64 {
	t.Helper()
	return one[int64](t, pool, "select coalesce(sum(next_offset), 0)::bigint from checkpoints where next_offset >= 0")
}

// paid says whether all of these orders are; none may be cancelled.
func paid(t *testing.T, shop, token string, ids []string) bool {
	t.Helper()
	for _, id := range ids {
		o := order(t, shop, token, id)
		if o.Status == api.OrderStatusCancelled {
			t.Fatalf("order %s was cancelled: %s", id, o.Reason)
		}
		if o.FinancialStatus != api.FinancialStatusPaid {
			return false
		}
	}
	return true
}

// payments runs as a process of its own beside the rest, is stopped and killed, and goes on where it was. The orders
// that wait for it meanwhile are confirmed, not cancelled.
func TestPaymentsRunsElsewhere(t *testing.T) {
	t.Parallel()
	demo := startDemo(t, newFolder(t), "--without=payments", "--deadline=10m", "--shoppers=0")
	token := demo.token(t)
	shop, db := demo.env["FEIRA_URL"], demo.database(t, "payments")
	var ids []string
	buySome := func(n int) {
		t.Helper()
		for range n {
			o, res := checkout(t, shop, token, fmt.Sprintf("apart-%d", len(ids)), 0)
			if res.StatusCode != http.StatusCreated {
				t.Fatalf("checkout: %s", res.Status)
			}
			ids = append(ids, o.Id)
		}
	}
	settled := func() bool { return paid(t, shop, token, ids) }
	waits := func() {
		t.Helper()
		last := ids[len(ids)-1]
		eventually(t, "the stock of the last order", func() bool { return order(t, shop, token, last).Version >= 2 })
		if o := order(t, shop, token, last); o.Status != api.OrderStatusPlaced || o.FinancialStatus != api.FinancialStatusPending {
			t.Fatalf("without payments the order is %s, %s", o.Status, o.FinancialStatus)
		}
	}

	buySome(10)
	waits()
	payments, _ := part(t, demo, "payments")
	eventually(t, "the orders that waited from the start", settled)

	before := progress(t, db)
	if code, took := payments.stop(syscall.SIGTERM); code != 0 || took > 15*time.Second {
		t.Errorf("SIGTERM: exit code %d after %s", code, took)
	}
	buySome(10)
	waits()
	if now := progress(t, db); now < before {
		t.Errorf("checkpoints went back from %d to %d", before, now)
	}
	payments, _ = part(t, demo, "payments")
	eventually(t, "the orders that waited for a process that was stopped", settled)

	before = progress(t, db)
	buySome(20) // in the middle of which it dies
	payments.kill()
	buySome(5)
	waits()
	if now := progress(t, db); now < before {
		t.Errorf("checkpoints went back from %d to %d", before, now)
	}
	part(t, demo, "payments")
	eventually(t, "the orders that waited for a process that was killed", settled)

	said := demo.feira(t, "verify", "--settled", "--wait=60s").ok(t)
	has(t, said, "verify: no difference", fmt.Sprintf("verify: %d orders", len(ids)))
	if strings.Contains(said, "cancelled") {
		t.Errorf("orders were cancelled:\n%s", said)
	}
}

// Every part is a process of its own; the gateway gives them one address.
func TestEveryPartRunsElsewhere(t *testing.T) {
	t.Parallel()
	collector := telemetrytest.New(t)
	traces := fmt.Sprintf("OTEL_EXPORTER_OTLP_ENDPOINT=%s\nOTEL_BSP_SCHEDULE_DELAY=50\n", collector.URL)
	demo := startDemo(t, newFolder(t), "--without=orders,catalog,inventory,payments,fraud,loyalty,analytics", "--shoppers=0", "--env-file="+fileOf(t, traces))
	demo.add(t, traces)
	token := demo.token(t, "--sub=bia")
	_, catalog := part(t, demo, "catalog", "loyalty", "analytics", "--behind-gateway", "--rate=20")
	inventory, stock := part(t, demo, "inventory")
	part(t, demo, "payments", "fraud")
	_, orders := part(t, demo, "orders")
	_, gateway := part(t, demo, "gateway", fmt.Sprintf("--upstreams=orders=%s,catalog=%s,loyalty=%s,analytics=%s,inventory=%s", orders, catalog, catalog, catalog, stock))
	shop := "http://" + gateway

	o, res := checkout(t, shop, token, "through-the-gateway", 10)
	if res.StatusCode != http.StatusCreated || o.Status != api.OrderStatusConfirmed {
		t.Fatalf("%s, order %s", res.Status, o.Status)
	}
	if seen := follow(t, shop, token, o.Id, "order.paid"); !strings.Contains(seen, "order.placed") || !strings.Contains(seen, "order.confirmed") {
		t.Errorf("the event stream says:\n%s", seen)
	}
	collector.Await(t, func(spans []telemetrytest.Span) error { return oneTrace(spans, o.Id) })
	for path, status := range map[string]int{
		"/v1/products/CAFE-500G": http.StatusOK, "/v1/stock/CAFE-500G": http.StatusOK, "/v1/customers/bia/loyalty": http.StatusOK,
		"/v1/analytics/clicks": http.StatusOK, "/v1/analytics/account-spend": http.StatusOK,
		"/docs": http.StatusOK, "/v1/nothing": http.StatusNotFound,
	} {
		if res := send(t, http.MethodGet, shop+path, token, "", nil, nil); res.StatusCode != status {
			t.Errorf("%s: %s, expected %d", path, res.Status, status)
		}
	}

	for i := range 30 { // visitors who are not signed in, as the gateway passes them on
		if status := visit(t, "http://"+catalog+"/v1/products/CAFE-500G", fmt.Sprintf("192.0.2.%d", i)); status != http.StatusOK {
			t.Fatalf("visitor %d shares the limit of the others: %d", i, status)
		}
	}

	inventory.kill()
	var problem api.Problem
	res = send(t, http.MethodGet, shop+"/v1/stock/CAFE-500G", token, "", nil, &problem)
	if res.StatusCode != http.StatusServiceUnavailable || problem.Code != "service_unreachable" {
		t.Errorf("a service that is gone: %s, %q", res.Status, problem.Code)
	}
	if o, res := checkout(t, shop, token, "without-inventory", 0); res.StatusCode != http.StatusCreated || o.Status != api.OrderStatusPlaced {
		t.Errorf("without inventory: %s, order %s", res.Status, o.Status)
	}
	part(t, demo, "inventory")
	demo.feira(t, "verify", "--settled", "--wait=60s").ok(t)
}

// fileOf writes a file.
func fileOf(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "variables.env")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// add adds variables to those that the demo wrote for other processes.
func (r *running) add(t *testing.T, text string) {
	t.Helper()
	known, err := os.ReadFile(r.file())
	if err == nil {
		err = os.WriteFile(r.file(), append(known, text...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// oneTrace demands that what the processes did for an order is one trace: from the gateway to the points, each span below
// one that is there.
func oneTrace(spans []telemetrytest.Span, order string) error {
	trace, ids, services := "", map[string]bool{"": true}, map[string]bool{}
	for _, s := range spans {
		if s.Name == "append order" && s.Attributes["feira.order"] == order {
			trace = s.Trace
		}
	}
	for _, s := range spans {
		if s.Trace == trace {
			ids[s.ID], services[s.Service] = true, true
		}
	}
	var roots []string
	for _, s := range spans {
		if s.Trace != trace {
			continue
		}
		if !ids[s.Parent] {
			return fmt.Errorf("%s of %s is below a span that is not there", s.Name, s.Service)
		}
		if s.Parent == "" {
			roots = append(roots, s.Service+" "+s.Name)
		}
	}
	if fmt.Sprint(roots) != "[feira-gateway POST /v1/orders]" || len(services) != 8 || len(telemetrytest.Named(spans, "send loyalty")) == 0 {
		return fmt.Errorf("the trace of the order begins with %v and is of %v", roots, services)
	}
	return nil
}

// follow reads an order's live events until one of the type has come.
func follow(t *testing.T, shop, token, id, until string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, shop+"/v1/orders/"+id+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if kind := res.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		t.Fatalf("%s, content type %q", res.Status, kind)
	}
	var seen strings.Builder
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		seen.WriteString(lines.Text() + "\n")
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if ok && !json.Valid([]byte(data)) {
			t.Errorf("%q is not JSON", data)
		}
		if strings.Contains(lines.Text(), until) {
			return seen.String()
		}
	}
	t.Fatalf("%s has not come:\n%s", until, &seen)
	return ""
}

// visit asks as a gateway does for somebody at an address.
func visit(t *testing.T, url, address string) (status int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Forwarded-For", address)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode
}
