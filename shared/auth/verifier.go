package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/time/rate"
)

// ErrNoToken says that a request carries no bearer token at all.
var ErrNoToken = errors.New("auth: no bearer token")

// InvalidTokenError says why a token was refused. Reason is safe to show: it holds nothing of the token.
type InvalidTokenError struct {
	Reason string
	Err    error // for logs
}

func (e *InvalidTokenError) Error() string { return "auth: invalid token: " + e.Reason }
func (e *InvalidTokenError) Unwrap() error { return e.Err }

const (
	maxTokenBytes = 8 << 10
	minRSABits    = 2048
	leeway        = 5 * time.Second // between the clocks of issuer and verifier
)

// subjects are what the API's CustomerId admits; a subject ends up in streams and keys.
var subjects = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@:|-]{0,127}$`)

// Options say which tokens a [Verifier] takes.
type Options struct {
	Issuer   string       // "" is [Issuer]
	Audience string       // "" is [Audience]
	Log      *slog.Logger // of failed refreshes of a remote key set; nil: discard
}

// Verifier checks tokens against a key set.
type Verifier struct {
	keys   jwt.Keyfunc
	parser *jwt.Parser
	seen   *cache
}

type tokenClaims struct {
	Roles []Role `json:"roles"`
	jwt.RegisteredClaims
}

// NewVerifier takes a key set: the address of one (http, https; refreshed hourly, and for an unknown key id at
// most twice a minute, until ctx ends) or a file.
func NewVerifier(ctx context.Context, source string, o Options) (*Verifier, error) {
	if strings.HasPrefix(source, "http://") || strings.HasPrefix(source, "https://") {
		return remoteVerifier(ctx, source, o)
	}
	raw, err := os.ReadFile(source) //nolint:gosec // the path is the operator's own configuration
	if err != nil {
		return nil, fmt.Errorf("auth: read key set: %w", err)
	}
	return staticVerifier(ctx, raw, o)
}

// StaticVerifier takes a key set that does not change, for example [Key.JWKS].
func StaticVerifier(jwks json.RawMessage, o Options) (*Verifier, error) {
	return staticVerifier(context.Background(), jwks, o)
}

func staticVerifier(ctx context.Context, jwks json.RawMessage, o Options) (*Verifier, error) {
	k, err := keyfunc.NewJWKSetJSON(jwks)
	if err != nil {
		return nil, fmt.Errorf("auth: parse key set: %w", err)
	}
	set, err := k.VerificationKeySet(ctx)
	if err != nil {
		return nil, fmt.Errorf("auth: read keys of the set: %w", err)
	}
	if len(set.Keys) == 0 {
		return nil, errors.New("auth: the key set holds no key that can verify a token")
	}
	return newVerifier(k.Keyfunc, o), nil
}

func remoteVerifier(ctx context.Context, url string, o Options) (*Verifier, error) {
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	k, err := keyfunc.NewDefaultOverrideCtx(ctx, []string{url}, keyfunc.Override{
		HTTPTimeout:       5 * time.Second,
		RefreshInterval:   time.Hour,
		RefreshUnknownKID: rate.NewLimiter(rate.Every(30*time.Second), 1),
		// The set is read within it, too. A made-up key id is refused at once unless the next reading is allowed within it.
		RateLimitWaitMax: 2 * time.Second,
		RefreshErrorHandlerFunc: func(u string) func(context.Context, error) {
			return func(ctx context.Context, err error) {
				log.WarnContext(ctx, "key set not refreshed; known keys stay valid", "url", u, "error", err)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("auth: key set %s: %w", url, err)
	}
	return newVerifier(k.Keyfunc, o), nil
}

func newVerifier(keys jwt.Keyfunc, o Options) *Verifier {
	if o.Issuer == "" {
		o.Issuer = Issuer
	}
	if o.Audience == "" {
		o.Audience = Audience
	}
	return &Verifier{keys: keys, seen: newCache(), parser: jwt.NewParser(
		// Only asymmetric methods: neither "none", nor an HMAC keyed with a public key.
		jwt.WithValidMethods([]string{"ES256", "RS256"}),
		jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithLeeway(leeway),
		jwt.WithIssuer(o.Issuer), jwt.WithAudience(o.Audience),
	)}
}

// Verify checks a token and says whose it is. A good token is remembered for up to a minute, since a signature
// costs more than the rest of a request; so a key that leaves the set is trusted for that long.
func (v *Verifier) Verify(token string) (Claims, error) {
	if len(token) > maxTokenBytes {
		return Claims{}, &InvalidTokenError{Reason: fmt.Sprintf("longer than %d bytes", maxTokenBytes)}
	}
	now := time.Now()
	if c, ok := v.seen.get(token, now); ok {
		return c, nil
	}
	var t tokenClaims
	if _, err := v.parser.ParseWithClaims(token, &t, v.key); err != nil {
		return Claims{}, &InvalidTokenError{reason(err), err}
	}
	if !subjects.MatchString(t.Subject) {
		return Claims{}, &InvalidTokenError{Reason: "its subject is missing or not a customer id"}
	}
	c := Claims{Subject: t.Subject, Expires: t.ExpiresAt.Time}
	for _, r := range t.Roles {
		if (r == Customer || r == Operator) && !c.Has(r) {
			c.Roles = append(c.Roles, r)
		}
	}
	v.seen.put(token, c, now)
	return c, nil
}

// key finds the key of a token and refuses those that are too weak for its method.
func (v *Verifier) key(t *jwt.Token) (any, error) {
	if _, critical := t.Header["crit"]; critical {
		return nil, errors.New("critical extensions are not understood")
	}
	key, err := v.keys(t)
	if err != nil {
		return nil, err
	}
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		if k.Curve != elliptic.P256() {
			return nil, errors.New("ES256 needs a key on P-256")
		}
	case *rsa.PublicKey:
		if k.N.BitLen() < minRSABits {
			return nil, fmt.Errorf("RS256 needs a key of %d bits", minRSABits)
		}
	default:
		return nil, fmt.Errorf("a key of type %T cannot verify", key)
	}
	return key, nil
}

// reason says in a few words what was wrong, without repeating anything of the token.
func reason(err error) string {
	switch {
	case errors.Is(err, jwt.ErrTokenExpired):
		return "expired"
	case errors.Is(err, jwt.ErrTokenNotValidYet), errors.Is(err, jwt.ErrTokenUsedBeforeIssued):
		return "not valid yet"
	case errors.Is(err, jwt.ErrTokenInvalidIssuer):
		return "another issuer"
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		return "meant for another audience"
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		return "a required claim (exp, iss, aud) is missing"
	case errors.Is(err, jwt.ErrTokenMalformed):
		return "malformed"
	case errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return "wrong signature or method"
	default:
		return "not verifiable with the known keys"
	}
}

// FromRequest verifies the bearer token of a request. Without one the error is [ErrNoToken].
func (v *Verifier) FromRequest(r *http.Request) (Claims, error) {
	values := r.Header.Values("Authorization")
	if len(values) == 0 {
		return Claims{}, ErrNoToken
	}
	if len(values) > 1 {
		return Claims{}, &InvalidTokenError{Reason: "more than one Authorization header"}
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return Claims{}, ErrNoToken
	}
	return v.Verify(strings.TrimSpace(token))
}
