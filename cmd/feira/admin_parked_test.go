package main_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// A stranger writes two records of one key, which four operators park: the second waits behind the first.
func parkedRecordsAreLookedAfter(t *testing.T, demo *running) {
	partition, offset := produce(t, demo.env["FEIRA_KAFKA"], "payments", "a-stranger", "\x1b[31m no event")
	produce(t, demo.env["FEIRA_KAFKA"], "payments", "a-stranger", "nor this")
	at, behind := fmt.Sprintf("payments/%d/%d", partition, offset), fmt.Sprintf("payments/%d/%d", partition, offset+1)
	eventually(t, "the records to be parked by all", func() bool {
		return strings.Count(demo.feira(t, "admin", "parked", "list").ok(t), behind) == 4
	})
	if !regexp.MustCompile(`loyalty\.account +` + at + ` +a-stranger +not_cloudevent`).MatchString(demo.feira(t, "admin", "parked", "list", "loyalty.account").ok(t)) {
		t.Error("the list of one operator does not show the record")
	}
	all := demo.feira(t, "admin", "parked").ok(t)
	has(t, all, "loyalty.account", "orders.process", "fraud.cards", at)
	if !regexp.MustCompile(`loyalty\.account +payments +\d+ +\d+ +2 `).MatchString(demo.feira(t, "admin", "operators", "loyalty").ok(t)) {
		t.Error("operators do not show the parked records")
	}
	shown := demo.feira(t, "admin", "parked", "show", "loyalty.account", at).ok(t)
	has(t, shown, "not_cloudevent", "a-stranger", `"\x1b[31m no event"`)
	if strings.Contains(shown, "\x1b") {
		t.Errorf("what a stranger wrote reaches the terminal as it is: %q", shown)
	}
	replaysAreTriedFirst(t, demo, at, behind)
	discardsAreConfirmed(t, demo, at)
	demo.feira(t, "admin", "parked", "show", "loyalty.account", at).fails(t, "is not there", "feira admin parked")
	demo.feira(t, "admin", "parked", "replay", "loyalty.account", "--all").fails(t, "is not there", "feira admin parked")
	has(t, demo.feira(t, "admin", "audit", "loyalty.account").ok(t), "tester", "replay requested", "replay failed", "discard requested", "discarded", at)
}

func replaysAreTriedFirst(t *testing.T, demo *running, at, behind string) {
	t.Helper()
	replay := func(args ...string) result {
		return demo.feira(t, append([]string{"admin", "parked", "replay", "loyalty.account"}, args...)...)
	}
	dry := replay("--dry-run", "--all").ok(t)
	has(t, dry, "0 records would be replayed, 2 would stay parked; nothing was changed")
	for place, want := range map[string]string{at: "rejected", behind: "blocked +behind " + at} {
		if !regexp.MustCompile(place + ` +a-stranger .*` + want).MatchString(dry) {
			t.Errorf("%s is not said to be %s:\n%s", place, want, dry)
		}
	}
	has(t, replay("--at="+behind, "--dry-run").ok(t), "blocked", at+" of its key is parked before it")
	if said := demo.feira(t, "admin", "audit", "loyalty.account").ok(t); strings.Contains(said, "requested") {
		t.Errorf("a dry run left a trace:\n%s", said)
	}
	replay().fails(t, "--at PLACE, --key KEY or --all")
	replay("--all").fails(t, "2 records of 1 key would be replayed by loyalty.account", "nothing was done", "--dry-run", "--yes")
	one := replay("--at=" + at) // one needs no question
	one.fails(t, "feira admin parked list")
	has(t, one.out, "0 done, 1 failed again and stay parked")
	has(t, atTerminal(t, demo, "n", "admin", "parked", "replay", "loyalty.account", "--all").fails(t, "nothing was done").errors, "2 records of 1 key")
	has(t, replay("--key=a-stranger", "--yes").out, "0 done, 1 failed again and stay parked")
}

func discardsAreConfirmed(t *testing.T, demo *running, at string) {
	t.Helper()
	dry := demo.feira(t, "admin", "parked", "discard", "loyalty.account", "--key=a-stranger", "--dry-run").ok(t)
	has(t, dry, at, "not_cloudevent", "2 records would be discarded and never be applied; nothing was changed")
	demo.feira(t, "admin", "parked", "discard", "loyalty.account", "--key=a-stranger").fails(t, "never applied by loyalty.account", "--dry-run", "--yes")
	said := atTerminal(t, demo, "y", "admin", "parked", "discard", "loyalty.account", "--at="+at)
	has(t, said.ok(t), "1 done, 0 failed")
	has(t, said.errors, "1 record of 1 key would be discarded: loyalty.account never applies them. Go on? [y/N]")
	has(t, demo.feira(t, "admin", "parked", "discard", "loyalty.account", "--key=a-stranger", "--yes").ok(t), "1 done, 0 failed")
	has(t, demo.feira(t, "admin", "parked", "discard", "orders.process", "--at="+at, "--yes").ok(t), "1 done, 0 failed")
	has(t, demo.feira(t, "admin", "parked", "discard", "orders.process", "--all", "--yes").ok(t), "1 done, 0 failed")
	has(t, demo.feira(t, "admin", "parked", "discard", "fraud.cards", "--key=a-stranger", "--yes").ok(t), "2 done, 0 failed")
	has(t, demo.feira(t, "admin", "parked", "discard", "analytics.spend", "--key=a-stranger", "--yes").ok(t), "2 done, 0 failed")
	if left := demo.feira(t, "admin", "parked").ok(t); !strings.Contains(left, "nothing is parked") {
		t.Errorf("discarded and still there:\n%s", left)
	}
}
