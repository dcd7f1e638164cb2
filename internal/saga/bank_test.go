package saga

import (
	"pgregory.net/rapid"

	"github.com/feira-shop/feira/services/payments"
	"github.com/feira-shop/feira/shared/events"
)

// bank is the payment provider: it may refuse anything but a void, and gives a repeated request its first answer.
type bank struct {
	t        *rapid.T
	answers  map[string]any      // by idempotency key
	accounts map[string]*account // by order
	obliging bool                // refuses no refund
}

// unnamedCard is the token of a card of which the bank says nothing.
const unnamedCard = "tok_unnamed"

// account is what the bank knows of one order's money. It is the truth.
type account struct {
	card                        payments.Card
	amount                      int64
	authorized, blocked, voided bool
	captured, refunded          int64
}

func newBank(t *rapid.T) *bank {
	return &bank{t: t, answers: map[string]any{}, accounts: map[string]*account{}}
}

func isRequest(e events.Event) bool {
	switch e.(type) {
	case payments.AuthorizationRequested, payments.CaptureRequested, payments.VoidRequested, payments.RefundRequested:
		return true
	}
	return false
}

func orderOf(request events.Event) string {
	switch r := request.(type) {
	case payments.AuthorizationRequested:
		return r.Order
	case payments.CaptureRequested:
		return r.Order
	case payments.VoidRequested:
		return r.Order
	case payments.RefundRequested:
		return r.Order
	}
	return ""
}

func (b *bank) ask(request events.Event) any {
	order := orderOf(request)
	key := request.EventType() + order
	if r, ok := request.(payments.RefundRequested); ok {
		key = r.Key
	}
	if answer, known := b.answers[key]; known {
		return answer
	}
	if b.accounts[order] == nil {
		b.accounts[order] = &account{}
	}
	b.answers[key] = b.answer(b.accounts[order], request)
	return b.answers[key]
}

func (b *bank) answer(a *account, request events.Event) any {
	no := func(what string) bool { return rarely(b.t, 5, what) }
	switch r := request.(type) {
	case payments.AuthorizationRequested:
		a.card = payments.Card{Fingerprint: r.Personal.Token, Brand: "visa", LastFour: "4242"}
		if r.Personal.Token == unnamedCard {
			a.card = payments.Card{}
		}
		switch {
		case a.blocked:
			return payments.Blocked{}
		case no("unknown token"):
			return payments.Declined{Code: "unknown_token"}
		case no("declined"):
			return payments.Declined{Code: "insufficient_funds", Card: a.card}
		}
		a.authorized, a.amount = true, r.Amount.Amount
		return payments.Authorized{Authorization: "auth-" + r.Order, Card: a.card}
	case payments.CaptureRequested:
		if !a.authorized || a.voided || a.captured > 0 || r.Amount.Amount != a.amount || r.Authorization != "auth-"+r.Order {
			b.t.Fatalf("asked to capture %+v of %+v", r, a)
		}
		if no("capture refused") {
			return payments.CaptureRefused{Code: "expired"}
		}
		a.captured = r.Amount.Amount
		return payments.Captured{}
	case payments.VoidRequested:
		if a.captured > 0 {
			b.t.Fatalf("asked to void what was captured: %+v", a)
		}
		a.blocked = true
		if !a.authorized {
			return payments.Voided{}
		}
		a.voided = true
		return payments.Voided{Card: a.card}
	case payments.RefundRequested:
		if r.Amount.Amount <= 0 || a.refunded+r.Amount.Amount > a.captured {
			b.t.Fatalf("asked to refund %+v of %+v", r, a)
		}
		if !b.obliging && no("refund refused") {
			return payments.RefundRefused{Key: r.Key, Code: "refund_failed"}
		}
		a.refunded += r.Amount.Amount
		return payments.Refunded{Key: r.Key}
	}
	b.t.Fatalf("no request: %T", request)
	return nil
}
