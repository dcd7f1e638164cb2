package web

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/feira-shop/feira/shared/pg"
)

// Problem is an error as the client gets it (RFC 9457).
type Problem struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail,omitempty"`
	Code      string `json:"code"`
	Param     string `json:"param,omitempty"`
	RequestID string `json:"request_id"`
}

// ErrorHandler answers a request that failed.
type ErrorHandler func(w http.ResponseWriter, r *http.Request, err error)

// Failures makes the one place where the errors of a service's handlers become answers: the generated server's
// ResponseErrorHandlerFunc. The mappers are asked in order, for errors that are no [Error] yet.
func Failures(log *slog.Logger, mappers ...Mapper) ErrorHandler {
	log = orDiscard(log)
	return func(w http.ResponseWriter, r *http.Request, err error) {
		fail(log, w, r, translate(err, mappers))
	}
}

// Malformed answers what the generated server could not decode, although it passed validation: its
// RequestErrorHandlerFunc and ErrorHandlerFunc.
func Malformed(log *slog.Logger) ErrorHandler {
	log = orDiscard(log)
	return func(w http.ResponseWriter, r *http.Request, err error) {
		e := translate(err, []Mapper{undecodable})
		if e.Kind == Internal {
			e = &Error{Kind: Invalid, Param: parameterOf(err), Cause: err}
		}
		fail(log, w, r, e)
	}
}

func translate(err error, mappers []Mapper) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	for _, m := range mappers {
		if e := m(err); e != nil {
			return e
		}
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return &Error{Kind: TooLarge, Detail: "The body has more than " + strconv.FormatInt(tooLarge.Limit, 10) + " bytes."}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Kind: Unavailable, Code: "timeout", Detail: "This took too long; repeat the same request to learn what became of it.", Cause: err}
	case errors.Is(err, context.Canceled):
		return &Error{Kind: Unavailable, Code: "cancelled", Cause: err}
	case pg.Away(err):
		return &Error{Kind: Unavailable, RetryAfter: time.Second, Cause: err}
	}
	return &Error{Kind: Internal, Cause: err}
}

// undecodable names the field of a body that Go cannot decode: 1.0, say, is an integer to JSON Schema and not
// to Go.
func undecodable(err error) *Error {
	var wrongType *json.UnmarshalTypeError
	if !errors.As(err, &wrongType) {
		return nil
	}
	return InvalidParam(wrongType.Field, "must be a JSON "+jsonKind(wrongType.Type.Kind().String())+".")
}

// parameterOf reads the field ParamName, which the errors of every generated server have; their types are each
// server's own.
func parameterOf(err error) string {
	v := reflect.ValueOf(err)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return ""
	}
	if f := v.Elem().FieldByName("ParamName"); f.Kind() == reflect.String {
		return f.String()
	}
	return ""
}

func jsonKind(goKind string) string {
	if strings.HasPrefix(goKind, "int") || strings.HasPrefix(goKind, "uint") {
		return "integer without fraction or exponent"
	}
	return goKind
}

func fail(log *slog.Logger, w http.ResponseWriter, r *http.Request, e *Error) {
	row := table[e.Kind]
	id := RequestID(r.Context())
	if e.Cause != nil && r.Context().Err() == nil || e.Kind == Internal {
		level := slog.LevelWarn
		if e.Kind == Internal {
			level = slog.LevelError
		}
		log.Log(r.Context(), level, "request failed", "request_id", id, "code", e.code(), "error", e.Cause)
	}
	if started(w) {
		return // the answer has begun; the connection will show that it broke off
	}
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
	}
	p := Problem{
		Type: "about:blank", Title: http.StatusText(row.status), Status: row.status,
		Detail: e.detail(), Code: e.code(), Param: e.Param, RequestID: id,
	}
	body, _ := json.Marshal(p) // texts and a number always encode
	h := w.Header()
	h.Del("Content-Length")
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(row.status)
	_, _ = w.Write(append(body, '\n'))
}

func (e *Error) code() string {
	if e.Code != "" {
		return e.Code
	}
	return table[e.Kind].code
}

func (e *Error) detail() string {
	if e.Detail != "" {
		return e.Detail
	}
	return table[e.Kind].detail
}

// started reports whether the status has been sent.
func started(w http.ResponseWriter) bool {
	s, ok := w.(interface{ Status() int })
	return ok && s.Status() != 0
}

// WriteJSON answers with v.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, err = w.Write(append(body, '\n'))
	return err
}

func orDiscard(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}

// orInvalid turns an error of ours into the client's, where only the client can have caused it.
func (e *Error) orInvalid(detail string) *Error {
	if e.Kind != Internal {
		return e
	}
	return &Error{Kind: Invalid, Detail: detail, Cause: e.Cause}
}
