package payments

import (
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/decider/decidertest"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/money"
)

var (
	brl      = money.BRL
	visa     = Card{Fingerprint: "card-1", Brand: "visa", LastFour: "4242"}
	placedAt = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	noCard   = events.Purchase{
		Order: "o1", Payment: PaymentID("o1"), Customer: "ana", PurchasedAt: placedAt, Amount: brl(5500),
	}
	purchase = withFingerprint(noCard, visa.Fingerprint)
	rules    = decider.Decider[Payment]{Decide: Decide, Evolve: Evolve, Shape: shape}
)

func withFingerprint(p events.Purchase, fingerprint string) events.Purchase {
	p.CardFingerprint = fingerprint
	return p
}

// placed is an order of two lines: 2 × 20,00 + 12,00, shipping 5,00, discount 2,00.
func placed() events.OrderPlaced {
	return events.OrderPlaced{
		Order: "o1", Customer: "ana", PlacedAt: placedAt, PaymentMethod: "card",
		Lines: []events.Line{
			{SKU: "tea", Quantity: 2, UnitPrice: brl(2000), Total: brl(4000)},
			{SKU: "cup", Quantity: 1, UnitPrice: brl(1200), Total: brl(1200)},
		},
		Subtotal: brl(5200), Shipping: brl(500), Discount: brl(200), Total: brl(5500),
		Personal: events.Personal{Token: "tok_visa_ana"},
	}
}

// What has happened, as the beginnings of the sentences below.
var (
	requested  = AuthorizationRequested{Purchase: noCard, Personal: Personal{Token: "tok_visa_ana"}, Correlation: "story"}
	received   = AuthorizationReceived{Order: "o1", Authorization: "auth-1"}
	authorized = events.PaymentAuthorized{Purchase: purchase, Brand: "visa", LastFour: "4242"}
	capturing  = CaptureRequested{Order: "o1", Payment: noCard.Payment, Authorization: "auth-1", Amount: brl(5500), Correlation: "story"}
	captured   = events.PaymentCaptured{Purchase: purchase}
	cancelled  = CancellationNoted{Order: "o1", Reason: "customer"}
	voiding    = VoidRequested{Order: "o1", Payment: noCard.Payment, Correlation: "story"}
	cancelIt   = Cancel{Order: "o1", Reason: "customer"}
	captureIt  = Capture{Order: "o1", Amount: brl(5500)}
)

func refundOf(command string, cents int64) Refund {
	return Refund{Order: "o1", Command: command, Amount: brl(cents)}
}
func queued(command string, cents int64) RefundQueued {
	return RefundQueued{Order: "o1", Command: command, Amount: brl(cents)}
}
func refunding(command string, cents int64) RefundRequested {
	return RefundRequested{
		Order: "o1", Authorization: "auth-1", Command: command, Amount: brl(cents),
		Key: noCard.Payment + "/refund/" + command, Correlation: "story",
	}
}
func givingBack(cents int64) RefundRequested {
	r := refunding(CommandCancellation, cents)
	r.Key = noCard.Payment + "/cancellation"
	return r
}
func paidBack(command string, cents, soFar int64) events.PaymentRefunded {
	return events.PaymentRefunded{Purchase: purchase, Command: command, Refunded: brl(cents), RefundedSoFar: brl(soFar)}
}
func notPaidBack(p events.Purchase, command string, cents int64, code string) events.PaymentRefundFailed {
	return events.PaymentRefundFailed{Purchase: p, Command: command, Refund: brl(cents), Code: code}
}

func given(history ...events.Event) decidertest.Spec[Payment] {
	return decidertest.New(rules).Given(history...)
}

func TestHappyWay(t *testing.T) {
	t.Parallel()
	given().When(Authorize{Placed: placed(), Correlation: "story"}).Then(t, requested)
	given(requested).When(Authorized{Authorization: "auth-1", Card: visa}).Then(t, received, authorized)
	given(requested, received, authorized).When(captureIt).Then(t, capturing)
	given(requested, received, authorized, capturing).When(Captured{}).Then(t, captured)
}

func TestRepeatsChangeNothing(t *testing.T) {
	t.Parallel()
	all := given(requested, received, authorized, capturing, captured)
	all.When(Authorize{Placed: placed()}).ThenNothing(t)
	all.When(Authorized{Authorization: "auth-1", Card: visa}).ThenNothing(t)
	all.When(Declined{Code: "late"}).ThenNothing(t)
	all.When(captureIt).ThenNothing(t)
	all.When(Captured{}).ThenNothing(t)
	all.When(CaptureRefused{Code: "late"}).ThenNothing(t)
	all.When(Voided{}).ThenNothing(t)
	all.When(Refunded{Key: "never asked"}).ThenNothing(t)
}

func TestDeclined(t *testing.T) {
	t.Parallel()
	given(requested).When(Declined{Code: "insufficient_funds", Card: visa}).
		Then(t, events.PaymentDeclined{Purchase: purchase, Code: "insufficient_funds"})
	given(requested, events.PaymentDeclined{Purchase: purchase}).When(cancelIt).ThenNothing(t)
	given(requested).When(Blocked{}).Then(t, events.PaymentDeclined{Purchase: noCard, Code: CodeVoided})
}

func TestCancelledBeforeThePlacedOrderIsKept(t *testing.T) {
	t.Parallel()
	given().When(cancelIt).Then(t, cancelled)
	given(cancelled).When(cancelIt).ThenNothing(t)
	given(cancelled).When(captureIt).ThenNothing(t)
	given(cancelled).When(Authorize{Placed: placed()}).Then(t, events.PaymentVoided{Purchase: noCard})
	given(cancelled, events.PaymentVoided{Purchase: noCard}).When(Authorize{Placed: placed()}).ThenNothing(t)
}

func TestCancelledWhileAuthorizing(t *testing.T) {
	t.Parallel()
	given(requested).When(cancelIt).Then(t, cancelled, voiding)
	flying := given(requested, cancelled, voiding)
	// The void is answered first: with or without an authorisation to give back.
	flying.When(Voided{}).Then(t, events.PaymentVoided{Purchase: noCard})
	flying.When(Voided{Card: visa}).Then(t, events.PaymentVoided{Purchase: purchase})
	given(requested, cancelled, voiding, events.PaymentVoided{Purchase: purchase}).
		When(Authorized{Authorization: "auth-1", Card: visa}).ThenNothing(t)
	// The authorisation is answered first: it happened, and the void takes it back.
	flying.When(Authorized{Authorization: "auth-1", Card: visa}).Then(t, received, authorized)
	given(requested, cancelled, voiding, received, authorized).When(Voided{Card: visa}).
		Then(t, events.PaymentVoided{Purchase: purchase})
	given(requested, cancelled, voiding, received, authorized).When(captureIt).ThenNothing(t)
	// Or there never was one.
	flying.When(Blocked{}).ThenNothing(t)
	flying.When(Declined{Code: "expired", Card: visa}).Then(t, events.PaymentDeclined{Purchase: purchase, Code: "expired"})
	given(requested, cancelled, voiding, events.PaymentDeclined{Purchase: purchase, Code: "expired"}).
		When(Voided{Card: visa}).ThenNothing(t)
}

func TestCancelledBeforeTheCapture(t *testing.T) {
	t.Parallel()
	given(requested, received, authorized).When(cancelIt).Then(t, cancelled, voiding)
	given(requested, received, authorized, cancelled, voiding).When(Voided{Card: visa}).
		Then(t, events.PaymentVoided{Purchase: purchase})
	given(requested, received, authorized, cancelled, voiding).When(captureIt).ThenNothing(t)
}

func TestCancelledWhileCapturing(t *testing.T) {
	t.Parallel()
	given(requested, received, authorized, capturing).When(cancelIt).Then(t, cancelled)
	waiting := given(requested, received, authorized, capturing, cancelled)
	waiting.When(Captured{}).Then(t, captured, givingBack(5500))
	waiting.When(CaptureRefused{Code: "expired"}).
		Then(t, events.PaymentCaptureFailed{Purchase: purchase, Code: "expired"}, voiding)
	given(requested, received, authorized, capturing, cancelled, captured, givingBack(5500)).
		When(Refunded{Key: givingBack(5500).Key}).Then(t, paidBack(CommandCancellation, 5500, 5500))
}

func TestCancelledAfterTheCapture(t *testing.T) {
	t.Parallel()
	paid := given(requested, received, authorized, capturing, captured)
	paid.When(cancelIt).Then(t, cancelled, givingBack(5500))
	paid.Given(queued("r1", 1500), refunding("r1", 1500), paidBack("r1", 1500, 1500)).When(cancelIt).
		Then(t, cancelled, givingBack(4000))
	// All of it is back already.
	paid.Given(queued("r1", 5500), refunding("r1", 5500), paidBack("r1", 5500, 5500)).When(cancelIt).ThenNothing(t)
	// The provider refuses: said once, a person must look and may ask for another refund.
	refused := paid.Given(cancelled, givingBack(5500))
	refused.When(RefundRefused{Key: givingBack(5500).Key, Code: "refund_failed"}).
		Then(t, notPaidBack(purchase, CommandCancellation, 5500, "refund_failed"))
	refused.Given(notPaidBack(purchase, CommandCancellation, 5500, "refund_failed")).
		When(refundOf("r2", 5500)).Then(t, queued("r2", 5500), refunding("r2", 5500))
}

func TestCaptureRefused(t *testing.T) {
	t.Parallel()
	failed := events.PaymentCaptureFailed{Purchase: purchase, Code: "expired"}
	given(requested, received, authorized, capturing).When(CaptureRefused{Code: "expired"}).Then(t, failed)
	given(requested, received, authorized, capturing, failed).When(cancelIt).Then(t, cancelled, voiding)
	given(requested, received, authorized, capturing, failed).When(captureIt).ThenNothing(t)
	given(requested, received, authorized, capturing, failed, cancelled, voiding).When(Voided{Card: visa}).
		Then(t, events.PaymentVoided{Purchase: purchase})
}

func TestRefunds(t *testing.T) {
	t.Parallel()
	paid := given(requested, received, authorized, capturing, captured)
	paid.When(refundOf("r1", 1500)).Then(t, queued("r1", 1500), refunding("r1", 1500))

	first := paid.Given(queued("r1", 1500), refunding("r1", 1500))
	first.When(refundOf("r1", 1500)).ThenNothing(t)
	first.When(refundOf("r2", 4000)).Then(t, queued("r2", 4000))
	first.When(Refunded{Key: refunding("r1", 1500).Key}).Then(t, paidBack("r1", 1500, 1500))
	first.When(RefundRefused{Key: refunding("r1", 1500).Key, Code: "refund_failed"}).
		Then(t, notPaidBack(purchase, "r1", 1500, "refund_failed"))
	first.When(Refunded{Key: "another"}).ThenNothing(t)
	first.Given(paidBack("r1", 1500, 1500)).When(refundOf("r1", 1500)).ThenNothing(t)

	second := first.Given(queued("r2", 4000))
	second.When(Refunded{Key: refunding("r1", 1500).Key}).Then(t, paidBack("r1", 1500, 1500), refunding("r2", 4000))
	second.When(RefundRefused{Key: refunding("r1", 1500).Key, Code: "x"}).
		Then(t, notPaidBack(purchase, "r1", 1500, "x"), refunding("r2", 4000))
}

func TestNeverMoreIsRefundedThanWasCaptured(t *testing.T) {
	t.Parallel()
	paid := given(requested, received, authorized, capturing, captured)
	paid.When(refundOf("r1", 5501)).Then(t, queued("r1", 5501), notPaidBack(purchase, "r1", 5501, CodeExceedsCaptured))
	paid.When(refundOf("r1", 0)).Then(t, queued("r1", 0), notPaidBack(purchase, "r1", 0, CodeInvalidAmount))
	paid.When(refundOf("r1", -1)).Then(t, queued("r1", -1), notPaidBack(purchase, "r1", -1, CodeInvalidAmount))
	usd := Refund{Order: "o1", Command: "r1", Amount: money.New(100, "USD")}
	paid.When(usd).Then(t, RefundQueued(usd),
		events.PaymentRefundFailed{Purchase: purchase, Command: "r1", Refund: usd.Amount, Code: CodeInvalidAmount})
	// Two that together are too much: the second is refused when its turn comes.
	paid.Given(queued("r1", 3000), refunding("r1", 3000), queued("r2", 3000)).
		When(Refunded{Key: refunding("r1", 3000).Key}).
		Then(t, paidBack("r1", 3000, 3000), notPaidBack(purchase, "r2", 3000, CodeExceedsCaptured))
	// A cancellation gives back what the refund in flight leaves.
	paid.Given(queued("r1", 3000), refunding("r1", 3000), cancelled).
		When(Refunded{Key: refunding("r1", 3000).Key}).Then(t, paidBack("r1", 3000, 3000), givingBack(2500))
}

func TestRefundsBeforeTheCaptureWait(t *testing.T) {
	t.Parallel()
	given(requested).When(refundOf("r1", 100)).Then(t, queued("r1", 100))
	given(requested, received, authorized, capturing, queued("r1", 100)).When(Captured{}).
		Then(t, captured, refunding("r1", 100))
	given(requested, queued("r1", 100)).When(Declined{Code: "expired", Card: visa}).
		Then(t, events.PaymentDeclined{Purchase: purchase, Code: "expired"}, notPaidBack(purchase, "r1", 100, CodeNotCaptured))
	given(requested, queued("r1", 100), cancelled, voiding).When(Voided{}).
		Then(t, events.PaymentVoided{Purchase: noCard}, notPaidBack(noCard, "r1", 100, CodeNotCaptured))
	given(requested, received, authorized, capturing, queued("r1", 100), cancelled).When(CaptureRefused{Code: "x"}).
		Then(t, events.PaymentCaptureFailed{Purchase: purchase, Code: "x"}, notPaidBack(purchase, "r1", 100, CodeNotCaptured), voiding)
}

// The provider refused what a cancellation had to give back. Asked again by a person, it is another refund, with a key
// of its own: the provider would answer the old one as before.
func TestACancelledPaymentIsRefundedWhenAskedAgain(t *testing.T) {
	t.Parallel()
	kept := given(requested, received, authorized, capturing, captured, cancelled, givingBack(5500),
		notPaidBack(purchase, CommandCancellation, 5500, "no"))
	kept.When(refundOf("again", 5500)).Then(t, queued("again", 5500), refunding("again", 5500))
	if key := refunding("again", 5500).Key; key == givingBack(5500).Key || key == refunding("once-more", 5500).Key {
		t.Errorf("the key %s is not its own", key)
	}
	asked := kept.Given(queued("again", 5500), refunding("again", 5500))
	asked.When(refundOf("again", 5500)).ThenNothing(t)
	asked.When(RefundRefused{Key: refunding("again", 5500).Key, Code: "no"}).Then(t, notPaidBack(purchase, "again", 5500, "no"))
	asked.Given(notPaidBack(purchase, "again", 5500, "no")).When(refundOf("once-more", 5500)).
		Then(t, queued("once-more", 5500), refunding("once-more", 5500))
	asked.When(Refunded{Key: refunding("again", 5500).Key}).Then(t, paidBack("again", 5500, 5500))
}

// A command named like the refund of a cancellation is another refund, with another key at the provider.
func TestCommandNamedCancellation(t *testing.T) {
	t.Parallel()
	given(requested, received, authorized, capturing, captured).When(refundOf(CommandCancellation, 100)).
		Then(t, queued(CommandCancellation, 100), refunding(CommandCancellation, 100))
}

func TestWhatCannotBeIsParked(t *testing.T) {
	t.Parallel()
	given().When(captureIt).ThenError(t, &OrderError{Order: "o1", Command: "capture", Status: None})
	given(requested).When(captureIt).ThenError(t, &OrderError{Order: "o1", Command: "capture", Status: Authorizing})
	given().When(refundOf("r1", 1)).ThenError(t, &OrderError{Order: "o1", Command: "refund", Status: None})
	given(requested, received, authorized).When(Capture{Order: "o1", Amount: brl(5499)}).
		ThenError(t, &AmountError{Order: "o1", Want: brl(5500), Have: brl(5499), What: "the amount to capture"})
	var unknown *decider.UnknownCommandError
	given().When("pay").ThenError(t, &unknown)
}

func TestAmountsAreCheckedBeforeCharging(t *testing.T) {
	t.Parallel()
	var amount *AmountError
	for name, spoil := range map[string]func(*events.OrderPlaced){
		"line":     func(o *events.OrderPlaced) { o.Lines[0].Total = brl(3999) },
		"quantity": func(o *events.OrderPlaced) { o.Lines[0].Quantity = 3 },
		"subtotal": func(o *events.OrderPlaced) { o.Subtotal = brl(5201) },
		"shipping": func(o *events.OrderPlaced) { o.Shipping = brl(501) },
		"discount": func(o *events.OrderPlaced) { o.Discount = brl(0) },
		"total":    func(o *events.OrderPlaced) { o.Total = brl(5499) },
		"nothing":  func(o *events.OrderPlaced) { o.Discount, o.Total = brl(5700), brl(0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := placed()
			spoil(&o)
			given().When(Authorize{Placed: o}).ThenError(t, &amount)
		})
	}
	var mismatch *money.MismatchError
	o := placed()
	o.Shipping = money.New(500, "USD")
	given().When(Authorize{Placed: o}).ThenError(t, &mismatch)
	var method *MethodError
	o = placed()
	o.PaymentMethod = "pix"
	given().When(Authorize{Placed: o}).ThenError(t, &method)
	o = placed()
	o.Personal.Token = ""
	given().When(Authorize{Placed: o}).ThenError(t, &method)
}

func TestPaymentIDIsStable(t *testing.T) {
	t.Parallel()
	if a, b := PaymentID("o1"), PaymentID("o2"); a == b || a != PaymentID("o1") {
		t.Errorf("ids %s and %s: each order needs its own, always the same", a, b)
	}
}
