//go:build e2e

package watch

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// rule is a rule as a running Prometheus tells of it.
type rule struct {
	Name, Query, Health, LastError, State string
	Type                                  string // recording or alerting
}

// loaded asks Prometheus for its rules, once it has evaluated all of them.
func (b *bed) loaded(t *testing.T) (all []rule) {
	t.Helper()
	until(t, "every rule to be evaluated", func() error {
		var data struct {
			Groups []struct{ Rules []rule }
		}
		if err := b.get(t, "/api/v1/rules", nil, &data); err != nil {
			return err
		}
		all = nil
		for _, g := range data.Groups {
			all = append(all, g.Rules...)
		}
		for _, r := range all {
			if r.Health == "unknown" {
				return fmt.Errorf("%s was not evaluated yet", r.Name)
			}
		}
		if len(all) == 0 {
			return errors.New("there are no rules")
		}
		return nil
	})
	return all
}

// comparison is an operator that, followed by bool, gives 0 or 1 instead of nothing.
var comparison = regexp.MustCompile(`(==|>=|<=|>|<)\s+`)

// always is an alert's expression with data also where nothing is wrong.
func always(expr string) string {
	expr = comparison.ReplaceAllString(expr, "$1 bool ")
	return strings.ReplaceAll(expr, "absent(", "count(") // nothing is absent in a demo
}

// rules demands data for what is recorded, and for what alerts look at.
func (b *bed) rules(t *testing.T) {
	recorded, alerts := 0, 0
	for _, r := range b.loaded(t) {
		if r.Health != "ok" {
			t.Errorf("%s: %s", r.Name, r.LastError)
		}
		if r.Type == "recording" {
			recorded++
			b.demand(t, "recorded "+r.Name, r.Name, false)
			continue
		}
		alerts++
		b.demand(t, "alert "+r.Name, always(r.Query), false)
	}
	t.Logf("%d recorded, %d alerts", recorded, alerts)
}

// ofTheMachine are alerts that say in a test how fast the machine is.
var ofTheMachine = regexp.MustCompile(`^(CheckoutLatency.*|CheckpointSlow|PoolExhausted|PoolWaits)$`)

// alerts: in a healthy shop, whose customers pay with bad cards and whose provider hiccups, none fires.
func (b *bed) alerts(t *testing.T) {
	for _, r := range b.loaded(t) {
		if r.Type == "alerting" && r.State != "inactive" {
			t.Logf("%s is %s", r.Name, r.State)
		}
		if r.State == "firing" && !ofTheMachine.MatchString(r.Name) {
			t.Errorf("%s fires in a shop that is well", r.Name)
		}
	}
}
