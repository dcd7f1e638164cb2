package setup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// folder writes files that only their owner can read. After an error it does nothing more.
type folder struct {
	dir     string
	owner   *Owner
	written []string
	err     error
}

func (f *folder) has(part, name string) bool {
	_, err := os.Stat(filepath.Join(f.dir, part, name))
	return err == nil
}

// make makes a part's folder.
func (f *folder) make(part string) bool {
	path := filepath.Join(f.dir, part)
	if err := os.MkdirAll(path, 0o700); err != nil {
		f.err = fmt.Errorf("make the folder of secrets: %w", err)
		return false
	}
	// A volume is there before, and everybody's.
	if err := os.Chmod(path, 0o700); err != nil { //nolint:gosec // a folder needs the x
		f.err = fmt.Errorf("close the folder of secrets: %w", err)
		return false
	}
	f.give(path)
	return f.err == nil
}

// write writes a file, whole or not at all, unless it has this content already.
func (f *folder) write(part, name string, content []byte) {
	if f.err != nil || !f.make(part) {
		return
	}
	path := filepath.Join(f.dir, part, name)
	had, err := os.ReadFile(path) //nolint:gosec // the folder is the operator's own configuration
	if err == nil && bytes.Equal(had, content) {
		f.give(path)
		return
	}
	if err := replace(path, content); err != nil {
		f.err = fmt.Errorf("write secrets: %w", err)
		return
	}
	f.give(path)
	f.written = append(f.written, filepath.Join(part, name))
}

func replace(path string, content []byte) error {
	next, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(next.Name()) }() // gone when all went well
	_, err = next.Write(content)
	if err := errors.Join(err, next.Sync(), next.Close()); err != nil {
		return err
	}
	return os.Rename(next.Name(), path)
}

func (f *folder) give(path string) {
	if f.err != nil || f.owner == nil {
		return
	}
	if err := os.Chown(path, f.owner.UID, f.owner.GID); err != nil {
		f.err = fmt.Errorf("give the secrets to their owner: %w", err)
	}
}
