package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
)

// programs are what the tests of a package, and what they start, are compiled from. A result holds as long as its program
// is the same.
type programs map[compiled]string

// compiled are the tests of a package's folder, with the tag e2e or without.
type compiled struct {
	folder string
	e2e    bool
}

func (p programs) of(t test) string { return p[compiled{t.Package, t.E2E}] }

// compile builds all tests and tells their programs.
func compile(ctx context.Context, tests []test) (programs, error) {
	all := programs{}
	for _, e2e := range []bool{false, true} {
		var folders, starts, tags []string
		for _, t := range tests {
			if t.E2E == e2e && !slices.Contains(folders, t.Package) {
				folders = append(folders, t.Package)
			}
		}
		if e2e { // on real infrastructure, processes of the program
			starts, tags = []string{"./cmd/feira"}, []string{"-tags=e2e"}
		}
		b, err := build(ctx, slices.Concat(tags, starts, folders))
		if err != nil {
			return nil, err
		}
		for _, f := range folders {
			all[compiled{f, e2e}] = b.hash(append([]string{f + ".test"}, starts...))
		}
	}
	return all, nil
}

// listed is what go list says of a package that it has built; BuildID holds a hash of what came of it.
type listed struct {
	ImportPath, BuildID string
	Deps                []string
}

// built are packages by their import path.
type built map[string]listed

func build(ctx context.Context, args []string) (built, error) {
	args = append([]string{"list", "-deps", "-test", "-export", "-json=ImportPath,BuildID,Deps"}, args...)
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // names found in the tree
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("compile the tests: %w\n%s", err, &complaint)
	}
	all := built{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var one listed
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read what go list says: %w", err)
		}
		all[one.ImportPath] = one
	}
}

// hash tells programs apart, each the package of a folder with all that it imports.
func (b built) hash(folders []string) string {
	h := sha256.New()
	for _, path := range slices.Sorted(maps.Keys(b)) {
		if slices.ContainsFunc(folders, func(f string) bool { return strings.HasSuffix(path, strings.TrimPrefix(f, ".")) }) {
			for _, part := range append(slices.Sorted(slices.Values(b[path].Deps)), path) {
				_, _ = fmt.Fprintln(h, part, b[part].BuildID)
			}
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:12])
}
