package pg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// minimumMajor is the oldest Postgres that Feira runs on.
const minimumMajor = 15

// installation is a folder with initdb and postgres in it.
type installation struct {
	bin     string
	version string // "15.14"
	major   int
}

var versionOutput = regexp.MustCompile(`\(PostgreSQL\) (\d+[.\w]*)`)

// choose finds the binaries to use: those of the version that the directory has data of; in a new directory the
// newest installed ones; else it fetches some.
func choose(ctx context.Context, opts Options) (installation, error) {
	have := installed(ctx, opts)
	majors := dataMajors(opts.Dir)
	slices.Sort(majors)
	if len(majors) == 0 {
		if len(have) > 0 {
			return have[0], nil
		}
		return fetch(ctx, opts)
	}
	for _, major := range slices.Backward(majors) {
		for _, in := range have {
			if in.major == major {
				return in, nil
			}
		}
		if major == fetchedMajor {
			return fetch(ctx, opts)
		}
	}
	return installation{}, &NoBinariesError{Reason: fmt.Sprintf(
		"%s has data of Postgres %d, and that version is not installed", opts.Dir, majors[len(majors)-1])}
}

// installed lists what is on this machine and new enough, the newest first.
func installed(ctx context.Context, opts Options) []installation {
	var list []installation
	for _, bin := range candidates(ctx, opts) {
		in, err := inspect(ctx, bin)
		if err == nil && in.major >= minimumMajor {
			list = append(list, in)
		}
	}
	slices.SortStableFunc(list, func(a, b installation) int { return b.major - a.major })
	return list
}

func candidates(ctx context.Context, opts Options) []string {
	var bins []string
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		bins = append(bins, strings.TrimSpace(string(out)))
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/libexec/postgresql*",
		"/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin",
		"/Applications/Postgres.app/Contents/Versions/*/bin",
	} {
		found, _ := filepath.Glob(pattern)
		bins = append(bins, found...)
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		bins = append(bins, filepath.Dir(path))
	}
	return append(bins, filepath.Join(fetchedDir(opts), "bin"))
}

// inspect asks a folder's postgres for its version. A folder without initdb (a client package) does not count.
func inspect(ctx context.Context, bin string) (installation, error) {
	if _, err := os.Stat(filepath.Join(bin, "initdb")); err != nil {
		return installation{}, err
	}
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "postgres"), "--version").Output() //nolint:gosec // a fixed name in a known folder
	if err != nil {
		return installation{}, err
	}
	match := versionOutput.FindStringSubmatch(string(out))
	if match == nil {
		return installation{}, errors.New("its version cannot be read: " + string(out))
	}
	return installation{bin: bin, version: match[1], major: majorVersion(match[1])}, nil
}
