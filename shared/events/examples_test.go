package events_test

import (
	"time"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/money"
)

const (
	order    = "6f9f0f9e-5b0c-5a55-9d63-2f4d1f1d7c11"
	payment  = "0c6de3d2-8d2b-5f0a-9d5f-3f2f7e0f4a77"
	customer = "ana"
	card     = "fp_5c1d2a9b7e0f4a33"
)

var (
	noon     = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	total    = money.BRL(7890)
	purchase = events.Purchase{Order: order, Payment: payment, Customer: customer, PurchasedAt: noon, CardFingerprint: card, Amount: total}
	unseen   = events.Purchase{Order: order, Payment: payment, Customer: customer, PurchasedAt: noon, Amount: total}
	verdict  = events.Verdict{Order: order, Payment: payment, Customer: customer, Score: 100, Rules: []string{"duplicate_purchase"},
		Reasons:    []events.Fired{{Rule: "duplicate_purchase", Weight: 100, Why: "1.9 s from an earlier purchase of the same amount on the same card"}},
		Thresholds: "9f86d081884c", Model: "2c26b46b68ff", ModelScore: 37}
	lines = []events.Quantity{{SKU: "coffee-500g", Quantity: 2}, {SKU: "mug-blue", Quantity: 1}}
)

// examples has at least one event of every type, and of types with optional fields one with and one without
// them. They are written to golden/ by name.
var examples = map[string][]events.Event{
	"complete": {
		events.OrderPlaced{
			Order: order, Number: "7KX2-M9QD-3FVA", Customer: customer,
			Lines: []events.Line{
				{SKU: "coffee-500g", Name: "Café torrado 500 g ☕", Quantity: 2, UnitPrice: money.BRL(2490), Total: money.BRL(4980)},
				{SKU: "mug-blue", Name: "Caneca azul", Quantity: 1, UnitPrice: money.BRL(1910), Total: money.BRL(1910)},
			},
			Subtotal: money.BRL(6890), Shipping: money.BRL(1500), Discount: money.BRL(500), Total: total,
			PaymentMethod: "card",
			Personal: events.Personal{
				Email:   "ana@example.com",
				Address: events.Address{Name: "Ana Souza", Street: "Rua das Flores 12", City: "São Paulo", State: "SP", PostalCode: "01310-100", Country: "BR"},
				Token:   "tok_visa_ana1",
			},
			PlacedAt: noon, ConfirmBy: noon.Add(5 * time.Minute),
			Fingerprint: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		},
		events.OrderStockReserved{Order: order},
		events.OrderPaymentAuthorized{Order: order, Payment: payment, Amount: total, Brand: "visa", LastFour: "4242"},
		events.OrderFraudCleared{Order: order, Payment: payment},
		events.OrderHeld{Order: order, Payment: payment, Reason: events.ReasonDuplicatePurchase, DuplicateOf: "1b9d6bcd-bbfd-5b2d-9b5d-ab8dfbbd4bed", Until: noon.Add(15 * time.Minute)},
		events.OrderReleased{Order: order, By: customer, Command: "c-1", ConfirmBy: noon.Add(10 * time.Minute)},
		events.OrderConfirmed{Order: order, Customer: customer, Payment: payment, Total: total, Lines: lines},
		events.OrderPaid{Order: order, Customer: customer, Payment: payment, Amount: total},
		events.OrderPaymentVoided{Order: order, Payment: payment},
		events.OrderCancelled{Order: order, Customer: customer, Reason: events.ReasonPaymentDeclined, By: "payments", Detail: "insufficient_funds", Command: "c-1"},
		events.OrderRefundRequested{Order: order, Command: "c-1", Amount: money.BRL(1910), Reason: "broken", By: customer},
		events.OrderRefunded{Order: order, Payment: payment, Command: "c-1", Amount: money.BRL(1910), RefundedSoFar: money.BRL(1910)},
		events.OrderRefundFailed{Order: order, Payment: payment, Command: "c-1", Amount: money.BRL(1910), Code: "card_closed"},

		events.PaymentAuthorized{Purchase: purchase, Brand: "visa", LastFour: "4242"},
		events.PaymentDeclined{Purchase: purchase, Code: "insufficient_funds"},
		events.PaymentCaptured{Purchase: purchase},
		events.PaymentCaptureFailed{Purchase: purchase, Code: "authorization_expired"},
		events.PaymentVoided{Purchase: purchase},
		events.PaymentRefunded{Purchase: purchase, Command: "c-1", Refunded: money.BRL(1910), RefundedSoFar: money.BRL(1910)},
		events.PaymentRefundFailed{Purchase: purchase, Command: "c-1", Refund: money.BRL(1910), Code: "card_closed"},

		events.StockReserved{Order: order, Lines: lines},
		events.StockRefused{Order: order, Missing: []events.Missing{{SKU: "mug-blue", Wanted: 1, Available: 0}}},
		events.StockReleased{Order: order, Lines: lines},
		events.StockReceived{SKU: "mug-blue", Quantity: 120, Receipt: "delivery-2026-0301"},

		events.PurchaseCleared{Verdict: verdict},
		events.PurchaseHeld{Verdict: verdict, Reason: events.ReasonDuplicatePurchase,
			DuplicateOfPayment: "3f2504e0-4f89-51d3-9a0c-0305e82c3301", DuplicateOfOrder: "1b9d6bcd-bbfd-5b2d-9b5d-ab8dfbbd4bed"},

		events.PointsEarned{Customer: customer, Order: order, Points: 78, Paid: total},
		events.PointsReversed{Customer: customer, Order: order, Points: 19},

		events.AccountSpendClosed{Account: customer, Currency: "BRL", WindowStart: noon, WindowEnd: noon.Add(5 * time.Minute),
			Payments: 2, Captured: money.BRL(9800), Refunds: 1, Refunded: money.BRL(1910), Revision: 1},

		events.ProductChanged{SKU: "mug-blue", Name: "Caneca azul", Description: "Cerâmica, 300 ml", Price: money.BRL(1910), Active: true},

		events.UserActed{User: "ana", Action: "clique", Timestamp: 1711900000_250000},
	},
	"least": {
		events.OrderPlaced{
			Order: order, Number: "7KX2-M9QD-3FVA", Customer: customer,
			Lines:    []events.Line{{SKU: "tea", Name: "Tea", Quantity: 1, UnitPrice: money.New(500, "JPY"), Total: money.New(500, "JPY")}},
			Subtotal: money.New(500, "JPY"), Shipping: money.New(0, "JPY"), Discount: money.New(0, "JPY"), Total: money.New(500, "JPY"),
			PaymentMethod: "pix",
			Personal: events.Personal{Email: "ana@example.com",
				Address: events.Address{Name: "Ana", Street: "1-1", City: "Tokyo", PostalCode: "100-0001", Country: "JP"}},
			PlacedAt: noon, ConfirmBy: noon.Add(5 * time.Minute),
			Fingerprint: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		},
		events.OrderHeld{Order: order, Payment: payment, Reason: events.ReasonFraud, Until: noon.Add(15 * time.Minute)},
		events.OrderReleased{Order: order, By: customer, ConfirmBy: noon.Add(10 * time.Minute)},
		events.OrderCancelled{Order: order, Customer: customer, Reason: events.ReasonDeadline, By: "orders"},
		events.PaymentVoided{Purchase: unseen},
		events.PurchaseCleared{Verdict: events.Verdict{Order: order, Payment: payment, Customer: customer}},
		events.PurchaseHeld{Verdict: events.Verdict{Order: order, Payment: payment, Customer: customer, Score: 50}, Reason: events.ReasonFraud},
		events.UserActed{User: "42", Action: "clique", Timestamp: 1711900000_000000},
		events.ProductChanged{SKU: "tea", Name: "Tea", Price: money.New(500, "JPY")},
	},
}

// complete gives the full example of a type.
func complete(of events.Event) events.Event {
	for _, e := range examples["complete"] {
		if e.EventType() == of.EventType() {
			return e
		}
	}
	return nil
}
