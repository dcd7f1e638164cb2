package orders

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/decider/decidertest"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/money"
)

const (
	id       = "0f8fad5b-d9cb-569f-a165-70867728950e"
	ana      = "ana"
	payment  = "payment-1"
	deadline = 5 * time.Minute
)

var (
	noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

	order = Place{
		Order: id, Number: Number(id), Customer: ana,
		Lines: []events.Line{
			{SKU: "CAFE-500", Name: "Coffee", Quantity: 2, UnitPrice: money.BRL(2990), Total: money.BRL(5980)},
			{SKU: "MEL-250", Name: "Honey", Quantity: 1, UnitPrice: money.BRL(1999), Total: money.BRL(1999)},
		},
		Shipping: money.BRL(990), Discount: money.BRL(100), PaymentMethod: "card",
		Personal: events.Personal{Email: "ana@example.com", Token: "tok_visa_ana"},
		PlacedAt: noon, ConfirmBy: noon.Add(deadline), Fingerprint: "f1",
	}
	total = money.BRL(8869)

	placed = events.OrderPlaced{
		Order: id, Number: Number(id), Customer: ana, Lines: order.Lines, Subtotal: money.BRL(7979), Shipping: order.Shipping,
		Discount: order.Discount, Total: total, PaymentMethod: "card", Personal: order.Personal,
		PlacedAt: noon, ConfirmBy: noon.Add(deadline), Fingerprint: "f1",
	}
	reserved   = events.OrderStockReserved{Order: id}
	authorized = events.OrderPaymentAuthorized{Order: id, Payment: payment, Amount: total, Brand: "visa", LastFour: "4242"}
	cleared    = events.OrderFraudCleared{Order: id, Payment: payment}
	held       = events.OrderHeld{Order: id, Payment: payment, Reason: events.ReasonDuplicatePurchase, DuplicateOf: "other", Until: noon.Add(time.Hour)}
	suspicious = events.OrderHeld{Order: id, Payment: payment, Reason: events.ReasonFraud, Until: noon.Add(time.Hour)}
	letGo      = events.OrderReleased{Order: id, By: ana, Command: "r1", ConfirmBy: noon.Add(2 * time.Hour)}
	confirmed  = events.OrderConfirmed{Order: id, Customer: ana, Payment: payment, Total: total, Lines: []events.Quantity{{SKU: "CAFE-500", Quantity: 2}, {SKU: "MEL-250", Quantity: 1}}}
	paid       = events.OrderPaid{Order: id, Customer: ana, Payment: payment, Amount: total}
	voided     = events.OrderPaymentVoided{Order: id, Payment: payment}

	noteAuthorized = NoteAuthorized{Payment: payment, Brand: "visa", LastFour: "4242", Amount: total}
	noteCleared    = NoteCleared{payment}
	noteHeld       = NoteHeld{payment, events.ReasonDuplicatePurchase, "other", noon.Add(time.Hour)}
	noteCaptured   = NoteCaptured{payment, total}
)

func because(reason, by, detail string) events.OrderCancelled {
	return events.OrderCancelled{Order: id, Customer: ana, Reason: reason, By: by, Detail: detail}
}

func byAna(command string) events.OrderCancelled {
	return events.OrderCancelled{Order: id, Customer: ana, Reason: events.ReasonCustomer, By: ana, Command: command}
}

func asked(command string, amount int64) events.OrderRefundRequested {
	return events.OrderRefundRequested{Order: id, Command: command, Amount: money.BRL(amount), Reason: "broken", By: ana}
}

func back(command string, amount, soFar int64) events.OrderRefunded {
	return events.OrderRefunded{Order: id, Payment: payment, Command: command, Amount: money.BRL(amount), RefundedSoFar: money.BRL(soFar)}
}

func given(history ...events.Event) decidertest.Spec[Order] {
	return decidertest.New(Rules).Given(placed).Given(history...)
}

// now is the order after events.
func now(history ...events.Event) Order {
	return Rules.Fold(append(events.List(placed), history...))
}

func TestACheckoutBecomesAnOrder(t *testing.T) {
	t.Parallel()
	decidertest.New(Rules).When(order).Then(t, placed)
	given().When(order).ThenNothing(t)
	other := order
	other.Fingerprint = "f2"
	given().When(other).ThenError(t, &KeyReusedError{Order: id})
	given(byAna("c1")).When(order).ThenNothing(t)
	if o := now(); o.Status != Placed || o.Financial != Pending || o.DueAt != noon.Add(deadline).UnixMicro() || o.PlacedUS != noon.UnixMicro() {
		t.Errorf("a new order is %+v", o)
	}
}

func TestATotalThatDoesNotAddUpIsRefused(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*Place){
		"line total":        func(c *Place) { c.Lines[0].Total.Amount++ },
		"quantity 0":        func(c *Place) { c.Lines[0].Quantity, c.Lines[0].Total = 0, money.BRL(0) },
		"quantity −1":       func(c *Place) { c.Lines[0].Quantity, c.Lines[0].Total = -1, money.BRL(-2990) },
		"negative price":    func(c *Place) { c.Lines[0].UnitPrice, c.Lines[0].Total = money.BRL(-1), money.BRL(-2) },
		"no lines":          func(c *Place) { c.Lines, c.Shipping, c.Discount = nil, money.BRL(0), money.BRL(0) },
		"nothing to pay":    func(c *Place) { c.Discount = money.BRL(7979 + 990) },
		"less than nothing": func(c *Place) { c.Discount = money.BRL(10_000) },
		"negative shipping": func(c *Place) { c.Shipping = money.BRL(-1) },
		"negative discount": func(c *Place) { c.Discount = money.BRL(-1) },
	} {
		spoilt := order
		spoilt.Lines = append([]events.Line{}, order.Lines...)
		spoil(&spoilt)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var wrong *SumError
			decidertest.New(Rules).When(spoilt).ThenError(t, &wrong)
		})
	}
}

func TestCurrenciesAndOverflowsAreRefused(t *testing.T) {
	t.Parallel()
	mixed := order
	mixed.Shipping, mixed.Discount = money.New(990, "USD"), money.New(0, "USD")
	var mismatch *money.MismatchError
	decidertest.New(Rules).When(mixed).ThenError(t, &mismatch)
	for _, q := range []int64{1 << 62, 1<<62 + 1} {
		huge := order
		huge.Lines = []events.Line{{SKU: "X", Quantity: q, UnitPrice: money.BRL(4), Total: money.BRL(0)}}
		var overflow *money.OverflowError
		decidertest.New(Rules).When(huge).ThenError(t, &overflow)
	}
}

// Way 1, in every order in which the three answers can come.
func TestAnOrderIsConfirmedWhenStockPaymentAndFraudAreIn(t *testing.T) {
	t.Parallel()
	type fact struct {
		cmd   any
		noted events.Event
	}
	s, p, f := fact{NoteReserved{}, reserved}, fact{noteAuthorized, authorized}, fact{noteCleared, cleared}
	for _, way := range [][3]fact{{s, p, f}, {s, f, p}, {p, s, f}, {p, f, s}, {f, s, p}, {f, p, s}} {
		given().When(way[0].cmd).Then(t, way[0].noted)
		given(way[0].noted).When(way[1].cmd).Then(t, way[1].noted)
		given(way[0].noted, way[1].noted).When(way[2].cmd).Then(t, way[2].noted, confirmed)
		for _, again := range way {
			given(way[0].noted, way[1].noted, way[2].noted, confirmed).When(again.cmd).ThenNothing(t)
		}
	}
	ready := given(reserved, authorized, cleared, confirmed)
	ready.When(noteCaptured).Then(t, paid)
	ready.Given(paid).When(noteCaptured).ThenNothing(t)
	if o := now(reserved, authorized, cleared, confirmed, paid); o.Status != Confirmed || o.Financial != Paid || o.DueAt != 0 {
		t.Errorf("a paid order is %s, %s, due %d", o.Status, o.Financial, o.DueAt)
	}
}

// Way 2.
func TestADeclinedPaymentCancels(t *testing.T) {
	t.Parallel()
	declined := because(events.ReasonPaymentDeclined, "payments", "insufficient_funds")
	given().When(NoteDeclined{payment, "insufficient_funds"}).Then(t, declined)
	given(reserved).When(NoteDeclined{payment, "insufficient_funds"}).Then(t, declined)
	given(declined).When(NoteDeclined{payment, "insufficient_funds"}).ThenNothing(t)
	given(declined).When(NoteReserved{}).Then(t, reserved) // noted; inventory releases it
	if got := now(declined).Financial; got != Failed {
		t.Errorf("after a refusal the money is %s", got)
	}
}

// Way 3, the authorisation before and after.
func TestMissingStockCancels(t *testing.T) {
	t.Parallel()
	short := NoteRefused{[]events.Missing{{SKU: "MEL-250", Wanted: 1}}}
	out := because(events.ReasonOutOfStock, "inventory", "MEL-250: 1 wanted, 0 available")
	given().When(short).Then(t, out)
	given(authorized, cleared).When(short).Then(t, out)
	given(held).When(short).Then(t, out)
	given().When(NoteRefused{}).Then(t, because(events.ReasonOutOfStock, "inventory", ""))
	late := given(out)
	late.When(noteAuthorized).Then(t, authorized)
	late.Given(authorized).When(NoteVoided{payment}).Then(t, voided)
	late.Given(authorized, voided).When(NoteVoided{payment}).ThenNothing(t)
	late.When(NoteVoided{payment}).ThenNothing(t) // nothing was ever authorised
	for want, o := range map[Financial]Order{
		Authorized: now(out, authorized), Voided: now(out, authorized, voided),
	} {
		if o.Financial != want || o.Status != Cancelled || o.Reason != events.ReasonOutOfStock {
			t.Errorf("got %s, %s (%s), want the money %s", o.Status, o.Financial, o.Reason, want)
		}
	}
	if o := now(out); o.Financial != Voided {
		t.Errorf("cancelled without an authorisation the money is %s", o.Financial)
	}
}

// Way 7.
func TestTheDeadlineEndsAnOrder(t *testing.T) {
	t.Parallel()
	just := Expire{noon.Add(deadline)}
	over := because(events.ReasonDeadline, "orders", "")
	for _, history := range [][]events.Event{{}, {reserved}, {authorized}, {reserved, authorized}, {reserved, cleared}} {
		given(history...).When(Expire{noon.Add(deadline - time.Microsecond)}).ThenNothing(t)
		given(history...).When(just).Then(t, over)
	}
	given(over).When(just).ThenNothing(t)
	given(reserved, authorized, cleared, confirmed).When(Expire{noon.Add(24 * time.Hour)}).ThenNothing(t)

	// What comes afterwards is noted and changes nothing.
	late := given(over)
	late.When(NoteReserved{}).Then(t, reserved)
	late.When(noteAuthorized).Then(t, authorized)
	late.When(noteCleared).ThenNothing(t)
	late.When(NoteRefused{}).ThenNothing(t)
	late.When(NoteDeclined{payment, "expired"}).ThenNothing(t)
	late.Given(cleared, authorized).When(NoteReserved{}).Then(t, reserved)
	given(reserved, cleared, over).When(noteAuthorized).Then(t, authorized)
}

// Ways 5 and 6. Where the money is decides payments; the order only wants to be told.
func TestACustomerCancels(t *testing.T) {
	t.Parallel()
	wish := Cancel{Command: "c1", By: ana}
	for name, history := range map[string][]events.Event{
		"placed": {}, "reserved": {reserved}, "authorised": {authorized}, "held": {authorized, held}, "released": {held, letGo},
		"confirmed":          {reserved, authorized, cleared, confirmed},
		"paid":               {reserved, authorized, cleared, confirmed, paid},
		"partially refunded": {reserved, authorized, cleared, confirmed, paid, asked("x", 100), back("x", 100, 100)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given(history...).When(wish).Then(t, byAna("c1"))
			given(history...).Given(byAna("c1")).When(wish).ThenNothing(t)
			given(history...).Given(byAna("c1")).When(Cancel{Command: "c2", By: ana}).
				ThenError(t, &TransitionError{Order: id, Wish: "cancel", Status: Cancelled})
			if o := now(append(history[:len(history):len(history)], byAna("c1"))...); o.Status != Cancelled || o.DueAt != 0 {
				t.Errorf("it is %s and due at %d", o.Status, o.DueAt)
			}
		})
	}
	given(because(events.ReasonDeadline, "orders", "")).When(wish).ThenError(t, &TransitionError{Order: id, Wish: "cancel", Status: Cancelled})
}

// Way 8.
func TestARefusedCaptureCancels(t *testing.T) {
	t.Parallel()
	failed := because(events.ReasonPaymentDeclined, "payments", "expired")
	given(reserved, authorized, cleared, confirmed).When(NoteCaptureFailed{payment, "expired"}).Then(t, failed)
	given(reserved, authorized, cleared, confirmed, failed).When(NoteCaptureFailed{payment, "expired"}).ThenNothing(t)
	given(reserved, authorized, cleared, confirmed, failed).When(NoteVoided{payment}).Then(t, voided)
	given(authorized).When(NoteVoided{payment}).ThenNothing(t)
	given(reserved, authorized, cleared, confirmed, failed, voided).When(NoteVoided{payment}).ThenNothing(t)
}

func TestOneKeyIsOneRequest(t *testing.T) {
	t.Parallel()
	bought := given(reserved, authorized, held, letGo, confirmed, paid, asked("x", 3000)) // r1 released it
	reused := &KeyReusedError{Order: id}
	refund := func(key string, amount money.Money, reason string) Refund {
		return Refund{Command: key, By: ana, Reason: reason, Amount: amount}
	}
	bought.When(refund("x", money.BRL(2999), "broken")).ThenError(t, reused)
	bought.When(refund("x", money.New(3000, "USD"), "broken")).ThenError(t, reused)
	bought.When(refund("x", money.BRL(3000), "late")).ThenError(t, reused)
	bought.When(refund("r1", money.BRL(1), "broken")).ThenError(t, reused)
	bought.When(refund(ofCancellation, money.BRL(1), "broken")).ThenError(t, reused) // payments calls its own so
	bought.When(Cancel{Command: "x", By: ana}).ThenError(t, reused)
	bought.When(Cancel{Command: "r1", By: ana}).ThenError(t, reused)
	bought.When(Release{Command: "x", By: ana}).ThenError(t, reused)
	gone := bought.Given(byAna("c1"))
	gone.When(Cancel{Command: "c1", By: ana, Detail: "changed my mind"}).ThenError(t, reused)
	gone.When(Release{Command: "c1", By: ana}).ThenError(t, reused)
	gone.When(Release{Command: "r1", By: ana}).ThenNothing(t)
}

func TestNobodyDecidesOnAnOrderThatIsNotThere(t *testing.T) {
	t.Parallel()
	nothing := decidertest.New(Rules)
	var missing *NotFoundError
	for _, cmd := range []any{NoteReserved{}, noteAuthorized, noteHeld, Cancel{}, Release{}, Refund{}, Expire{noon}} {
		nothing.When(cmd).ThenError(t, &missing)
	}
	var unknown *decider.UnknownCommandError
	given().When("hello").ThenError(t, &unknown)
}

// The store's generated columns and older releases read this JSON: a change of it is a new Rules.Shape.
func TestTheStateHasThisShape(t *testing.T) {
	t.Parallel()
	full := now(reserved, authorized, held, letGo, confirmed, paid, asked("x", 3000), back("x", 3000, 3000))
	got, err := json.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"id":"0f8fad5b-d9cb-569f-a165-70867728950e","number":"1Y7T-TPYS-SDR8","customer":"ana","status":"confirmed",` +
		`"financial_status":"partially_refunded","lines":[{"sku":"CAFE-500","name":"Coffee","quantity":2,"unit_price":{"amount":2990,"currency":"BRL"},` +
		`"total":{"amount":5980,"currency":"BRL"}},{"sku":"MEL-250","name":"Honey","quantity":1,"unit_price":{"amount":1999,"currency":"BRL"},` +
		`"total":{"amount":1999,"currency":"BRL"}}],"subtotal":{"amount":7979,"currency":"BRL"},"shipping":{"amount":990,"currency":"BRL"},` +
		`"discount":{"amount":100,"currency":"BRL"},"total":{"amount":8869,"currency":"BRL"},"method":"card","fingerprint":"f1",` +
		`"placed_at":"2026-03-01T12:00:00Z","placed_us":1772366400000000,"stock":true,"cleared":true,` +
		`"payment":{"id":"payment-1","brand":"visa","last_four":"4242"},"hold":{"reason":"duplicate_purchase","duplicate_of":"other","until":"2026-03-01T13:00:00Z"},` +
		`"captured":8869,"returned":3000,"refunds":{"x":{"amount":3000,"reason":"broken","state":"done"}},"commands":{"r1":"release"}}`
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
