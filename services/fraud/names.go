package fraud

import (
	"bytes"
	"encoding/hex"
	"unicode/utf8"
	"unique"

	"github.com/google/uuid"

	"github.com/feira-shop/feira/shared/events"
)

// The shop's own names in a profile are numbers: in each of its cycles the garbage collector follows every pointer that
// leads anywhere, and with a million cards that is to memory in no cache.

// ID names a payment or an order. The shop's are UUIDs and are kept as their sixteen bytes; any other text is kept as it
// is. IDs are equal when their texts are.
type ID struct {
	uuid  uuid.UUID
	other unique.Handle[string] // zero: the UUID is the name
}

func idOf(text string) ID {
	if u, ok := parseUUID(text); ok {
		return ID{uuid: u}
	}
	return ID{other: unique.Make(text)}
}

// parseUUID reads what appendUUID writes, and nothing else: of the forms that RFC 9562 lets a reader accept, only one is
// the text again. It is called twice for each decision, which has two microseconds.
func parseUUID(text string) (u uuid.UUID, ok bool) {
	if len(text) != 36 {
		return u, false
	}
	for i, n := 0, 0; n < len(u); {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if text[i] != '-' {
				return u, false
			}
			i++
		}
		high, low := digits[text[i]], digits[text[i+1]]
		if high|low > 15 {
			return u, false
		}
		u[n] = high<<4 | low
		i, n = i+2, n+1
	}
	return u, true
}

// digits are the values of small hexadecimal digits; of all else, 255.
var digits = func() (values [256]byte) {
	for i := range values {
		values[i] = 255
	}
	for i, c := range "0123456789abcdef" {
		values[c] = byte(i)
	}
	return values
}()

func appendUUID(b []byte, u uuid.UUID) []byte {
	b = append(hex.AppendEncode(b, u[:4]), '-')
	b = append(hex.AppendEncode(b, u[4:6]), '-')
	b = append(hex.AppendEncode(b, u[6:8]), '-')
	b = append(hex.AppendEncode(b, u[8:10]), '-')
	return hex.AppendEncode(b, u[10:])
}

func (i ID) isUUID() bool { return i.other == unique.Handle[string]{} }

func (i ID) String() string {
	if i.isUUID() {
		return i.uuid.String()
	}
	return i.other.Value()
}

// MarshalText implements [encoding.TextMarshaler].
func (i ID) MarshalText() ([]byte, error) { return []byte(i.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (i *ID) UnmarshalText(text []byte) error {
	*i = idOf(string(text))
	return nil
}

// appendJSON appends the name as encoding/json would.
func (i ID) appendJSON(b []byte) []byte {
	if !i.isUUID() {
		return events.AppendText(b, i.other.Value())
	}
	return append(appendUUID(append(b, '"'), i.uuid), '"')
}

// Currency is an ISO 4217 code. Of a text that is none the first eight bytes count.
type Currency [8]byte

func currencyOf(text string) (c Currency) {
	if len(text) > len(c) {
		end := len(c)
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end]
	}
	copy(c[:], text)
	return c
}

func (c *Currency) text() []byte { return bytes.TrimRight(c[:], "\x00") }

func (c Currency) String() string { return string(c.text()) }

// MarshalText implements [encoding.TextMarshaler].
func (c Currency) MarshalText() ([]byte, error) { return c.text(), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (c *Currency) UnmarshalText(text []byte) error {
	*c = currencyOf(string(text))
	return nil
}
