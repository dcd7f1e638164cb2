package main_test

import (
	"net/http"
	"testing"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/shared/faulttest"
)

// The provider charges and answers too late; then payments is killed between the charge and its outcome, again and again.
// Each time it asks once more, with the same key: one charge is made.
func TestFaultKilledBetweenChargeAndOutcome(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{
		Name: "Charged once",
		Does: "The provider charges and times out, then payments is killed between the effect and the outcome of each job, several times in a row; one key, one charge, one capture.",
	})
	f := newFleet(t, "payments")
	token := f.demo.token(t)
	o, res := place(t, f.demo.env["FEIRA_URL"], token, "charged-once", "tok_timeout_after_charge_ana", 1, 0)
	if res.StatusCode != http.StatusCreated {
		t.Fatalf("checkout: %s", res.Status)
	}
	deaths := []string{"jobs.before-effect@payment_authorize:2"} // the first attempt was charged and got no answer
	for range run.Times(1, 4) {
		deaths = append(deaths, "jobs.after-effect@payment_authorize:1")
	}
	for range run.Times(1, 5) {
		deaths = append(deaths, "jobs.after-effect@payment_capture:1")
	}
	for _, at := range deaths {
		if err := f.killAt("payments", at); err != nil {
			t.Fatal(err)
		}
		run.Count("kills", 1)
	}
	f.mustRun("payments")
	eventually(t, "the order to be paid", func() bool { return paid(t, f.demo.env["FEIRA_URL"], token, []string{o.Id}) })
	now := order(t, f.demo.env["FEIRA_URL"], token, o.Id)
	provider := f.demo.database(t, "provider")
	const chargesSQL = "select count(*) from authorizations where reference = $1 and status = 'captured' and captured = $2"
	if n := one[int64](t, provider, chargesSQL, now.Payment.Id, now.Total.Amount); n != 1 {
		t.Errorf("%d charges of %v", n, now.Total)
	}
	if n := one[int64](t, provider, "select count(*) from entries"); n != 2 {
		t.Errorf("the provider moved money %d times, want an authorisation and a capture", n)
	}
	has(t, f.demo.feira(t, "verify", "--settled", "--wait=60s").ok(t), "verify: no difference")
	if now.FinancialStatus != api.FinancialStatusPaid {
		t.Errorf("the order is %s", now.FinancialStatus)
	}
}
