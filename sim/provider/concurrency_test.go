package provider

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
)

// TestFiftyAtOnceChargeOnce sends one request fifty times in parallel, for each kind of request that moves money.
func TestFiftyAtOnceChargeOnce(t *testing.T) {
	t.Parallel()
	c, db := start(t, nil)
	a := inParallel(t, 50, func(int) (answer, error) {
		return c.send(http.MethodPost, "/v1/authorizations", "a", authorization("tok_visa_x", "100"))
	})
	path := "/v1/authorizations/" + a[0].fields.ID
	inParallel(t, 50, func(int) (answer, error) { return c.send(http.MethodPost, path+"/capture", "c", `{"amount":100}`) })
	inParallel(t, 50, func(int) (answer, error) { return c.send(http.MethodPost, path+"/refunds", "r", `{"amount":10}`) })
	if n := count(t, db, "select count(*) from entries"); n != 3 {
		t.Errorf("%d effects, want 3", n)
	}
	if n := count(t, db, "select refunded from authorizations"); n != 10 {
		t.Errorf("refunded %d, want 10", n)
	}
	consistent(t, db)
}

// TestFailuresInParallelAreCounted: exactly the first two of many requests with one key fail.
func TestFailuresInParallelAreCounted(t *testing.T) {
	t.Parallel()
	c, db := start(t, nil)
	var failed, approved atomic.Int64
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() {
			got, err := c.send(http.MethodPost, "/v1/authorizations", "a", authorization("tok_processing_error_x", "100"))
			switch {
			case err == nil && got.status == 500 && got.fields.Code == "processing_error":
				failed.Add(1)
			case err == nil && got.status == 201:
				approved.Add(1)
			default:
				t.Errorf("%v: %d %s", err, got.status, got.body)
			}
		})
	}
	all.Wait()
	if failed.Load() != 2 || approved.Load() != 38 || count(t, db, "select count(*) from entries") != 1 {
		t.Errorf("%d failed and %d approved, want 2 and 38, and one charge", failed.Load(), approved.Load())
	}
	consistent(t, db)
}

// TestRefundsInParallelNeverExceedTheCapture gives each request a key of its own.
func TestRefundsInParallelNeverExceedTheCapture(t *testing.T) {
	t.Parallel()
	c, db := start(t, nil)
	a := c.post(t, "/v1/authorizations", "a", authorization("tok_visa_x", "100")).want(t, 201, "authorized")
	path := "/v1/authorizations/" + a.fields.ID
	c.post(t, path+"/capture", "c", `{"amount":100}`).want(t, 200, "captured")
	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() {
			if _, err := c.send(http.MethodPost, path+"/refunds", fmt.Sprint("r", i), `{"amount":7}`); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := count(t, db, "select refunded from authorizations"); n != 98 {
		t.Errorf("refunded %d of 100 in parts of 7, want 98", n)
	}
	consistent(t, db)
}

// TestAVoidRacesItsAuthorisation: whoever comes first, no money stays held, and nothing deadlocks.
func TestAVoidRacesItsAuthorisation(t *testing.T) {
	t.Parallel()
	c, db := start(t, nil)
	var all sync.WaitGroup
	for i := range 25 {
		key := fmt.Sprint("a", i)
		all.Go(func() {
			got, err := c.send(http.MethodPost, "/v1/authorizations", key, authorization("tok_visa_x", "100"))
			if err != nil || (got.status != 201 && got.status != 409) {
				t.Errorf("%v %s", err, got.body)
			}
		})
		for _, void := range []string{"v" + key, "w" + key} {
			all.Go(func() {
				got, err := c.send(http.MethodPost, "/v1/voids", void, `{"authorization_key":"`+key+`"}`)
				if err != nil || got.status != 200 {
					t.Errorf("%v %s", err, got.body)
				}
			})
		}
	}
	all.Wait()
	if n := count(t, db, "select count(*) from authorizations where status = 'authorized'"); n != 0 {
		t.Errorf("%d voided authorisations hold money", n)
	}
	consistent(t, db)
}

// inParallel demands the same answer from all, and that all but one are replays.
func inParallel(t *testing.T, n int, send func(int) (answer, error)) []answer {
	t.Helper()
	answers, errs := make([]answer, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { answers[i], errs[i] = send(i) })
	}
	all.Wait()
	fresh := 0
	for i, a := range answers {
		if errs[i] != nil || a.status >= 300 || a.body != answers[0].body {
			t.Fatalf("answer %d: %d %s (%v), first: %s", i, a.status, a.body, errs[i], answers[0].body)
		}
		if !a.replayed {
			fresh++
		}
	}
	if fresh != 1 {
		t.Fatalf("%d answers were no replays, want 1", fresh)
	}
	return answers
}
