package events

import "slices"

// published says which types each topic carries. A type that is not listed here is private to its service.
var published = []struct {
	topic Topic
	types []Event // zero values serve as prototypes; all versions ever published
}{
	{Orders, []Event{
		OrderPlaced{}, OrderStockReserved{}, OrderPaymentAuthorized{}, OrderFraudCleared{}, OrderHeld{},
		OrderReleased{}, OrderConfirmed{}, OrderPaid{}, OrderPaymentVoided{}, OrderCancelled{},
		OrderRefundRequested{}, OrderRefunded{}, OrderRefundFailed{},
	}},
	{Payments, []Event{
		PaymentAuthorized{}, PaymentDeclined{}, PaymentCaptured{}, PaymentCaptureFailed{}, PaymentVoided{},
		PaymentRefunded{}, PaymentRefundFailed{},
	}},
	{Inventory, []Event{StockReserved{}, StockRefused{}, StockReleased{}, StockReceived{}}},
	{Fraud, []Event{PurchaseCleared{}, PurchaseHeld{}}},
	{Loyalty, []Event{PointsEarned{}, PointsReversed{}}},
	{Analytics, []Event{AccountSpendClosed{}}},
	{Catalog, []Event{ProductChanged{}}},
	{Clicks, []Event{UserActed{}}},
}

// topicOf finds the topic of a published type.
var topicOf = func() map[string]Topic {
	m := map[string]Topic{}
	for _, p := range published {
		for _, e := range p.types {
			m[e.EventType()] = p.topic
		}
	}
	return m
}()

// TopicOf returns the topic on which a shared event type is published; ok is false for private types.
func TopicOf(typ string) (t Topic, ok bool) {
	t, ok = topicOf[typ]
	return t, ok
}

// Published lists prototypes of the types that a topic carries.
func Published(t Topic) []Event {
	for _, p := range published {
		if p.topic.Name == t.Name {
			return slices.Clone(p.types)
		}
	}
	return nil
}

// Versions lists every published type that readers meet as typ: typ itself and the older versions that are
// upcast to it. Who filters records by type before decoding them asks for these.
func Versions(typ string) []string {
	name, version, ok := splitType(typ)
	all := []string{typ}
	for _, p := range published {
		for _, e := range p.types {
			if n, v, _ := splitType(e.EventType()); ok && n == name && v < version {
				all = append(all, e.EventType())
			}
		}
	}
	return all
}
