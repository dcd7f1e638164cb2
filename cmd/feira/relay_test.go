package main_test

import (
	"net/http"
	"strings"
	"testing"
)

// The commands on a relay look and change nothing where they are asked to, refuse a store that is being published, and
// leave their mark in the audit. What they are for is tested in shared/relay and on real Kafka.
func TestAStoppedServicesStoreIsMended(t *testing.T) {
	t.Parallel()
	demo := startDemo(t, newFolder(t), "--without=loyalty", "--shoppers=0")
	token := demo.token(t)
	p, _ := part(t, demo, "loyalty", "--member=loyalty")
	if o, res := checkout(t, demo.env["FEIRA_URL"], token, "relay-1", 20); res.StatusCode != http.StatusCreated {
		t.Fatalf("%s %v", res.Status, o)
	}
	db := demo.database(t, "loyalty")
	eventually(t, "an event of loyalty to be published", func() bool {
		return one[int64](t, db, "select coalesce(max(position), 0) from relay_cursor") > 0
	})
	for _, command := range []string{"republish", "recover"} {
		demo.feira(t, "admin", command, "loyalty", "--yes").fails(t, "a process leads; stop the service")
	}
	demo.feira(t, "admin", "recover", "payments", "--dry-run").fails(t, "payments keeps more than it publishes")
	p.kill()

	eventually(t, "the killed process' session to end", func() bool {
		return !strings.Contains(demo.feira(t, "admin", "recover", "loyalty", "--dry-run").errors, "a process leads")
	})
	has(t, demo.feira(t, "admin", "recover", "loyalty", "--dry-run").ok(t), "loyalty has 0 events of 0 streams that the store lost", "nothing was changed")
	has(t, demo.feira(t, "admin", "recover", "loyalty", "--yes").ok(t), "0 states were computed anew; start loyalty")
	has(t, demo.feira(t, "admin", "republish", "loyalty", "--dry-run").ok(t), "published to loyalty up to position", "nothing was changed")
	if one[int64](t, db, "select position from relay_cursor") == 0 {
		t.Error("a dry run moved the cursor")
	}
	demo.feira(t, "admin", "republish", "loyalty").fails(t, "there is no terminal to ask on: nothing was done; give --dry-run")
	demo.feira(t, "admin", "recover", "loyalty").fails(t, "there is no terminal to ask on: nothing was done; give --dry-run")
	has(t, demo.feira(t, "admin", "republish", "loyalty", "--yes").ok(t), "start loyalty", "feira admin accept-gap --yes OPERATOR loyalty all")
	if one[int64](t, db, "select position from relay_cursor") != 0 {
		t.Error("the cursor did not move")
	}
	has(t, demo.feira(t, "admin", "audit", "loyalty.relay").ok(t), "republish", "tester")
	part(t, demo, "loyalty", "--member=loyalty")
	eventually(t, "everything to be published again", func() bool {
		return one[bool](t, db, "select position > 0 and position >= (select max(position) from events) from relay_cursor")
	})
	has(t, demo.feira(t, "admin", "operators", "loyalty").ok(t), "loyalty relay")
	demo.feira(t, "verify").ok(t)
}
