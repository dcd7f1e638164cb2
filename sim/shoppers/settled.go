package shoppers

import "github.com/feira-shop/feira/api"

// wish is what the customer asked for after the checkout and waits for.
type wish int

const (
	nothing wish = iota
	cancellation
	refund
)

// settled reports whether an order has come to rest, as far as the API shows it: confirmed and paid, or cancelled
// with its money given back; and what the customer asked for since has been done.
func settled(o api.Order, w wish) bool {
	money := o.FinancialStatus
	switch o.Status {
	case api.OrderStatusCancelled:
		return money == api.FinancialStatusVoided || money == api.FinancialStatusRefunded || money == api.FinancialStatusFailed
	case api.OrderStatusReturned:
		return true
	case api.OrderStatusConfirmed, api.OrderStatusShipped, api.OrderStatusDelivered:
		refunded := money == api.FinancialStatusPartiallyRefunded || money == api.FinancialStatusRefunded
		switch {
		case w == cancellation && o.Status == api.OrderStatusConfirmed:
			return false // once it is shipped the wish was refused
		case w == refund:
			return refunded
		}
		return refunded || money == api.FinancialStatusPaid
	}
	return false
}

// outcome names how an order ended, for the statistics: "confirmed/paid", "cancelled/out_of_stock".
func outcome(o api.Order) string {
	if o.Status == api.OrderStatusCancelled {
		return string(o.Status) + "/" + o.Reason
	}
	return string(o.Status) + "/" + string(o.FinancialStatus)
}
