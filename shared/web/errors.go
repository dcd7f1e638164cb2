package web

import (
	"errors"
	"net/http"
	"time"
)

// Kind is a class of errors with one HTTP status.
type Kind int

// The kinds of errors there are.
const (
	Internal           Kind = iota // 500: a fault of ours; its cause is never shown
	Invalid                        // 400: the request does not match the description
	Unauthenticated                // 401: no valid token
	Forbidden                      // 403: the role may not do this
	NotFound                       // 404: there is no such thing, or it is somebody else's
	MethodNotAllowed               // 405
	Conflict                       // 409: the thing is not in a state for this
	PreconditionFailed             // 412: If-Match or If-None-Match does not hold
	TooLarge                       // 413: the body exceeds the limit
	UnsupportedMedia               // 415: the body is not JSON
	Unprocessable                  // 422: well-formed, but it cannot be done
	TooManyRequests                // 429: the rate limit
	Unavailable                    // 503: not now; the client may repeat the same request
)

// table gives each kind its status and the code it has unless the error names a better one.
var table = map[Kind]struct {
	status int
	code   string
	detail string
}{
	Internal:           {http.StatusInternalServerError, "internal", "Something went wrong on our side. Quote the request id when you ask about it."},
	Invalid:            {http.StatusBadRequest, "invalid_request", "The request does not match the API's description."},
	Unauthenticated:    {http.StatusUnauthorized, "unauthenticated", "A valid bearer token is needed."},
	Forbidden:          {http.StatusForbidden, "forbidden", "The token's role may not do this."},
	NotFound:           {http.StatusNotFound, "not_found", "There is no such resource."},
	MethodNotAllowed:   {http.StatusMethodNotAllowed, "method_not_allowed", "The resource does not have this method; see Allow."},
	Conflict:           {http.StatusConflict, "conflict", "The resource is not in a state for this."},
	PreconditionFailed: {http.StatusPreconditionFailed, "precondition_failed", "The resource has another version; read it again."},
	TooLarge:           {http.StatusRequestEntityTooLarge, "too_large", "The body is too large."},
	UnsupportedMedia:   {http.StatusUnsupportedMediaType, "unsupported_media_type", "The body must be application/json."},
	Unprocessable:      {http.StatusUnprocessableEntity, "unprocessable", "The request cannot be carried out."},
	TooManyRequests:    {http.StatusTooManyRequests, "too_many_requests", "Too many requests; wait as long as Retry-After says."},
	Unavailable:        {http.StatusServiceUnavailable, "unavailable", "Not available at the moment; repeat the same request."},
}

// Error is an error that a client may see. Code, Detail and Param are sent; Cause is only logged.
type Error struct {
	Kind       Kind
	Code       string        // for programs, stable; "" is the kind's own
	Detail     string        // for people; "" is the kind's own
	Param      string        // what in the request was wrong: a header, a parameter, a path into the body
	RetryAfter time.Duration // when to try again; 0 says nothing
	Cause      error
}

// NewError makes an error of a kind, with a code for programs and a detail for people.
func NewError(kind Kind, code, detail string) *Error {
	return &Error{Kind: kind, Code: code, Detail: detail}
}

// InvalidParam says what is wrong with a header, parameter or field.
func InvalidParam(param, detail string) *Error {
	return &Error{Kind: Invalid, Param: param, Detail: detail}
}

// At returns the error with the part of the request that it is about.
func (e *Error) At(param string) *Error { c := *e; c.Param = param; return &c }

// Because returns the error with a cause for the log.
func (e *Error) Because(cause error) *Error { c := *e; c.Cause = cause; return &c }

func (e *Error) Error() string {
	s := table[e.Kind].code
	if e.Code != "" {
		s = e.Code
	}
	if e.Param != "" {
		s += " at " + e.Param
	}
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Mapper translates a service's own errors; nil means that it does not know this one.
type Mapper func(error) *Error

// Map makes a [Mapper] of one error type.
func Map[E error](translate func(E) *Error) Mapper {
	return func(err error) *Error {
		var e E
		if !errors.As(err, &e) {
			return nil
		}
		return translate(e)
	}
}

// Is makes a [Mapper] of one error value.
func Is(target error, as *Error) Mapper {
	return func(err error) *Error {
		if !errors.Is(err, target) {
			return nil
		}
		return as.Because(err)
	}
}
