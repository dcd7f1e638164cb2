package payments

import (
	"context"
	"time"

	"github.com/riverqueue/river"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/jobs"
	"github.com/feira-shop/feira/shared/money"
)

// The jobs: one per kind of request to the provider. Their arguments hold all there is to say, with the
// idempotency key by which the provider knows a repeat.

// AuthorizeJob asks to reserve money.
type AuthorizeJob struct {
	Order       string      `json:"order"`
	Payment     string      `json:"payment"`
	Amount      money.Money `json:"amount"`
	Token       string      `json:"token"`
	Key         string      `json:"key"`
	Correlation string      `json:"correlation,omitempty"`
}

// CaptureJob asks to take reserved money.
type CaptureJob struct {
	Order         string      `json:"order"`
	Authorization string      `json:"authorization"`
	Amount        money.Money `json:"amount"`
	Key           string      `json:"key"`
	Correlation   string      `json:"correlation,omitempty"`
}

// VoidJob asks to give an authorisation back, or never to make it. It names it by its idempotency key, because
// the provider's own id may not be known yet.
type VoidJob struct {
	Order            string `json:"order"`
	AuthorizationKey string `json:"authorization_key"`
	Key              string `json:"key"`
	Correlation      string `json:"correlation,omitempty"`
}

// RefundJob asks to give captured money back.
type RefundJob struct {
	Order         string      `json:"order"`
	Authorization string      `json:"authorization"`
	Amount        money.Money `json:"amount"`
	Key           string      `json:"key"`
	Correlation   string      `json:"correlation,omitempty"`
}

// Kind is the name of the jobs in River.
func (AuthorizeJob) Kind() string { return "payment_authorize" }

// Kind is the name of the jobs in River.
func (CaptureJob) Kind() string { return "payment_capture" }

// Kind is the name of the jobs in River.
func (VoidJob) Kind() string { return "payment_void" }

// Kind is the name of the jobs in River.
func (RefundJob) Kind() string { return "payment_refund" }

// jobsOf are the jobs that an event calls for: one for each request to the provider.
func jobsOf(_ string, e events.Event) []eventstore.Job {
	switch e := e.(type) {
	case AuthorizationRequested:
		return []eventstore.Job{jobs.New(AuthorizeJob{
			Order: e.Order, Payment: e.Payment, Amount: e.Amount, Token: e.Personal.Token,
			Key: authorizeKey(e.Payment), Correlation: e.Correlation,
		})}
	case CaptureRequested:
		return []eventstore.Job{jobs.New(CaptureJob{
			Order: e.Order, Authorization: e.Authorization, Amount: e.Amount,
			Key: captureKey(e.Payment), Correlation: e.Correlation,
		})}
	case VoidRequested:
		return []eventstore.Job{jobs.New(VoidJob{
			Order: e.Order, AuthorizationKey: authorizeKey(e.Payment), Key: voidKey(e.Payment), Correlation: e.Correlation,
		})}
	case RefundRequested:
		return []eventstore.Job{jobs.New(RefundJob{
			Order: e.Order, Authorization: e.Authorization, Amount: e.Amount, Key: e.Key, Correlation: e.Correlation,
		})}
	}
	return nil
}

// work is how the jobs are done: each is one request to the provider, whose answer is a command of the payment.
func work(p *Provider, timeout time.Duration) []jobs.Definition {
	return []jobs.Definition{
		jobs.Work(spec(p.Authorize, timeout,
			func(a AuthorizeJob) string { return a.Order }, func(a AuthorizeJob) string { return a.Correlation })),
		jobs.Work(spec(p.Capture, timeout,
			func(a CaptureJob) string { return a.Order }, func(a CaptureJob) string { return a.Correlation })),
		jobs.Work(spec(p.Void, timeout,
			func(a VoidJob) string { return a.Order }, func(a VoidJob) string { return a.Correlation })),
		jobs.Work(spec(p.Refund, timeout,
			func(a RefundJob) string { return a.Order }, func(a RefundJob) string { return a.Correlation })),
	}
}

// spec is what all jobs have in common: one provider, so one breaker.
func spec[A river.JobArgs](do func(context.Context, A) (any, error), timeout time.Duration, order, correlation func(A) string) jobs.Spec[A, Payment] {
	return jobs.Spec[A, Payment]{
		Decider: aggregate(),
		Stream:  func(a A) string { return StreamOf(order(a)) },
		Do:      do,
		Timeout: timeout,
		Breaker: "provider",
		Reached: answered,
		Meta:    func(a A) events.Meta { return events.Meta{Correlation: correlation(a), Actor: "payments"} },
	}
}
