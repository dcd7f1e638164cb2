package auth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// forge signs claims in any way an attacker might.
func forge(t *testing.T, m jwt.SigningMethod, key any, header map[string]any, claims jwt.MapClaims) string {
	t.Helper()
	token := jwt.NewWithClaims(m, claims)
	for k, v := range header {
		token.Header[k] = v
	}
	s, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// claims are good ones, with some changed; nil takes one away.
func claims(change jwt.MapClaims) jwt.MapClaims {
	c := jwt.MapClaims{
		"sub": "ana", "roles": []string{"operator"}, "iss": Issuer, "aud": Audience,
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	for k, v := range change {
		if c[k] = v; v == nil {
			delete(c, k)
		}
	}
	return c
}

func rsaJWK(kid string, k *rsa.PublicKey) map[string]string {
	b64 := base64.RawURLEncoding.EncodeToString
	return map[string]string{"kty": "RSA", "kid": kid, "use": "sig", "n": b64(k.N.Bytes()), "e": b64(big.NewInt(int64(k.E)).Bytes())}
}

func TestAttacksAreRefused(t *testing.T) {
	t.Parallel()
	k, v := newPair(t)
	stranger, _ := newPair(t)
	kid := map[string]any{"kid": k.public.Kid}
	publicDER, err := x509.MarshalPKIXPublicKey(&k.private.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	publicPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: publicDER})
	good := forge(t, jwt.SigningMethodES256, k.private, kid, claims(nil))
	if _, err := v.Verify(good); err != nil {
		t.Fatalf("the token that the attacks start from must be good: %v", err)
	}
	part := strings.Split(good, ".")
	other := strings.Split(forge(t, jwt.SigningMethodES256, k.private, kid, claims(jwt.MapClaims{"sub": "bia"})), ".")
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	es := func(change jwt.MapClaims) string {
		return forge(t, jwt.SigningMethodES256, k.private, kid, claims(change))
	}

	for name, token := range map[string]string{
		"alg none":               forge(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, kid, claims(nil)),
		"alg None":               base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"None","kid":"`+k.public.Kid+`"}`)) + "." + part[1] + ".",
		"HMAC with public DER":   forge(t, jwt.SigningMethodHS256, publicDER, kid, claims(nil)),
		"HMAC with public PEM":   forge(t, jwt.SigningMethodHS256, publicPEM, kid, claims(nil)),
		"HMAC with the key set":  forge(t, jwt.SigningMethodHS256, []byte(k.JWKS()), kid, claims(nil)),
		"another curve":          forge(t, jwt.SigningMethodES384, p384, kid, claims(nil)),
		"stranger's key":         forge(t, jwt.SigningMethodES256, stranger.private, kid, claims(nil)),
		"stranger's key and id":  forge(t, jwt.SigningMethodES256, stranger.private, map[string]any{"kid": stranger.public.Kid}, claims(nil)),
		"embedded key":           forge(t, jwt.SigningMethodES256, stranger.private, map[string]any{"kid": stranger.public.Kid, "jwk": stranger.public}, claims(nil)),
		"key by address":         forge(t, jwt.SigningMethodES256, stranger.private, map[string]any{"kid": "x", "jku": "http://127.0.0.1:1/jwks"}, claims(nil)),
		"key id is a path":       forge(t, jwt.SigningMethodES256, stranger.private, map[string]any{"kid": "../../dev/null"}, claims(nil)),
		"critical extension":     forge(t, jwt.SigningMethodES256, k.private, map[string]any{"kid": k.public.Kid, "crit": []string{"b64"}, "b64": false}, claims(nil)),
		"payload exchanged":      part[0] + "." + other[1] + "." + part[2],
		"signature cut off":      part[0] + "." + part[1] + ".",
		"signature of zeros":     part[0] + "." + part[1] + "." + base64.RawURLEncoding.EncodeToString(make([]byte, 64)),
		"no dots":                "abc",
		"oversized":              good + strings.Repeat("A", maxTokenBytes),
		"expired":                es(jwt.MapClaims{"exp": time.Now().Add(-time.Minute).Unix()}),
		"without exp":            es(jwt.MapClaims{"exp": nil}),
		"exp is text":            es(jwt.MapClaims{"exp": "tomorrow"}),
		"not valid yet":          es(jwt.MapClaims{"nbf": time.Now().Add(time.Hour).Unix()}),
		"issued in the future":   es(jwt.MapClaims{"iat": time.Now().Add(time.Hour).Unix()}),
		"another issuer":         es(jwt.MapClaims{"iss": "elsewhere"}),
		"without issuer":         es(jwt.MapClaims{"iss": nil}),
		"another audience":       es(jwt.MapClaims{"aud": []string{"elsewhere"}}),
		"without audience":       es(jwt.MapClaims{"aud": nil}),
		"without subject":        es(jwt.MapClaims{"sub": nil}),
		"subject with line end":  es(jwt.MapClaims{"sub": "ana\n"}),
		"subject with NUL":       es(jwt.MapClaims{"sub": "ana\x00"}),
		"subject of 129 letters": es(jwt.MapClaims{"sub": strings.Repeat("a", 129)}),
	} {
		var invalid *InvalidTokenError
		if c, err := v.Verify(token); !errors.As(err, &invalid) {
			t.Errorf("%s: accepted as %+v (%v)", name, c, err)
		} else if strings.Contains(invalid.Reason, "ana") || strings.Contains(invalid.Reason, k.public.Kid) {
			t.Errorf("%s: the reason repeats the token: %s", name, invalid.Reason)
		}
	}
}

// A key set of another issuer may hold RSA keys, weak ones and even symmetric ones.
func TestForeignKeySet(t *testing.T) {
	t.Parallel()
	strong, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	secret := []byte("a shared secret of enough length")
	set, err := json.Marshal(map[string]any{"keys": []any{
		rsaJWK("strong", &strong.PublicKey), rsaJWK("weak", &weak.PublicKey),
		map[string]string{"kty": "oct", "kid": "secret", "k": base64.RawURLEncoding.EncodeToString(secret)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	v, err := StaticVerifier(set, Options{Issuer: "https://id.example", Audience: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	theirs := claims(jwt.MapClaims{"iss": "https://id.example", "aud": "shop"})
	kid := func(id string) map[string]any { return map[string]any{"kid": id} }
	if _, err := v.Verify(forge(t, jwt.SigningMethodRS256, strong, kid("strong"), theirs)); err != nil {
		t.Errorf("RS256: %v", err)
	}
	for name, token := range map[string]string{
		"weak RSA key":         forge(t, jwt.SigningMethodRS256, weak, kid("weak"), theirs),
		"HMAC by the set":      forge(t, jwt.SigningMethodHS256, secret, kid("secret"), theirs),
		"RS512":                forge(t, jwt.SigningMethodRS512, strong, kid("strong"), theirs),
		"PS256":                forge(t, jwt.SigningMethodPS256, strong, kid("strong"), theirs),
		"RSA without a key id": forge(t, jwt.SigningMethodRS256, strong, nil, theirs),
		"our own issuer":       forge(t, jwt.SigningMethodRS256, strong, kid("strong"), claims(nil)),
	} {
		if _, err := v.Verify(token); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestEmptyKeySetIsRefusedAtStart(t *testing.T) {
	t.Parallel()
	for _, set := range []string{`{"keys":[]}`, `{}`, `nonsense`} {
		if _, err := StaticVerifier(json.RawMessage(set), Options{}); err == nil {
			t.Errorf("%s: accepted", set)
		}
	}
}
