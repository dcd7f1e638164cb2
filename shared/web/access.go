package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/feira-shop/feira/shared/auth"
)

// authenticate finds out who is calling and whether their role may. An open operation takes anyone, but not a
// bad token.
func (l *layers) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		op := exchangeOf(r.Context()).op
		if l.Auth == nil {
			next.ServeHTTP(w, r)
			return
		}
		claims, err := l.Auth.FromRequest(r)
		switch {
		case errors.Is(err, auth.ErrNoToken) && op.open:
			next.ServeHTTP(w, r)
		case err != nil:
			l.unauthenticated(w, r, err)
		case !op.open && !slices.ContainsFunc(op.roles, claims.Has):
			fail(l.Log, w, r, &Error{Kind: Forbidden})
		default:
			w.Header().Set("Cache-Control", "private, no-cache")
			next.ServeHTTP(w, r.WithContext(auth.WithClaims(r.Context(), claims)))
		}
	})
}

func (l *layers) unauthenticated(w http.ResponseWriter, r *http.Request, err error) {
	e := &Error{Kind: Unauthenticated, Param: "Authorization"}
	challenge := `Bearer realm="feira"`
	var invalid *auth.InvalidTokenError
	if errors.As(err, &invalid) {
		e.Code, e.Detail = "invalid_token", "The token is not valid: "+invalid.Reason+"."
		challenge += `, error="invalid_token", error_description="` + invalid.Reason + `"`
	}
	w.Header().Set("WWW-Authenticate", challenge)
	fail(l.Log, w, r, e)
}

// limitRate counts the requests of each customer, or of each address where nobody is signed in.
func (l *layers) limitRate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.rate.OnLimit(w, r, l.caller(r)) {
			fail(l.Log, w, r, &Error{Kind: TooManyRequests, RetryAfter: l.Rate.Window})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// caller names who is to be limited. The prefixes keep a customer called 10.0.0.1 apart from that address.
func (l *layers) caller(r *http.Request) string {
	if c, ok := auth.FromContext(r.Context()); ok {
		return "sub:" + c.Subject
	}
	if l.Proxied {
		// Only the last entry is our gateway's; those before it are what the client claims.
		if hops := r.Header.Values("X-Forwarded-For"); len(hops) > 0 {
			last := hops[len(hops)-1]
			return "ip:" + strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	return "ip:" + host
}

// deadline ends the request's context in time. An event stream lasts as long as its client wants.
func (l *layers) deadline(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if exchangeOf(r.Context()).streams {
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), l.Timeout)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
