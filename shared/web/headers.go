package web

import (
	"strconv"
	"strings"
	"time"
)

// MaxWait is the longest that a client may ask an answer to wait.
const MaxWait = 10 * time.Second

const maxKey = 255

// IdempotencyKey reads the header of that name, quoted (as the IETF draft has it) or bare: "abc" and abc are one
// key. At most 255 visible ASCII characters; missing or malformed is an error of kind [Invalid].
func IdempotencyKey(header string) (string, error) {
	const param = "Idempotency-Key"
	key := strings.TrimSpace(header)
	if strings.HasPrefix(key, `"`) {
		var ok bool
		if key, ok = unquote(key); !ok {
			return "", InvalidParam(param, "its quotes are not closed, or something follows them.")
		}
	}
	switch {
	case key == "":
		return "", &Error{Kind: Invalid, Code: "missing_parameter", Param: param, Detail: "Idempotency-Key is required: choose one per request, and repeat it with the request."}
	case len(key) > maxKey:
		return "", InvalidParam(param, "is longer than 255 characters.")
	}
	for i := range len(key) {
		if key[i] < 0x20 || key[i] > 0x7e {
			return "", InvalidParam(param, "may hold visible ASCII characters only.")
		}
	}
	return key, nil
}

// unquote reads a string of RFC 8941: within quotes, a backslash escapes a quote or itself.
func unquote(s string) (string, bool) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), i == len(s)-1
		case c == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\'):
			i++
			b.WriteByte(s[i])
		case c == '\\':
			return "", false
		default:
			b.WriteByte(c)
		}
	}
	return "", false
}

// Wait reads wait=N out of a Prefer header (RFC 7240): how long the answer may take to be a better one, at most
// [MaxWait], and what to put into Preference-Applied (nil: nothing). Preferences that are unknown or make no
// sense are ignored, as the RFC demands.
func Wait(prefer *string) (wait time.Duration, applied *string) {
	if prefer == nil {
		return 0, nil
	}
	for p := range strings.SplitSeq(*prefer, ",") {
		p, _, _ = strings.Cut(p, ";")
		name, value, _ := strings.Cut(p, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "wait") {
			continue
		}
		seconds, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(value), `"`), 10, 31)
		if err != nil || seconds == 0 {
			return 0, nil // the first one counts
		}
		seconds = min(seconds, uint64(MaxWait/time.Second))
		said := "wait=" + strconv.FormatUint(seconds, 10)
		return time.Duration(seconds) * time.Second, &said
	}
	return 0, nil
}
