package main

import (
	"context"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
)

// test is a fault test.
type test struct {
	Package string // "./shared/relay"
	Test    string
	E2E     bool // needs the tag e2e
}

func (t test) name() string { return strings.TrimPrefix(t.Package, "./") + " " + t.Test }

// timed are the tests that hold what something costs, or how long it takes, to a bound.
var timed = regexp.MustCompile("Million|Percentile")

// alone says whether the test needs all of the machine: it runs a fleet of processes, or it is timed.
func (t test) alone() bool { return t.E2E || t.Package == "./cmd/feira" || timed.MatchString(t.Test) }

func (t test) program(p programs) string { return p.of(t) }

// run runs the test in the size and with the seed of the book.
func (t test) run(ctx context.Context, b *book) result {
	r := b.goTest(ctx, t, nil)
	r.Good = r.Passed
	return r
}

// find lists the tests of the module below root whose names begin so, in the order of their folders.
func find(root, prefix string) ([]test, error) {
	var tests []test
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, prefix) {
				tests = append(tests, test{"./" + filepath.ToSlash(dir), f.Name.Name, tagged(file, "e2e")})
			}
		}
		return nil
	})
	return tests, err
}

// tagged tells whether a file is built only with a tag.
func tagged(file *ast.File, tag string) bool {
	for _, group := range file.Comments {
		for _, c := range group.List {
			if expr, err := constraint.Parse(c.Text); err == nil && !expr.Eval(func(t string) bool { return t != tag }) {
				return true
			}
		}
	}
	return false
}
