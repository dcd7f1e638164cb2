package fraud

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A name is its text again, and what differs stays different, whatever the text: a UUID, one in capitals, or none.
func TestIDsAreTheirTexts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`),
			rapid.StringMatching(`[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`), rapid.StringMatching(`[0-9a-f]{32}`))
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		if idOf(a).String() != a || (idOf(a) == idOf(b)) != (a == b) {
			t.Fatalf("%q is %v, %q is %v", a, idOf(a), b, idOf(b))
		}
		written := idOf(a).appendJSON(nil)
		var read ID
		if err := json.Unmarshal(written, &read); err != nil || read != idOf(a) {
			t.Fatalf("%q is written as %s and read as %v: %v", a, written, read, err)
		}
	})
}

// A currency that is no ISO 4217 code is one all the same, and what is kept of it does not get lost on the way through a checkpoint.
func TestCurrencies(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"BRL": "BRL", "": "", "12345678": "12345678", "123456789": "12345678", "1234567é": "1234567", strings.Repeat("\x80", 9): ""} {
		c, read := currencyOf(text), Currency{}
		written, err := json.Marshal(c)
		if err == nil {
			err = json.Unmarshal(written, &read)
		}
		if c.String() != want || read != c || err != nil {
			t.Errorf("%q is %q, and read again %q (%v), want %q", text, c, read, err, want)
		}
	}
}
