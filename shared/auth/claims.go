// Package auth makes and verifies the tokens of the public API: JWTs signed with ES256, or RS256 by a key set
// (JWKS) of another issuer. Symmetric and unsigned tokens are refused.
package auth

import (
	"context"
	"slices"
	"time"
)

// Role is what the bearer of a token may do.
type Role string

// The roles of the shop. A customer sees and changes only its own things, an operator everybody's.
const (
	Customer Role = "customer"
	Operator Role = "operator"
)

// Claims say who is calling.
type Claims struct {
	Subject string // the customer's or operator's id
	Roles   []Role // only known ones
	Expires time.Time
}

// Has reports whether the caller has the role.
func (c Claims) Has(r Role) bool { return slices.Contains(c.Roles, r) }

// MaySee reports whether the caller may see what belongs to the customer: it is theirs, or they are an operator.
func (c Claims) MaySee(customer string) bool {
	return c.Has(Operator) || c.Has(Customer) && c.Subject != "" && c.Subject == customer
}

type contextKey struct{}

// WithClaims returns a context of requests made by c.
func WithClaims(ctx context.Context, c Claims) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// FromContext returns who is calling; false when nobody has been authenticated.
func FromContext(ctx context.Context) (Claims, bool) {
	c, ok := ctx.Value(contextKey{}).(Claims)
	return c, ok
}
