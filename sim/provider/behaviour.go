package provider

import "strings"

// behaviour is what a token makes the provider do. One that says nothing else is approved throughout.
type behaviour struct {
	name     string // the token's beginning
	brand    string // "" is visa
	decline  string // refuses the authorisation with this code
	failures int    // so many answers of 500 before the first other one
	late     bool   // authorises, and answers after any client has given up
	capture  string // refuses captures with this code
	refund   string // refuses refunds with this code
	disputed bool   // an inquiry follows the capture: recorded, no money moves
	later    bool   // known and refused, because what it needs is not built
}

// behaviours are all that are known. A token is tok_<behaviour> or tok_<behaviour>_<card>.
var behaviours = []behaviour{
	{name: "tok_visa"},
	{name: "tok_mastercard", brand: "mastercard"},
	{name: "tok_declined", decline: "card_declined"},
	{name: "tok_insufficient_funds", decline: "insufficient_funds"},
	{name: "tok_expired", decline: "expired_card"},
	{name: "tok_processing_error", failures: 2},
	{name: "tok_timeout_after_charge", late: true},
	{name: "tok_capture_fails", capture: "capture_declined"},
	{name: "tok_refund_fails", refund: "refund_declined"},
	{name: "tok_dispute", disputed: true},
	{name: "tok_3ds", later: true},
	{name: "tok_3ds_fails", later: true},
	{name: "tok_webhook_twice", later: true},
	{name: "tok_webhook_late", later: true},
	{name: "tok_webhook_first", later: true},
}

// behaviourOf finds what a token asks for. The longest known behaviour wins: tok_3ds_fails_ana1 is
// tok_3ds_fails on the card ana1, not tok_3ds on the card fails_ana1.
func behaviourOf(token string) (behaviour, bool) {
	var best behaviour
	for _, b := range behaviours {
		if (token == b.name || strings.HasPrefix(token, b.name+"_")) && len(b.name) > len(best.name) {
			best = b
		}
	}
	return best, best.name != ""
}

// behaviourNamed finds a behaviour by the name the ledger keeps.
func behaviourNamed(name string) behaviour {
	for _, b := range behaviours {
		if b.name == name {
			return b
		}
	}
	return behaviour{name: name}
}

func (b behaviour) cardBrand() string {
	if b.brand == "" {
		return "visa"
	}
	return b.brand
}
