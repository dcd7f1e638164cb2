package provider

import "fmt"

// Status is where an authorisation stands.
type Status string

// The states of an authorisation. Money that was captured stays captured; what went back is counted beside it.
const (
	Authorized Status = "authorized"
	Declined   Status = "declined"
	Captured   Status = "captured"
	Voided     Status = "voided"
)

// Authorization is one row of the ledger, and what clients are told of it. Amounts are minor units of Currency.
type Authorization struct {
	ID          string `json:"id"`
	Key         string `json:"-"` // the Idempotency-Key it was made with
	Reference   string `json:"reference"`
	Status      Status `json:"status"`
	DeclineCode string `json:"decline_code,omitempty"`
	Card        Card   `json:"card"`
	Amount      int64  `json:"amount"`
	Currency    string `json:"currency"`
	Captured    int64  `json:"captured"`
	Refunded    int64  `json:"refunded"`
	Disputed    bool   `json:"disputed"`
	Behaviour   string `json:"-"`
}

// EntryKind is what moved, or was reserved.
type EntryKind string

// Kinds of ledger entries.
const (
	EntryAuthorize EntryKind = "authorize"
	EntryCapture   EntryKind = "capture"
	EntryVoid      EntryKind = "void"
	EntryRefund    EntryKind = "refund"
)

// Entry is one effect on an authorisation. Entries are only added: one per request that had an effect.
type Entry struct {
	ID            string
	Authorization string
	Kind          EntryKind
	Amount        int64
}

// capture takes amount of the reserved money; the rest is given back. It happens once.
func (a Authorization) capture(amount int64) (Authorization, *Problem) {
	switch {
	case a.Status == Captured:
		return a, refused("captured", "The authorisation has been captured already.")
	case a.Status != Authorized:
		return a, refused(string(a.Status), fmt.Sprintf("The authorisation is %s; only an authorized one can be captured.", a.Status))
	case amount > a.Amount:
		return a, refused("amount_exceeds_authorized", fmt.Sprintf("%d is more than the authorised %d.", amount, a.Amount))
	}
	b := behaviourNamed(a.Behaviour)
	if b.capture != "" {
		return a, refused(b.capture, "The card's bank refused the capture.")
	}
	a.Status, a.Captured, a.Disputed = Captured, amount, b.disputed
	return a, nil
}

// void gives the reserved money back. Voiding what holds no money changes nothing and is no error.
func (a Authorization) void() (Authorization, *Problem) {
	switch a.Status {
	case Captured:
		return a, conflict("captured", "The authorisation has been captured; refund it instead.")
	case Authorized:
		a.Status = Voided
	}
	return a, nil
}

// refund gives captured money back, in as many parts as wanted, never more than was captured.
func (a Authorization) refund(amount int64) (Authorization, *Problem) {
	switch left := a.Captured - a.Refunded; {
	case a.Status != Captured:
		return a, refused("not_captured", fmt.Sprintf("The authorisation is %s; only captured money can be refunded.", a.Status))
	case amount > left:
		return a, refused("amount_exceeds_captured", fmt.Sprintf("%d is more than the %d that is left of the captured %d.", amount, left, a.Captured))
	}
	if code := behaviourNamed(a.Behaviour).refund; code != "" {
		return a, refused(code, "The card's bank refused the refund.")
	}
	a.Refunded += amount
	return a, nil
}
