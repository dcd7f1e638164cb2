package orders

import (
	"time"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/operator"
)

// Rules is the order as a decider.
var Rules = decider.Decider[Order]{Decide: Decide, Evolve: Evolve, Shape: 1}

// Stream is the stream of an order.
func Stream(order string) string { return "order-" + order }

func operators(cfg Config) []operator.Definition {
	return []operator.Definition{
		decider.Operator("orders.process", Rules, Routes(cfg.Hold)...),
		catalogue,
	}
}

// Routes says what the events of other services mean to an order. A hold lasts as long as given, from the verdict on.
func Routes(hold time.Duration) []decider.Route {
	return append(fromStockAndFraud(hold), fromPayments()...)
}

func fromStockAndFraud(hold time.Duration) []decider.Route {
	return []decider.Route{
		decider.On(func(e events.StockReserved) (string, any) { return Stream(e.Order), NoteReserved{} }),
		decider.On(func(e events.StockRefused) (string, any) { return Stream(e.Order), NoteRefused{e.Missing} }),
		decider.On(func(e events.PurchaseCleared) (string, any) { return Stream(e.Order), NoteCleared{e.Payment} }),
		decider.OnRecorded(func(r events.Recorded, e events.PurchaseHeld) (string, any) {
			return Stream(e.Order), NoteHeld{e.Payment, e.Reason, e.DuplicateOfOrder, r.Time.Add(hold)}
		}),
	}
}

func fromPayments() []decider.Route {
	return []decider.Route{
		decider.On(func(e events.PaymentAuthorized) (string, any) {
			return Stream(e.Order), NoteAuthorized{Payment: e.Payment, Brand: e.Brand, LastFour: e.LastFour, Amount: e.Amount}
		}),
		decider.On(func(e events.PaymentDeclined) (string, any) { return Stream(e.Order), NoteDeclined{e.Payment, e.Code} }),
		decider.On(func(e events.PaymentCaptured) (string, any) {
			return Stream(e.Order), NoteCaptured{e.Payment, e.Amount}
		}),
		decider.On(func(e events.PaymentCaptureFailed) (string, any) {
			return Stream(e.Order), NoteCaptureFailed{e.Payment, e.Code}
		}),
		decider.On(func(e events.PaymentVoided) (string, any) { return Stream(e.Order), NoteVoided{e.Payment} }),
		decider.On(func(e events.PaymentRefunded) (string, any) {
			return Stream(e.Order), NoteRefunded{e.Payment, e.Command, e.Refunded, e.RefundedSoFar}
		}),
		decider.On(func(e events.PaymentRefundFailed) (string, any) {
			return Stream(e.Order), NoteRefundFailed{Payment: e.Payment, Command: e.Command, Code: e.Code, Amount: e.Refund}
		}),
	}
}
