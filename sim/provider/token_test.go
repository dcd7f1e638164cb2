package provider

import (
	"strings"
	"testing"
)

func TestTheLongestKnownBehaviourWins(t *testing.T) {
	t.Parallel()
	for token, want := range map[string]string{
		"tok_visa":                 "tok_visa",
		"tok_visa_ana1":            "tok_visa",
		"tok_3ds_ana1":             "tok_3ds",
		"tok_3ds_fails":            "tok_3ds_fails",
		"tok_3ds_fails_ana1":       "tok_3ds_fails",
		"tok_3ds_failsafe":         "tok_3ds",
		"tok_timeout_after_charge": "tok_timeout_after_charge",
		"tok_visaelectron":         "",
		"tok_":                     "",
		"tok_unknown_1":            "",
	} {
		if b, known := behaviourOf(token); b.name != want || known != (want != "") {
			t.Errorf("%s is %q, want %q", token, b.name, want)
		}
	}
}

func TestCardNumbersAreRefusedByName(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"4242424242424242", "4242 4242 4242 4242", "5555-5555-5555-4444", "378282246310005", "tok_visa_4242424242424242", "tok_4242-4242-4242-4242"} {
		_, p := readToken(value)
		if p == nil || p.Code != "card_number" || p.Param != "token" || strings.Contains(p.Error(), value) {
			t.Errorf("a card number got %v", p)
		}
	}
	for _, token := range []string{"tok_visa_4242424242424241", "tok_visa_1764438000000000000", "tok_visa_4242", "tok_visa_018f4e3c7a1b"} {
		if _, p := readToken(token); p != nil {
			t.Errorf("%s is no card number, got %v", token, p)
		}
	}
}

func TestEachSuffixIsAnotherCard(t *testing.T) {
	t.Parallel()
	b, _ := behaviourOf("tok_mastercard_a")
	one, again := cardOf([]byte("k"), "tok_mastercard_a", b), cardOf([]byte("k"), "tok_mastercard_a", b)
	other, keyed := cardOf([]byte("k"), "tok_mastercard_b", b), cardOf([]byte("l"), "tok_mastercard_a", b)
	if one != again || one.Fingerprint == other.Fingerprint || one.Fingerprint == keyed.Fingerprint {
		t.Errorf("fingerprints %s %s %s %s: want the first two equal, the others not", one, again, other, keyed)
	}
	if one.Brand != "mastercard" || len(one.LastFour) != 4 || strings.Contains(one.Fingerprint, "tok") {
		t.Errorf("card %+v", one)
	}
}
