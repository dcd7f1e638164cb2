//nolint:revive // EventType and EventKey are documented where they are declared, in Event
package events

// Verdict is what fraud says of one authorised payment. Each gets exactly one.
type Verdict struct {
	Order    string   `json:"order"`
	Payment  string   `json:"payment"`
	Customer string   `json:"customer"`
	Score    int      `json:"score"`           // 0 (harmless) to 100
	Rules    []string `json:"rules,omitempty"` // names of the rules that fired
}

// EventKey is the order.
func (v Verdict) EventKey() string { return v.Order }

// PurchaseCleared says that fraud has no objection.
type PurchaseCleared struct{ Verdict }

// PurchaseHeld says that a person should look, or the customer confirm.
type PurchaseHeld struct {
	Verdict
	Reason             string `json:"reason"` // duplicate_purchase or fraud
	DuplicateOfPayment string `json:"duplicate_of_payment,omitempty"`
	DuplicateOfOrder   string `json:"duplicate_of_order,omitempty"`
}

func (PurchaseCleared) EventType() string { return "shop.feira.purchase.cleared.v1" }
func (PurchaseHeld) EventType() string    { return "shop.feira.purchase.held.v1" }
