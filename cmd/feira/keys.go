package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/feira-shop/feira/shared/auth"
)

// writeKeySet writes the public half of a key, unless there is a file already.
func writeKeySet(path string, key *auth.Key) error {
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // the user names it
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("write the key set: %w", err)
	}
	_, err = f.Write(key.JWKS())
	return errors.Join(err, f.Close())
}
