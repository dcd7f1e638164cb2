//nolint:revive // EventType and EventKey are documented where they are declared, in Event
package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"
)

// UserActed is what a program that need not know anything of this project says a user did, in JSON without
// CloudEvents headers: {"id_usuario": 42, "acao": "clique", "timestamp": 1711900000}. Further fields are passed over.
type UserActed struct {
	// User is a text of 1 to 64 characters, or a whole number; 42 and "42" are the same user.
	User string `json:"id_usuario" jsonschema:"oneof_type=string;integer"`
	// Action is a text of 1 to 64 characters.
	Action    string   `json:"acao" jsonschema:"minLength=1,maxLength=64"`
	Timestamp UnixTime `json:"timestamp" jsonschema:"type=number,minimum=0"` // seconds since 1970, or milliseconds
}

// MostActed is how many characters the user and the action of a [UserActed] may have.
const MostActed = 64

func (UserActed) EventType() string { return "shop.feira.user.acted.v1" }

func (e UserActed) EventKey() string { return e.User }

// UnmarshalJSON refuses what is missing, of another type or out of its range, as a [*FieldError].
func (e *UserActed) UnmarshalJSON(data []byte) error {
	var said struct {
		User      json.RawMessage `json:"id_usuario"`
		Action    json.RawMessage `json:"acao"`
		Timestamp json.RawMessage `json:"timestamp"`
	}
	if err := json.Unmarshal(data, &said); err != nil {
		return err
	}
	var read UserActed
	var err error
	if read.User, err = readUser(said.User); err != nil {
		return &FieldError{"id_usuario", err.Error()}
	}
	if read.Action, err = readText(said.Action); err != nil {
		return &FieldError{"acao", err.Error()}
	}
	if err := read.Timestamp.UnmarshalJSON(said.Timestamp); err != nil {
		return &FieldError{"timestamp", err.Error()}
	}
	*e = read
	return nil
}

// MarshalJSON writes a user that is a whole number as one.
func (e UserActed) MarshalJSON() ([]byte, error) {
	var user any = e.User
	if n, err := strconv.ParseInt(e.User, 10, 64); err == nil && strconv.FormatInt(n, 10) == e.User {
		user = n
	}
	return json.Marshal(struct {
		User      any      `json:"id_usuario"`
		Action    string   `json:"acao"`
		Timestamp UnixTime `json:"timestamp"`
	}{user, e.Action, e.Timestamp})
}

func readUser(raw json.RawMessage) (string, error) {
	if len(raw) > 0 && raw[0] != '"' {
		n, err := strconv.ParseInt(string(raw), 10, 64)
		if f, isNumber := strconv.ParseFloat(string(raw), 64); err != nil && isNumber == nil && f == math.Trunc(f) && math.Abs(f) < 1<<63 {
			n, err = int64(f), nil // 42.0, as programs write that keep ids in tables with gaps
		}
		if err != nil {
			return "", errors.New("is neither a text nor a whole number of 64 bits")
		}
		return strconv.FormatInt(n, 10), nil
	}
	return readText(raw)
}

func readText(raw json.RawMessage) (string, error) {
	if raw == nil {
		return "", errors.New("is missing")
	}
	if raw[0] != '"' {
		return "", errors.New("is not a text")
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return "", err
	}
	if n := utf8.RuneCountInString(text); n < 1 || n > MostActed {
		return "", fmt.Errorf("has %d characters; 1 to %d are allowed", n, MostActed)
	}
	for _, r := range text {
		if unicode.IsControl(r) {
			return "", errors.New("has control characters")
		}
	}
	return text, nil
}

// UnixTime is a time as programs write it that count since 1970, in microseconds. In JSON it is a number of seconds,
// with or without a fraction; a number of at least [leastMillis] is read as milliseconds.
type UnixTime int64

const (
	// leastMillis parts seconds from milliseconds: as seconds it is the year 5138, as milliseconds March 1973.
	leastMillis = 1e11
	mostMillis  = leastMillis * 1000
)

// UnixTimeOf is a time to the microsecond.
func UnixTimeOf(t time.Time) UnixTime { return UnixTime(t.UnixMicro()) }

// Time is the time in UTC.
func (u UnixTime) Time() time.Time { return time.UnixMicro(int64(u)).UTC() }

// UnmarshalJSON takes 0 up to the year 5138.
func (u *UnixTime) UnmarshalJSON(raw []byte) error {
	if raw == nil {
		return errors.New("is missing")
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	switch {
	case err != nil:
		return errors.New("is not a number")
	case !(n >= 0 && n < mostMillis):
		return errors.New("is no time since 1970, in seconds or milliseconds")
	case n >= leastMillis:
		n /= 1000
	}
	// The whole seconds apart, or the fraction would lose digits to them.
	whole, fraction := math.Modf(n)
	*u = UnixTime(int64(whole)*1e6 + int64(math.Round(fraction*1e6)))
	return nil
}

// MarshalJSON writes seconds, with a fraction where there is one.
func (u UnixTime) MarshalJSON() ([]byte, error) {
	text := strconv.AppendInt(nil, int64(u)/1e6, 10)
	if micros := int64(u) % 1e6; micros != 0 {
		text = fmt.Appendf(text, ".%06d", micros)
		for text[len(text)-1] == '0' {
			text = text[:len(text)-1]
		}
	}
	return text, nil
}
