package fraud

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/service"
	"github.com/feira-shop/feira/shared/stream"
)

// Config is what a deployment may choose.
type Config struct {
	// Disorder is how late an authorisation may come after others of its partition; choose the order deadline,
	// since retries at the provider make authorisations late. Default 5 minutes.
	Disorder time.Duration
	// Forget is how long a card is known after its last purchase; what it is told to be stays with the state, so it is
	// chosen once. Default [DefaultForget], at least [LeastForget] and the disorder.
	Forget time.Duration
	// Policies are what purchases are judged with, from [Open]. nil: what is built in.
	Policies *Policies
}

// ForgetError says that cards would be forgotten too soon.
type ForgetError struct{ Forget time.Duration }

func (e *ForgetError) Error() string {
	return fmt.Sprintf("fraud: cards cannot be forgotten %s after their last purchase (--fraud-forget); %s is the least, since an hour's payments must be known in whatever order they come", e.Forget, LeastForget)
}

// Validate says what cannot be: a [*ForgetError]. 0 is a default.
func (cfg Config) Validate() error {
	if cfg.Forget != 0 && cfg.Forget < LeastForget {
		return &ForgetError{cfg.Forget}
	}
	return nil
}

// defaults fills in what was not chosen.
func (cfg Config) defaults() Config {
	if cfg.Disorder <= 0 {
		cfg.Disorder = 5 * time.Minute
	}
	if cfg.Forget <= 0 {
		cfg.Forget = DefaultForget
	}
	cfg.Forget = max(cfg.Forget, LeastForget, cfg.Disorder)
	return cfg
}

// Judge is what purchases are judged by now.
func (cfg Config) Judge() Judge {
	return Judge{Policy: cfg.policy(), Forget: cfg.defaults().Forget}
}

func (cfg Config) policy() *Policy {
	if cfg.Policies == nil {
		return BuiltIn()
	}
	return cfg.Policies.Current()
}

// Service declares fraud.
func Service(cfg Config) service.Definition {
	cfg = cfg.defaults()
	d := service.Definition{
		Name:      "fraud",
		Publishes: events.Fraud,
		FromLog:   true,
		Streams:   []decider.Kind{stream.Kind(Stream(""))},
		Operators: []operator.Definition{cards(cfg)},
	}
	if p := cfg.Policies; p != nil {
		d.Figures = []prometheus.Collector{p.reloads, p.valid}
		d.Loops = []service.Loop{{Name: "policies", Run: func(ctx context.Context, rt service.Runtime) error { return p.watch(ctx, rt.Log) }}}
	}
	return d
}

// cards judges payments in memory; its state is saved with the offsets. Its predecessor, fraud.duplicates, remembered
// purchases by amount; the verdicts that it gave stand.
func cards(cfg Config) operator.Definition {
	from := stream.From(events.Payments, events.PaymentAuthorized{}, events.PaymentVoided{}).
		KeyBy(card).At(purchasedAt).Disorder(cfg.Disorder).Skew(skew)
	judge := func() Judge { return Judge{Policy: cfg.Policies.Current(), Forget: cfg.Forget} }
	if cfg.Policies == nil {
		builtIn := Judge{Policy: BuiltIn(), Forget: cfg.Forget}
		judge = func() Judge { return builtIn }
	}
	return from.Process("fraud.cards", stream.Rule[Profile]{
		Apply: func(c Profile, r events.Recorded, late bool) (Profile, []events.Event) {
			return judge().Apply(c, r, late)
		},
		Until: func(c Profile) time.Time { return c.Until(cfg.Forget) },
		Trim:  Profile.Trim, TrimAt: Profile.TrimAt,
		Agree: Agree,
		Stream: func(e events.Event) string {
			switch v := e.(type) {
			case events.PurchaseCleared:
				return Stream(v.Payment)
			case events.PurchaseHeld:
				return Stream(v.Payment)
			}
			return ""
		},
	})
}

// Stream is the stream of a payment's verdict.
func Stream(payment string) string { return "verdict-" + payment }

func card(r events.Recorded) string {
	return Key(purchase(r))
}

func purchasedAt(r events.Recorded) time.Time {
	return purchase(r).PurchasedAt
}

func purchase(r events.Recorded) events.Purchase {
	switch e := r.Event.(type) {
	case events.PaymentAuthorized:
		return e.Purchase
	case events.PaymentVoided:
		return e.Purchase
	}
	return events.Purchase{}
}
