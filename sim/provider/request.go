package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/feira-shop/feira/shared/money"
)

const (
	maxBody   = 64 << 10
	maxKey    = 255
	maxText   = 255
	maxAmount = 999_999_999_999 // minor units
)

// authorizeBody is what an authorisation is asked for with.
type authorizeBody struct {
	Amount    int64  `json:"amount"`
	Currency  string `json:"currency"`
	Token     string `json:"token"`
	Reference string `json:"reference"` // the client's own name for the payment
}

func (b authorizeBody) check() *Problem {
	if p := checkAmount(b.Amount); p != nil {
		return p
	}
	if !money.New(b.Amount, b.Currency).Valid() {
		return invalid("currency", "invalid_currency", "The currency must be an ISO 4217 code, for example BRL.")
	}
	return checkText("reference", b.Reference)
}

// amountBody is what a capture or refund is asked for with.
type amountBody struct {
	Amount int64 `json:"amount"`
}

type voidByKeyBody struct {
	AuthorizationKey string `json:"authorization_key"`
}

func checkAmount(amount int64) *Problem {
	if amount < 1 || amount > maxAmount {
		return invalid("amount", "invalid_amount", fmt.Sprintf("The amount must be from 1 to %d minor units.", int64(maxAmount)))
	}
	return nil
}

func checkText(param, text string) *Problem {
	switch {
	case passesLuhn(text, 13):
		return cardNumberProblem(param)
	case text == "" || len(text) > maxText || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return invalid(param, "invalid_text", fmt.Sprintf("%s must have 1 to %d bytes of text without control characters.", param, maxText))
	}
	return nil
}

// checkKey accepts 1 to 255 visible ASCII characters.
func checkKey(param, key string) *Problem {
	visible := func(r rune) bool { return r <= ' ' || r > '~' }
	switch {
	case key == "":
		return malformed(param, "missing_idempotency_key", param+" is required: the same value for every repeat of this request.")
	case len(key) > maxKey || strings.ContainsFunc(key, visible):
		return malformed(param, "invalid_idempotency_key", fmt.Sprintf("%s must have 1 to %d visible ASCII characters.", param, maxKey))
	case passesLuhn(key, 13):
		return cardNumberProblem(param)
	}
	return nil
}

// keyOf reads the Idempotency-Key, quoted or bare.
func keyOf(r *http.Request) (string, *Problem) {
	key := r.Header.Get("Idempotency-Key")
	if len(key) >= 2 && key[0] == '"' && key[len(key)-1] == '"' {
		key = key[1 : len(key)-1]
	}
	return key, checkKey("Idempotency-Key", key)
}

// read decodes a body strictly: unknown fields are refused, since money hangs on the known ones. What the body
// says never gets into the answer.
func read(w http.ResponseWriter, r *http.Request, into any) *Problem {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return &Problem{Status: http.StatusUnsupportedMediaType, Code: "unsupported_media_type", Param: "Content-Type", Detail: "The body must be application/json."}
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil && d.Decode(&struct{}{}) == io.EOF {
		return nil
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return &Problem{Status: http.StatusRequestEntityTooLarge, Code: "body_too_large", Detail: fmt.Sprintf("The body must have at most %d bytes.", maxBody)}
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return malformed(wrong.Field, "invalid_json", "This field is of the wrong type.")
	}
	return malformed("", "invalid_json", "The body must be one JSON object with the documented fields only.")
}
