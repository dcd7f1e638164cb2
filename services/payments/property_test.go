package payments

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/feira-shop/feira/shared/decider/decidertest"
	"github.com/feira-shop/feira/shared/events"
)

// ledger is a provider as payments knows it: idempotent, and able to refuse. It holds the truth about the money.
type ledger struct {
	t                           *rapid.T
	answers                     map[string]any // by idempotency key: a repeat gets the first answer
	blocked                     bool           // the authorisation's key was voided
	authorized, voided, refused bool
	captured, refunded          int64
	refundRefused               bool
}

// ask does what a *Requested event calls for, and answers.
func (l *ledger) ask(request events.Event) any {
	key := keyOf(request)
	if answer, known := l.answers[key]; known {
		return answer
	}
	answer := l.answer(request)
	l.answers[key] = answer
	return answer
}

func keyOf(request events.Event) string {
	if r, ok := request.(RefundRequested); ok {
		return r.Key
	}
	return request.EventType() // there is one of each of the others
}

func (l *ledger) answer(request events.Event) any {
	no := func(what string) bool { return rapid.IntRange(0, 3).Draw(l.t, what) == 0 }
	switch r := request.(type) {
	case AuthorizationRequested:
		switch {
		case l.blocked:
			return Blocked{}
		case no("declined"):
			l.refused = true
			return Declined{Code: "declined", Card: visa}
		}
		l.authorized = true
		return Authorized{Authorization: "auth-1", Card: visa}
	case CaptureRequested:
		if !l.authorized || l.voided || r.Authorization != "auth-1" {
			l.t.Fatalf("asked to capture what is not reserved: %+v", r)
		}
		if no("capture refused") {
			return CaptureRefused{Code: "expired"}
		}
		l.captured = r.Amount.Amount
		return Captured{}
	case VoidRequested:
		if l.captured > 0 {
			l.t.Fatalf("asked to void what was captured: %+v", r)
		}
		l.blocked = true
		if l.authorized {
			l.voided = true
			return Voided{Card: visa}
		}
		return Voided{}
	case RefundRequested:
		if l.refunded+r.Amount.Amount > l.captured {
			l.t.Fatalf("asked to refund %d of %d, of which %d are back", r.Amount.Amount, l.captured, l.refunded)
		}
		if no("refund refused") {
			l.refundRefused = true
			return RefundRefused{Key: r.Key, Code: "refund_failed"}
		}
		l.refunded += r.Amount.Amount
		return Refunded{Key: r.Key}
	}
	l.t.Fatalf("no request: %T", request)
	return nil
}

// world is one payment between its order and the provider.
type world struct {
	t         *rapid.T
	payment   Payment
	history   []events.Event
	published []events.Event
	provider  *ledger
	waiting   []events.Event // requests whose job is not completed
	late      []any          // answers that were delivered already
}

func (w *world) do(cmd any) {
	decided, err := Decide(w.payment, cmd)
	var order *OrderError
	if err != nil && !errors.As(err, &order) {
		w.t.Fatalf("%T%+v: %v", cmd, cmd, err)
	}
	before := w.payment.Status
	for _, e := range decided {
		w.history = append(w.history, e)
		w.payment = Evolve(w.payment, e)
		if len(jobsOf("", e)) > 0 {
			w.waiting = append(w.waiting, e)
		}
		if _, public := events.TopicOf(e.EventType()); public {
			w.published = append(w.published, e)
		}
	}
	w.check(before)
}

// deliver asks the provider and, unless the answer is lost on the way, completes the job with it.
func (w *world) deliver(i int, lost bool) {
	answer := w.provider.ask(w.waiting[i])
	if lost {
		return
	}
	w.waiting = slices.Delete(w.waiting, i, i+1)
	w.late = append(w.late, answer)
	w.do(answer)
}

// final are the statuses that nothing leaves.
var final = []Status{Refused, GivenUp, GivenBack}

func (w *world) check(before Status) {
	p := w.payment
	if slices.Contains(final, before) && p.Status != before {
		w.t.Fatalf("%s is final, but became %s", before, p.Status)
	}
	var voided, captured bool
	var taken, back int64
	keys := map[string]bool{}
	for _, e := range w.published {
		keys[e.EventKey()] = true
		switch e := e.(type) {
		case events.PaymentVoided:
			voided = true
		case events.PaymentCaptured:
			captured, taken = true, e.Amount.Amount
		case events.PaymentRefunded:
			back += e.Refunded.Amount
			if e.RefundedSoFar.Amount != back {
				w.t.Fatalf("refunded so far is %d, should be %d", e.RefundedSoFar.Amount, back)
			}
		}
	}
	if voided && captured {
		w.t.Fatal("both voided and captured")
	}
	if back > taken || taken != back+p.Kept() {
		w.t.Fatalf("captured %d, refunded %d, kept %d", taken, back, p.Kept())
	}
	if len(keys) > 1 {
		w.t.Fatalf("published under %d keys, so on several partitions: %v", len(keys), keys)
	}
}

// step does one thing that may happen next.
func (w *world) step() {
	switch rapid.IntRange(0, 9).Draw(w.t, "step") {
	case 0:
		w.do(Authorize{Placed: placed()})
	case 1:
		w.do(Capture{Order: "o1", Amount: placed().Total})
	case 2:
		w.do(Cancel{Order: "o1", Reason: "customer"})
	case 3, 4:
		command := rapid.SampledFrom([]string{"r1", "r2", "r3", CommandCancellation}).Draw(w.t, "command")
		w.do(refundOf(command, rapid.Int64Range(-1, 6000).Draw(w.t, "cents")))
	case 5:
		if len(w.late) > 0 {
			w.do(rapid.SampledFrom(w.late).Draw(w.t, "repeated answer"))
		}
	default:
		if len(w.waiting) > 0 {
			i := rapid.IntRange(0, len(w.waiting)-1).Draw(w.t, "job")
			w.deliver(i, rapid.Bool().Draw(w.t, "lost"))
		}
	}
}

func TestMoneyIsNeverLost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, provider: &ledger{t: t, answers: map[string]any{}}}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			w.step()
		}
		for n := 0; len(w.waiting) > 0; n++ {
			if n > 50 {
				t.Fatalf("the provider is asked without end, now for %+v", w.waiting[0])
			}
			w.deliver(0, false)
		}
		w.checkSettled()
	})
}

// checkSettled compares with the provider, once it has answered everything.
func (w *world) checkSettled() {
	p, l := w.payment, w.provider
	if p.known() && p.Purchase != purchase && p.Purchase != noCard {
		w.t.Fatalf("the purchase became %+v", p.Purchase)
	}
	if p.Refunded != l.refunded || (p.Status == Taken || p.Status == GivenBack) != (l.captured > 0) {
		w.t.Fatalf("payment %+v and provider %+v differ", p, l)
	}
	if p.Status == GivenUp && l.authorized && !l.voided {
		w.t.Fatal("voided, but the provider still holds the money")
	}
	if !p.known() || !p.Cancelled {
		return
	}
	if p.Status == Taken && l.refundRefused {
		return // the provider keeps it: a person must look
	}
	if !slices.Contains(final, p.Status) {
		w.t.Fatalf("cancelled, and ends %s", p.Status)
	}
}

// TestPurchaseStaysTheSame: each published event says whose money it is, and the card once it is known.
func TestPurchaseStaysTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, provider: &ledger{t: t, answers: map[string]any{}}}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			w.step()
		}
		known := false
		for _, e := range w.published {
			said, ok := e.(interface{ About() events.Purchase })
			if !ok {
				t.Fatalf("no payments event: %T", e)
			}
			p := said.About()
			known = known || p.CardFingerprint != ""
			if known && p != purchase || !known && p != noCard {
				t.Fatalf("%T says %+v", e, p)
			}
		}
	})
}

func TestLaws(t *testing.T) {
	t.Parallel()
	decidertest.Laws(t, rules, func(t *rapid.T, p Payment) any {
		commands := []any{
			Authorize{Placed: placed(), Correlation: "story"}, captureIt, cancelIt,
			refundOf("r1", 1500), refundOf("r2", 4000), refundOf("r3", 5500),
			Authorized{Authorization: "auth-1", Card: visa}, Declined{Code: "declined", Card: visa}, Blocked{},
			Captured{}, CaptureRefused{Code: "expired"}, Voided{}, Voided{Card: visa},
		}
		if p.InFlight != nil {
			commands = append(commands, Refunded{Key: p.InFlight.Key}, RefundRefused{Key: p.InFlight.Key, Code: "no"})
		}
		return rapid.SampledFrom(commands).Draw(t, "command")
	})
}
