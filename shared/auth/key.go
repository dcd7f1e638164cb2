package auth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
)

// Issuer and Audience are what tokens say unless configured otherwise.
const (
	Issuer   = "feira"
	Audience = "feira-api"
)

// Key signs tokens with ES256.
type Key struct {
	private *ecdsa.PrivateKey
	public  jwk
}

// jwk is the public half as RFC 7517 writes it.
type jwk struct {
	Kty string `json:"kty"`
	Crv string `json:"crv"`
	X   string `json:"x"`
	Y   string `json:"y"`
	Kid string `json:"kid"`
	Alg string `json:"alg"`
	Use string `json:"use"`
}

// KeyFileError says why the key in a file cannot be used.
type KeyFileError struct{ Path, Reason string }

func (e *KeyFileError) Error() string {
	return fmt.Sprintf("auth: key file %s: %s", e.Path, e.Reason)
}

// NewKey makes a key that lives only in memory.
func NewKey() (*Key, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("auth: make a key: %w", err)
	}
	return keyOf(private)
}

// LoadOrCreateKey reads the key in a PEM file, or makes one there that only the owner can read (mode 0600).
// Processes that start together agree on one key. A file that others can read is refused.
func LoadOrCreateKey(path string) (*Key, error) {
	k, err := LoadKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	if k, err = NewKey(); err != nil {
		return nil, err
	}
	if err := k.create(path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return LoadKey(path)
}

// LoadKey reads the key in a PEM file (PKCS #8, P-256).
func LoadKey(path string) (*Key, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("auth: read key: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, &KeyFileError{path, fmt.Sprintf("its mode is %#o, so others can read it; make a new key, or chmod 600 if nobody did", info.Mode().Perm())}
	}
	raw, err := os.ReadFile(path) //nolint:gosec // the path is the operator's own configuration
	if err != nil {
		return nil, fmt.Errorf("auth: read key: %w", err)
	}
	block, _ := pem.Decode(raw)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, &KeyFileError{path, "it holds no PEM block PRIVATE KEY (PKCS #8)"}
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, &KeyFileError{path, "it holds no PKCS #8 key"}
	}
	private, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || private.Curve != elliptic.P256() {
		return nil, &KeyFileError{path, "ES256 needs an EC key on P-256"}
	}
	return keyOf(private)
}

// create writes the key under another name first and links it, so that a reader sees a whole file or none.
func (k *Key) create(path string) error {
	der, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err != nil {
		return fmt.Errorf("auth: encode key: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".key-*") // mode 0600
	if err != nil {
		return fmt.Errorf("auth: create key: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	if err := errors.Join(pem.Encode(f, &pem.Block{Type: "PRIVATE KEY", Bytes: der}), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("auth: write key: %w", err)
	}
	if err := os.Link(f.Name(), path); err != nil {
		return fmt.Errorf("auth: create key: %w", err)
	}
	return nil
}

func keyOf(private *ecdsa.PrivateKey) (*Key, error) {
	point, err := private.PublicKey.Bytes() // 4, x, y: 65 bytes
	if err != nil {
		return nil, fmt.Errorf("auth: encode public key: %w", err)
	}
	b64 := base64.RawURLEncoding.EncodeToString
	x, y := b64(point[1:33]), b64(point[33:])
	// RFC 7638: the thumbprint names the key, so that a key set may hold several.
	print := sha256.Sum256([]byte(`{"crv":"P-256","kty":"EC","x":"` + x + `","y":"` + y + `"}`))
	return &Key{private, jwk{"EC", "P-256", x, y, b64(print[:]), "ES256", "sig"}}, nil
}

// Sign makes a token for the subject, valid for ttl.
func (k *Key) Sign(subject string, roles []Role, ttl time.Duration) (string, error) {
	now := time.Now()
	return k.sign(tokenClaims{
		Roles: roles,
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer:    Issuer,
			Audience:  jwt.ClaimStrings{Audience},
			Subject:   subject,
			ID:        uuid.NewString(),
			IssuedAt:  jwt.NewNumericDate(now),
			ExpiresAt: jwt.NewNumericDate(now.Add(ttl)),
		},
	})
}

func (k *Key) sign(claims jwt.Claims) (string, error) {
	t := jwt.NewWithClaims(jwt.SigningMethodES256, claims)
	t.Header["kid"] = k.public.Kid
	signed, err := t.SignedString(k.private)
	if err != nil {
		return "", fmt.Errorf("auth: sign: %w", err)
	}
	return signed, nil
}

// JWKS is the key set (RFC 7517) with the public half of the key.
func (k *Key) JWKS() json.RawMessage {
	raw, _ := json.Marshal(map[string][]jwk{"keys": {k.public}}) // plain strings always encode
	return raw
}
