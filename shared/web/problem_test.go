package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/feira-shop/feira/shared/telemetry"
)

type stockError struct{ sku string }

func (e *stockError) Error() string { return "no stock of " + e.sku }

func TestErrorTable(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	failures := Failures(nil,
		Map(func(e *stockError) *Error { return NewError(Conflict, "out_of_stock", "Sold out.").At(e.sku) }),
		Is(gone, NewError(NotFound, "", "")),
	)
	for name, c := range map[string]struct {
		err    error
		status int
		code   string
		param  string
	}{
		"known":           {NewError(Unprocessable, "not_supported", "Not built yet.").At("payment.method"), 422, "not_supported", "payment.method"},
		"known, wrapped":  {fmt.Errorf("place: %w", InvalidParam("email", "is wrong.")), 400, "invalid_request", "email"},
		"mapped type":     {fmt.Errorf("reserve: %w", &stockError{"CAFE"}), 409, "out_of_stock", "CAFE"},
		"mapped value":    {fmt.Errorf("load: %w", gone), 404, "not_found", ""},
		"deadline":        {fmt.Errorf("query: %w", context.DeadlineExceeded), 503, "timeout", ""},
		"database away":   {fmt.Errorf("query: %w", &pgconn.PgError{Code: "57P03"}), 503, "unavailable", ""},
		"body over limit": {fmt.Errorf("read: %w", &http.MaxBytesError{Limit: 10}), 413, "too_large", ""},
		"anything else":   {errors.New(`ERROR: relation "orders" does not exist at 10.0.0.7:5432 (SQLSTATE 42P01)`), 500, "internal", ""},
	} {
		w := httptest.NewRecorder()
		failures(w, httptest.NewRequest(http.MethodGet, "/", nil), c.err)
		var p Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		if w.Code != c.status || p.Code != c.code || p.Param != c.param {
			t.Errorf("%s: %d %+v", name, w.Code, p)
		}
		for _, leak := range []string{"SQLSTATE", "10.0.0.7", "relation", "query:"} {
			if strings.Contains(w.Body.String(), leak) {
				t.Errorf("%s: the answer shows %q: %s", name, leak, w.Body)
			}
		}
	}
}

func TestEveryKindHasItsRow(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for k := Internal; k <= Unavailable; k++ {
		row, ok := table[k]
		if !ok || row.status < 400 || row.code == "" || row.detail == "" || seen[row.code] {
			t.Errorf("kind %d: %+v", k, row)
		}
		seen[row.code] = true
	}
}

func TestCausesAreLoggedAndNotShown(t *testing.T) {
	t.Parallel()
	var failures ErrorHandler
	b := newBed(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		failures(w, r, errors.New("secret of the database"))
	}), func(o *Options) { failures = Failures(o.Log) })
	w := b.call(http.MethodGet, order, "")
	p := problem(t, w, http.StatusInternalServerError)
	if strings.Contains(w.Body.String(), "secret") {
		t.Errorf("shown: %s", w.Body)
	}
	if log := b.log.String(); !strings.Contains(log, "secret of the database") || !strings.Contains(log, p.RequestID) {
		t.Errorf("not logged under its request id: %s", log)
	}
}

func TestPanicBecomesAProblem(t *testing.T) {
	t.Parallel()
	b := newBed(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("secret") }), nil)
	w := b.call(http.MethodGet, order, "")
	problem(t, w, http.StatusInternalServerError)
	if strings.Contains(w.Body.String(), "secret") || strings.Contains(w.Body.String(), "goroutine") {
		t.Errorf("shown: %s", w.Body)
	}
	if log := b.log.String(); !strings.Contains(log, "secret") || !strings.Contains(log, "problem_test.go") {
		t.Errorf("no panic or stack in the log: %s", log)
	}
}

// A half-written answer must not look complete.
func TestPanicAfterTheFirstByteBreaksOff(t *testing.T) {
	t.Parallel()
	b := newBed(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("half"))
		panic("late")
	}), nil)
	defer func() {
		if err, ok := recover().(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
			t.Errorf("recovered %v", err)
		}
		if !strings.Contains(b.log.String(), `"msg":"request"`) {
			t.Error("the request is not in the access log")
		}
	}()
	b.call(http.MethodGet, order, "")
}

func TestMalformed(t *testing.T) {
	t.Parallel()
	var number struct {
		Lines []struct {
			Quantity int64 `json:"quantity"`
		} `json:"lines"`
	}
	wrongType := json.Unmarshal([]byte(`{"lines":[{"quantity":1.0}]}`), &number)
	generated := &struct {
		error
		ParamName string
	}{errors.New("bad"), "at"}
	for name, c := range map[string]struct {
		err   error
		param string
	}{
		"1.0 for an integer":   {fmt.Errorf("can't decode JSON body: %w", wrongType), "lines.quantity"},
		"generated parameter":  {generated, "at"},
		"anything of the code": {errors.New("strange"), ""},
	} {
		w := httptest.NewRecorder()
		Malformed(nil)(w, httptest.NewRequest(http.MethodGet, "/", nil), c.err)
		var p Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		if w.Code != http.StatusBadRequest || p.Param != c.param {
			t.Errorf("%s: %d %+v", name, w.Code, p)
		}
	}
}

func TestRetryAfterIsRoundedUp(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	Failures(nil)(w, httptest.NewRequest(http.MethodGet, "/", nil), &Error{Kind: Unavailable, RetryAfter: 1200 * time.Millisecond})
	if got := w.Header().Get("Retry-After"); got != "2" {
		t.Errorf("Retry-After %s", got)
	}
}

func TestMetricsAndAccessLogByRoute(t *testing.T) {
	t.Parallel()
	b := newBed(t, echo, nil)
	b.call(http.MethodGet, order, "")
	b.call(http.MethodGet, "/nowhere/6b1f6c3e", "")
	b.call("BREW", "/nowhere", "")
	b.call(http.MethodGet, order+"/events", "", "Accept: text/event-stream")
	families, err := b.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range families[0].GetMetric() {
		var labels []string
		for _, l := range m.GetLabel() {
			labels = append(labels, l.GetName()+"="+l.GetValue())
		}
		got = append(got, strings.Join(labels, ","))
	}
	want := "code=200,method=GET,route=/v1/orders/{id} code=404,method=GET,route=unmatched code=404,method=other,route=unmatched"
	if families[0].GetName() != "feira_http_request_duration_seconds" || strings.Join(got, " ") != want {
		t.Errorf("%s %v", families[0].GetName(), got)
	}
	if log := b.log.String(); strings.Contains(log, "6b1f6c3e") || strings.Count(log, `"msg":"request"`) != 4 {
		t.Errorf("access log: %s", log)
	}
}

// What a client asked to wait is no slowness of the shop.
func TestWaitingByWishIsNotTimeToAnswer(t *testing.T) {
	t.Parallel()
	b := newBed(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		done := Waiting(r.Context())
		<-time.After(300 * time.Millisecond)
		done()
	}), nil)
	b.call(http.MethodGet, order, "")
	families, err := b.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	h := families[0].GetMetric()[0].GetHistogram()
	if h.GetSampleCount() != 1 || h.GetSampleSum() < 0 || h.GetSampleSum() >= 0.3 {
		t.Errorf("a request that waited 0.3 s by wish counts as %v", h)
	}
	Waiting(context.Background())() // outside of a request
}

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	b := newBed(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(RequestID(r.Context()) + " " + telemetry.Traceparent(r.Context())))
	}), nil)
	w := b.call(http.MethodGet, order, "", "X-Request-Id: abc-1", "Traceparent: "+trace)
	if w.Body.String() != "abc-1 "+trace || w.Header().Get("X-Request-Id") != "abc-1" {
		t.Errorf("%s", w.Body)
	}
	for _, bad := range []string{"a b", `a"b`, strings.Repeat("a", 65)} {
		w := b.call(http.MethodGet, order, "", "X-Request-Id: "+bad, "Traceparent: 00-xyz")
		if id, trace, _ := strings.Cut(w.Body.String(), " "); id == bad || len(id) != 16 || trace != "" {
			t.Errorf("%q: %s", bad, w.Body)
		}
	}
	if RequestID(context.Background()) != "" || WantsEvents(context.Background()) {
		t.Error("outside of a request")
	}
}
