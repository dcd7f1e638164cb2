package provider

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// Card is what may be known of a card: never its number.
type Card struct {
	// Fingerprint is the same for every use of one card, and says nothing about it.
	Fingerprint string `json:"fingerprint"`
	Brand       string `json:"brand"`
	LastFour    string `json:"last_four"`
}

var tokenShape = regexp.MustCompile(`^tok_[A-Za-z0-9_-]{1,120}$`)

// readToken says what a token makes the provider do, or why it is none.
func readToken(token string) (behaviour, *Problem) {
	if looksLikeCard(token) {
		return behaviour{}, cardNumberProblem("token")
	}
	b, known := behaviourOf(token)
	switch {
	case !tokenShape.MatchString(token) || !known:
		return b, invalid("token", "invalid_token",
			"The token is not one of this provider's. Tokens are tok_<behaviour> or tok_<behaviour>_<card>, for example tok_visa_ana1.")
	case b.later:
		return b, invalid("token", "not_supported", b.name+" is known and not supported yet.")
	}
	return b, nil
}

// cardOf makes the card of a token. Each token, suffix included, is another card. The fingerprint is a keyed
// hash, so that nobody who reads events can find the token by trying.
func cardOf(secret []byte, token string, b behaviour) Card {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(token))
	sum := mac.Sum(nil)
	return Card{
		Fingerprint: "card_" + hex.EncodeToString(sum[:16]),
		Brand:       b.cardBrand(),
		LastFour:    fmt.Sprintf("%04d", binary.BigEndian.Uint32(sum[16:20])%10_000),
	}
}

// looksLikeCard finds a card number given as the whole value or as one part of a token. Parts must begin like
// a number of a payment network (2–6), so that a token whose suffix counts nanoseconds is not mistaken for one.
func looksLikeCard(value string) bool {
	if passesLuhn(value, 12) {
		return true
	}
	for _, part := range strings.Split(value, "_") {
		if part != "" && part[0] >= '2' && part[0] <= '6' && passesLuhn(part, 13) {
			return true
		}
	}
	return false
}

// passesLuhn reports whether s consists of least to 19 digits, spaces and dashes aside, with a right check
// digit (ISO/IEC 7812-1).
func passesLuhn(s string, least int) bool {
	sum, n := 0, 0
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == ' ' || s[i] == '-' {
			continue
		}
		if s[i] < '0' || s[i] > '9' {
			return false
		}
		digit := int(s[i] - '0')
		if n%2 == 1 {
			digit *= 2
		}
		sum += digit/10 + digit%10
		n++
	}
	return n >= least && n <= 19 && sum%10 == 0
}

func cardNumberProblem(param string) *Problem {
	return &Problem{
		Status: http.StatusUnprocessableEntity, Code: "card_number", Param: param,
		Detail: param + " looks like a card number. Card numbers are never accepted; send a token.",
	}
}
