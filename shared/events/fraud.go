//nolint:revive // EventType and EventKey are documented where they are declared, in Event
package events

// Verdict is what fraud says of one authorised payment. Each gets exactly one.
type Verdict struct {
	Order    string   `json:"order"`
	Payment  string   `json:"payment"`
	Customer string   `json:"customer"`
	Score    int      `json:"score"`             // 0 (harmless) to 100
	Rules    []string `json:"rules,omitempty"`   // names of the rules that fired
	Reasons  []Fired  `json:"reasons,omitempty"` // the same rules, explained
	// What it was judged with, each named by the beginning of its SHA-256 in hexadecimal digits; model is absent where
	// none was asked, as for a payment that came too late.
	Thresholds string `json:"thresholds,omitempty"`
	Model      string `json:"model,omitempty"`
	ModelScore int    `json:"model_score,omitempty"` // probability of fraud that the model gives, in thousandths
}

// Fired is a rule that fired.
type Fired struct {
	Rule   string `json:"rule"`
	Weight int    `json:"weight"` // what it adds to the score
	Why    string `json:"why"`    // in words, with the figures that were compared; for people, never to be parsed
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
