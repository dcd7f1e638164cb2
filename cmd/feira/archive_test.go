package main_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/feira-shop/feira/api"
)

// Old events of a running shop go to a file. The shop goes on; what needs them says so, until they are back.
func TestOldEventsAreArchivedAndBroughtBack(t *testing.T) {
	t.Parallel()
	demo := startDemo(t, newFolder(t), "--shoppers=0")
	shop, token, db, dir := demo.env["FEIRA_URL"], demo.token(t), demo.database(t, "orders"), newFolder(t)
	paid := func(key string) api.Order {
		t.Helper()
		o, _ := checkout(t, shop, token, key, 10)
		eventually(t, "the order to be paid", func() bool { return order(t, shop, token, o.Id).FinancialStatus == api.FinancialStatusPaid })
		return order(t, shop, token, o.Id)
	}
	old := paid("old-1")
	if _, err := db.Exec(t.Context(), "select setval('events_position_seq', 1000000)"); err != nil { // the first part is full
		t.Fatal(err)
	}
	recent := paid("new-1")
	demo.feira(t, "verify", "--settled", "--wait=60s").ok(t)
	has(t, demo.feira(t, "admin", "parts", "orders").ok(t), "1–1000000", "1000001–", "attached")

	archive := func(more ...string) result {
		t.Helper()
		return demo.feira(t, append([]string{"admin", "archive", "orders", "--older-than=1ms", "--to=" + dir}, more...)...)
	}
	archive().fails(t, "1 streams with events there, such as order-"+old.Id, "--cut")
	archive("--quiet=1ms").fails(t, "1 part of orders would be archived", "--yes")
	has(t, archive("--quiet=1ms", "--dry-run").ok(t), "1 part of orders would be archived")
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("nothing was to be done, and there is %v, %v", left, err)
	}
	has(t, archive("--quiet=1ms", "--yes").ok(t), "archived positions 1 to 1000000")
	file := filepath.Join(dir, "orders-events-000000000001-000001000000.jsonl.gz")
	has(t, demo.feira(t, "admin", "parts", "orders").ok(t), "archived", file)

	if o := order(t, shop, token, old.Id); o.Version != old.Version || !o.UpdatedAt.Equal(old.UpdatedAt) || o.UpdatedAt.IsZero() {
		t.Errorf("the old order was %+v and is %+v", old, o)
	}
	var list struct{ Data []api.Order }
	send(t, http.MethodGet, shop+"/v1/orders", token, "", nil, &list)
	if len(list.Data) != 2 || list.Data[1].Id != old.Id || !list.Data[1].UpdatedAt.Equal(old.UpdatedAt) {
		t.Errorf("the list is %+v", list.Data)
	}
	var problem struct{ Code string }
	if a := send(t, http.MethodGet, shop+"/v1/orders/"+old.Id+"/events", token, "", nil, &problem); a.StatusCode != http.StatusNotFound || problem.Code != "history_archived" {
		t.Errorf("the history of the old order: %d %s", a.StatusCode, problem.Code)
	}
	var history api.OrderHistory
	send(t, http.MethodGet, shop+"/v1/orders/"+recent.Id+"/events", token, "", nil, &history)
	if int64(len(history.Events)) != recent.Version {
		t.Errorf("the history of the recent order has %d events", len(history.Events))
	}
	demo.feira(t, "verify").fails(t, "are archived", "feira admin unarchive")
	paid("new-2")

	has(t, demo.feira(t, "admin", "unarchive", file).ok(t), "can be read again")
	demo.feira(t, "admin", "unarchive", file).fails(t, "are not archived")
	demo.feira(t, "verify", "--settled", "--wait=60s").ok(t)
	has(t, demo.feira(t, "admin", "audit", "orders.events").ok(t), "tester", "archive", "unarchive", time.Now().UTC().Format(time.DateOnly))
}
