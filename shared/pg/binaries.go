package pg

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
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

// choose finds the binaries to use, and fetches them when there are none.
func choose(ctx context.Context, opts Options, acc account) (installation, error) {
	in, mustFetch, err := pick(installed(ctx, opts, acc), dataMajors(opts.Dir), opts.Dir)
	if mustFetch {
		return fetch(ctx, opts, acc)
	}
	return in, err
}

// pick takes the binaries of the version that the directory has data of, the newest if of several; for a new
// directory the first that there are. Data is never left aside for an empty database of another version.
func pick(have []installation, data []int, dir string) (in installation, mustFetch bool, err error) {
	if len(data) == 0 {
		if len(have) > 0 {
			return have[0], false, nil
		}
		return installation{}, true, nil
	}
	newest := slices.Max(data)
	for _, in := range have {
		if in.major == newest {
			return in, false, nil
		}
	}
	if newest == fetchedMajor {
		return installation{}, true, nil
	}
	return installation{}, false, &NoBinariesError{Reason: fmt.Sprintf(
		"%s has data of Postgres %d, which is not installed", dir, newest)}
}

// installed lists what is on this machine and new enough: the newest first, and last what was fetched.
func installed(ctx context.Context, opts Options, acc account) []installation {
	var list []installation
	for _, bin := range candidates(ctx) {
		if in, err := inspect(ctx, bin, acc); err == nil && in.major >= minimumMajor {
			list = append(list, in)
		}
	}
	slices.SortStableFunc(list, func(a, b installation) int { return b.major - a.major })
	if in, err := inspect(ctx, filepath.Join(fetchedDir(opts), "bin"), acc); err == nil {
		list = append(list, in)
	}
	return list
}

// places are where packages put Postgres' programs.
var places = []string{
	"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/libexec/postgresql*", // Debian, Red Hat, Alpine
	"/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

func candidates(ctx context.Context) []string {
	var bins []string
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		bins = append(bins, strings.TrimSpace(string(out)))
	}
	for _, place := range places {
		found, _ := filepath.Glob(place)
		bins = append(bins, found...)
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		bins = append(bins, filepath.Dir(path))
	}
	return bins
}

// inspect asks a folder's postgres for its version, as the account that will run it: it may not be allowed to. A
// folder without initdb (a client package) does not count.
func inspect(ctx context.Context, bin string, acc account) (installation, error) {
	if _, err := os.Stat(filepath.Join(bin, "initdb")); err != nil {
		return installation{}, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "postgres"), "--version") //nolint:gosec // a fixed name in a known folder
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: acc.credential}
	cmd.Dir = "/"
	out, err := cmd.Output()
	if err != nil {
		return installation{}, err
	}
	match := versionOutput.FindStringSubmatch(string(out))
	if match == nil {
		return installation{}, fmt.Errorf("%s/postgres says %q, which is no version", bin, out)
	}
	return installation{bin: bin, version: match[1], major: majorVersion(match[1])}, nil
}
