//nolint:revive // EventType and EventKey are documented where they are declared, in Event
package events

import (
	"time"

	"github.com/feira-shop/feira/shared/money"
)

// Line is one product of an order, with the price at the moment of the checkout.
type Line struct {
	SKU       string      `json:"sku"`
	Name      string      `json:"name"`
	Quantity  int64       `json:"quantity"`
	UnitPrice money.Money `json:"unit_price"`
	Total     money.Money `json:"total"`
}

// Quantity is so many pieces of a product.
type Quantity struct {
	SKU      string `json:"sku"`
	Quantity int64  `json:"quantity"`
}

// Personal is the personal data of an order, in one object so that it can be encrypted as one.
type Personal struct {
	Email   string  `json:"email"`
	Address Address `json:"address"`
	Token   string  `json:"token,omitempty"` // the provider's token for the card, never a card number
}

// Address is where an order goes.
type Address struct {
	Name       string `json:"name"`
	Street     string `json:"street"`
	City       string `json:"city"`
	State      string `json:"state,omitempty"`
	PostalCode string `json:"postal_code"`
	Country    string `json:"country"` // ISO 3166-1 alpha-2
}

// Reasons why an order ends cancelled.
const (
	ReasonOutOfStock        = "out_of_stock"
	ReasonPaymentDeclined   = "payment_declined"
	ReasonDuplicatePurchase = "duplicate_purchase"
	ReasonFraud             = "fraud"
	ReasonDeadline          = "deadline"
	ReasonCustomer          = "customer"
)

// OrderPlaced starts an order: what was bought, at which prices, how it is to be paid.
// Subtotal + Shipping − Discount = Total.
type OrderPlaced struct {
	Order         string      `json:"order"`
	Number        string      `json:"number"` // for people: twelve Crockford base-32 characters
	Customer      string      `json:"customer"`
	Lines         []Line      `json:"lines"`
	Subtotal      money.Money `json:"subtotal"`
	Shipping      money.Money `json:"shipping"`
	Discount      money.Money `json:"discount"`
	Total         money.Money `json:"total"`
	PaymentMethod string      `json:"payment_method"`
	Personal      Personal    `json:"personal"`
	PlacedAt      time.Time   `json:"placed_at"`
	ConfirmBy     time.Time   `json:"confirm_by"`  // the deadline
	Fingerprint   string      `json:"fingerprint"` // SHA-256 of the request, to tell a repeat from another order
}

// OrderStockReserved notes that inventory holds every line.
type OrderStockReserved struct {
	Order string `json:"order"`
}

// OrderPaymentAuthorized notes that the money is reserved on the card.
type OrderPaymentAuthorized struct {
	Order    string      `json:"order"`
	Payment  string      `json:"payment"`
	Amount   money.Money `json:"amount"`
	Brand    string      `json:"brand"`
	LastFour string      `json:"last_four"`
}

// OrderFraudCleared notes that fraud has no objection.
type OrderFraudCleared struct {
	Order   string `json:"order"`
	Payment string `json:"payment"`
}

// OrderHeld suspends an order, and its deadline, until someone releases it or the hold ends.
type OrderHeld struct {
	Order       string    `json:"order"`
	Payment     string    `json:"payment"`
	Reason      string    `json:"reason"` // duplicate_purchase or fraud
	DuplicateOf string    `json:"duplicate_of,omitempty"`
	Until       time.Time `json:"until"`
}

// OrderReleased lets a held order go on, with a new deadline.
type OrderReleased struct {
	Order     string    `json:"order"`
	By        string    `json:"by"`
	Command   string    `json:"command,omitempty"` // id of the request; a repeat of it changes nothing
	ConfirmBy time.Time `json:"confirm_by"`
}

// OrderConfirmed says that stock, payment and fraud are in: the money may be captured.
type OrderConfirmed struct {
	Order    string      `json:"order"`
	Customer string      `json:"customer"`
	Payment  string      `json:"payment"`
	Total    money.Money `json:"total"`
	Lines    []Quantity  `json:"lines"`
}

// OrderPaid notes that the money was captured.
type OrderPaid struct {
	Order    string      `json:"order"`
	Customer string      `json:"customer"`
	Payment  string      `json:"payment"`
	Amount   money.Money `json:"amount"`
}

// OrderPaymentVoided notes that the reserved money was given back.
type OrderPaymentVoided struct {
	Order   string `json:"order"`
	Payment string `json:"payment"`
}

// OrderCancelled ends an order. Only this event triggers compensation: each service that holds
// something for the order gives it back.
type OrderCancelled struct {
	Order    string `json:"order"`
	Customer string `json:"customer"`
	Reason   string `json:"reason"`
	By       string `json:"by"`
	Command  string `json:"command,omitempty"` // id of the request that asked for it, if any
	Detail   string `json:"detail,omitempty"`
}

// OrderRefundRequested asks payments to give back part or all of what was captured.
type OrderRefundRequested struct {
	Order   string      `json:"order"`
	Command string      `json:"command"` // id of the request; a repeat of it changes nothing
	Amount  money.Money `json:"amount"`
	Reason  string      `json:"reason"`
	By      string      `json:"by"`
}

// OrderRefunded notes that money went back to the customer.
type OrderRefunded struct {
	Order         string      `json:"order"`
	Payment       string      `json:"payment"`
	Command       string      `json:"command"` // of the request, or "cancellation"
	Amount        money.Money `json:"amount"`
	RefundedSoFar money.Money `json:"refunded_so_far"`
}

// OrderRefundFailed notes that the provider refused to refund; a person must look.
type OrderRefundFailed struct {
	Order   string      `json:"order"`
	Payment string      `json:"payment"`
	Command string      `json:"command"`
	Amount  money.Money `json:"amount"`
	Code    string      `json:"code"`
}

func (OrderPlaced) EventType() string            { return "shop.feira.order.placed.v1" }
func (OrderStockReserved) EventType() string     { return "shop.feira.order.stock_reserved.v1" }
func (OrderPaymentAuthorized) EventType() string { return "shop.feira.order.payment_authorized.v1" }
func (OrderFraudCleared) EventType() string      { return "shop.feira.order.fraud_cleared.v1" }
func (OrderHeld) EventType() string              { return "shop.feira.order.held.v1" }
func (OrderReleased) EventType() string          { return "shop.feira.order.released.v1" }
func (OrderConfirmed) EventType() string         { return "shop.feira.order.confirmed.v1" }
func (OrderPaid) EventType() string              { return "shop.feira.order.paid.v1" }
func (OrderPaymentVoided) EventType() string     { return "shop.feira.order.payment_voided.v1" }
func (OrderCancelled) EventType() string         { return "shop.feira.order.cancelled.v1" }
func (OrderRefundRequested) EventType() string   { return "shop.feira.order.refund_requested.v1" }
func (OrderRefunded) EventType() string          { return "shop.feira.order.refunded.v1" }
func (OrderRefundFailed) EventType() string      { return "shop.feira.order.refund_failed.v1" }

func (e OrderPlaced) EventKey() string            { return e.Order }
func (e OrderStockReserved) EventKey() string     { return e.Order }
func (e OrderPaymentAuthorized) EventKey() string { return e.Order }
func (e OrderFraudCleared) EventKey() string      { return e.Order }
func (e OrderHeld) EventKey() string              { return e.Order }
func (e OrderReleased) EventKey() string          { return e.Order }
func (e OrderConfirmed) EventKey() string         { return e.Order }
func (e OrderPaid) EventKey() string              { return e.Order }
func (e OrderPaymentVoided) EventKey() string     { return e.Order }
func (e OrderCancelled) EventKey() string         { return e.Order }
func (e OrderRefundRequested) EventKey() string   { return e.Order }
func (e OrderRefunded) EventKey() string          { return e.Order }
func (e OrderRefundFailed) EventKey() string      { return e.Order }
