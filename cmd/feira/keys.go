package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/feira-shop/feira/shared/auth"
)

// ensureKeySet writes the public half of a key to a file, or makes sure that the key set there verifies its tokens. A
// key set that has an address is somebody else's.
func ensureKeySet(path string, key *auth.Key) error {
	if path == "" || strings.Contains(path, "://") {
		return nil
	}
	raw, err := os.ReadFile(path) //nolint:gosec // the user names it
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.WriteFile(path, key.JWKS(), 0o600); err != nil {
			return fmt.Errorf("write the key set: %w", err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the key set: %w", err)
	}
	verifier, err := auth.StaticVerifier(raw, auth.Options{})
	if err != nil {
		return fmt.Errorf("the key set %s: %w", path, err)
	}
	trial, err := key.Sign("trial", []auth.Role{auth.Customer}, time.Minute)
	if err != nil {
		return err
	}
	if _, err := verifier.Verify(trial); err != nil {
		return fmt.Errorf("the key set %s does not hold this key, so the token would be refused: give the key that belongs to it, or another file (--jwks)", path)
	}
	return nil
}
