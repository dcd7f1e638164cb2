//nolint:revive // EventType and EventKey are documented where they are declared, in Event
package events

import (
	"time"

	"github.com/feira-shop/feira/shared/money"
)

// AccountSpendClosed says what an account paid and got back in one window of time, in one currency. A window is said
// again, with the next revision, when a computation over the whole history finds another result.
type AccountSpendClosed struct {
	Account     string      `json:"account"` // the customer
	Currency    string      `json:"currency"`
	WindowStart time.Time   `json:"window_start"` // included
	WindowEnd   time.Time   `json:"window_end"`   // not included
	Payments    int64       `json:"payments"`     // captures in the window
	Captured    money.Money `json:"captured"`     // their sum
	Refunds     int64       `json:"refunds"`
	Refunded    money.Money `json:"refunded"` // their sum; it may be more than was captured in the same window
	Revision    int         `json:"revision"` // 1 when the window closes
}

func (AccountSpendClosed) EventType() string { return "shop.feira.account_spend.closed.v1" }

func (e AccountSpendClosed) EventKey() string { return e.Account }
