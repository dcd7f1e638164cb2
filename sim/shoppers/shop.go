package shoppers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/feira-shop/feira/api"
)

// attemptTimeout bounds one attempt: longer than the shop holds a request under Prefer: wait.
const attemptTimeout = 20 * time.Second

// maxAnswer bounds what is read of an answer.
const maxAnswer = 1 << 20

// RefusedError is an answer that a repeat would not change.
type RefusedError struct {
	Status int    // HTTP status, 4xx
	Code   string // of the problem
	Param  string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the shop refused with %d %s %s", e.Status, e.Code, e.Param)
}

// shop is the public API as its customers use it: every request is repeated until it is answered.
type shop struct {
	client  *api.Client
	token   func(customer string) string
	retried func()

	mu     sync.Mutex
	tokens map[string]string // by customer; making one is costly
}

func newShop(base string, token func(string) string, doer *http.Client, retried func()) (*shop, error) {
	client, err := api.NewClient(strings.TrimSuffix(base, "/"), api.WithHTTPClient(doer))
	if err != nil {
		return nil, err
	}
	return &shop{client: client, token: token, retried: retried, tokens: map[string]string{}}, nil
}

// request is one call of the generated client.
type request func(ctx context.Context, as api.RequestEditorFn) (*http.Response, error)

// answer is what came back of it, with 2xx or 304.
type answer struct {
	status   int
	body     []byte
	replayed bool
}

// send repeats a request, with its Idempotency-Key, until there is an answer or ctx ends. Failures of the network,
// 5xx and 429 are no answers.
func (s *shop) send(ctx context.Context, customer string, do request) (answer, error) {
	pause := &backoff.ExponentialBackOff{InitialInterval: 100 * time.Millisecond, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: 3 * time.Second}
	pause.Reset()
	renewed := false
	for {
		got, retryAfter, err := s.attempt(ctx, customer, do)
		var refused *RefusedError
		switch {
		case err == nil:
			return got, nil
		case errors.As(err, &refused) && refused.Status == http.StatusUnauthorized && !renewed:
			renewed = true // the token may have expired
			s.forget(customer)
			continue
		case refused != nil, ctx.Err() != nil:
			return answer{}, err
		}
		s.retried()
		select {
		case <-time.After(max(pause.NextBackOff(), retryAfter)):
		case <-ctx.Done():
			return answer{}, errors.Join(ctx.Err(), err)
		}
	}
}

func (s *shop) attempt(ctx context.Context, customer string, do request) (got answer, retryAfter time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	res, err := do(ctx, s.as(customer))
	if err != nil {
		return got, 0, err
	}
	defer func() { _ = res.Body.Close() }()
	got = answer{status: res.StatusCode, replayed: res.Header.Get("Idempotent-Replayed") == "true"}
	if got.body, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer)); err != nil {
		return got, 0, err
	}
	switch {
	case res.StatusCode < 300 || res.StatusCode == http.StatusNotModified:
		return got, 0, nil
	case res.StatusCode >= 500 || res.StatusCode == http.StatusTooManyRequests:
		seconds, _ := strconv.Atoi(res.Header.Get("Retry-After")) // absent: 0
		return got, time.Duration(min(seconds, 30)) * time.Second, fmt.Errorf("the shop answered %s", res.Status)
	}
	var p api.Problem
	_ = json.Unmarshal(got.body, &p) // what is no problem document has no code
	return got, 0, &RefusedError{Status: res.StatusCode, Code: p.Code, Param: p.Param}
}

func (s *shop) as(customer string) api.RequestEditorFn {
	s.mu.Lock()
	defer s.mu.Unlock()
	token, known := s.tokens[customer]
	if !known {
		token = s.token(customer)
		s.tokens[customer] = token
	}
	return func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
}

func (s *shop) forget(customer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tokens, customer)
}

func (s *shop) place(ctx context.Context, customer, key string, c api.Checkout, wait bool) (answer, error) {
	params := &api.PlaceOrderParams{IdempotencyKey: key}
	if wait {
		prefer := fmt.Sprintf("wait=%d", secondsOfPreferWait)
		params.Prefer = &prefer
	}
	return s.send(ctx, customer, func(ctx context.Context, as api.RequestEditorFn) (*http.Response, error) {
		return s.client.PlaceOrder(ctx, params, c, as)
	})
}

// next waits for a version of the order other than o's, some seconds at most.
func (s *shop) next(ctx context.Context, o api.Order) (api.Order, error) {
	prefer, etag := fmt.Sprintf("wait=%d", secondsOfPreferWait), fmt.Sprintf("%q", strconv.FormatInt(o.Version, 10))
	got, err := s.send(ctx, o.Customer, func(ctx context.Context, as api.RequestEditorFn) (*http.Response, error) {
		return s.client.GetOrder(ctx, o.Id, &api.GetOrderParams{IfNoneMatch: &etag, Prefer: &prefer}, as)
	})
	if err != nil || got.status == http.StatusNotModified {
		return o, err
	}
	return decode[api.Order](got)
}

func (s *shop) release(ctx context.Context, o api.Order, key string) (answer, error) {
	return s.send(ctx, o.Customer, func(ctx context.Context, as api.RequestEditorFn) (*http.Response, error) {
		return s.client.ReleaseOrder(ctx, o.Id, &api.ReleaseOrderParams{IdempotencyKey: key}, as)
	})
}

func (s *shop) cancel(ctx context.Context, o api.Order, key string) (answer, error) {
	return s.send(ctx, o.Customer, func(ctx context.Context, as api.RequestEditorFn) (*http.Response, error) {
		return s.client.CancelOrder(ctx, o.Id, &api.CancelOrderParams{IdempotencyKey: key}, api.Cancellation{Reason: "changed my mind"}, as)
	})
}

func (s *shop) refund(ctx context.Context, o api.Order, key string, amount api.Money) (answer, error) {
	return s.send(ctx, o.Customer, func(ctx context.Context, as api.RequestEditorFn) (*http.Response, error) {
		return s.client.RefundOrder(ctx, o.Id, &api.RefundOrderParams{IdempotencyKey: key}, api.Refund{Amount: amount, Reason: "one piece was bruised"}, as)
	})
}

func decode[T any](a answer) (T, error) {
	var out T
	if err := json.Unmarshal(a.body, &out); err != nil {
		return out, fmt.Errorf("the shop's answer cannot be read: %w", err)
	}
	return out, nil
}
