package web

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
)

// Page sizes of a list.
const (
	DefaultLimit = 20
	MaxLimit     = 100
)

// Limit reads the parameter limit.
func Limit(limit *int) int {
	if limit == nil || *limit < 1 {
		return DefaultLimit
	}
	return min(*limit, MaxLimit)
}

// EncodeCursor makes a cursor of the last item's place in the order of the list. Clients take it as it is, but
// can read it: put nothing secret into it.
func EncodeCursor(place any) (string, error) {
	raw, err := json.Marshal(place)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(raw), nil
}

// DecodeCursor reads the parameter after into place, which is left alone on the first page. A cursor that is not
// of this list is an error of kind [Invalid].
func DecodeCursor(after *string, place any) error {
	if after == nil || *after == "" {
		return nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(*after)
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		err = d.Decode(place)
	}
	if err != nil {
		return &Error{Kind: Invalid, Code: "invalid_cursor", Param: "after", Detail: "is not a next_cursor of this list."}
	}
	return nil
}
