package pg

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// MavenURLVariable names the environment variable that replaces the address binaries are fetched from.
const MavenURLVariable = "FEIRA_MAVEN_URL"

const (
	defaultMavenURL = "https://repo1.maven.org/maven2"
	fetchedMajor    = 18
	fetchedVersion  = "18.4.0"
	fetchTries      = 3
	largestArtifact = 64 << 20
	downloadTimeout = 5 * time.Minute // of one try
)

// artifact is one packaging of Postgres in a Maven repository: a jar that holds a .txz with bin, lib and share.
type artifact struct {
	platform string // as Maven names it
	sha256   string // of the jar
}

// artifacts are the pinned ones, by GOOS/GOARCH.
var artifacts = map[string]artifact{
	"linux/amd64":  {"linux-amd64", "401d4e69baba9072d3772607710df0d47b39a7632c6b01b2a5f5d85a9514e212"},
	"linux/arm64":  {"linux-arm64v8", "a9ec284923b9a7d2db41509bfb88c3d0eeb9f4aa5e2b29ea0aac5e8dbaf4c335"},
	"darwin/amd64": {"darwin-amd64", "68381ed1488edd337345c6c4bc6ae0c823832a4dd7af8b04656ee5c218c291b5"},
	"darwin/arm64": {"darwin-arm64v8", "ab698c4486a795d2aa8a158b3a41e1201a77e7ff72a6255094cd5900080853c2"},
}

func (a artifact) url(base string) string {
	name := "embedded-postgres-binaries-" + a.platform
	return fmt.Sprintf("%s/io/zonky/test/postgres/%s/%s/%s-%s.jar",
		strings.TrimRight(base, "/"), name, fetchedVersion, name, fetchedVersion)
}

// cacheDir is where fetched binaries are kept. Root's home is closed to the account that Postgres runs as.
func cacheDir(opts Options) string {
	if opts.Cache != "" {
		return opts.Cache
	}
	if os.Geteuid() == 0 {
		return "/var/cache/feira"
	}
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "feira")
	}
	return filepath.Join(opts.Dir, "cache")
}

func fetchedDir(opts Options) string {
	return filepath.Join(cacheDir(opts), "postgres-"+fetchedVersion)
}

// fetch downloads the pinned binaries into the cache, once for all processes of the machine.
func fetch(ctx context.Context, opts Options, acc account) (installation, error) {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	pinned, ok := artifacts[platform]
	if !ok {
		return installation{}, &NoBinariesError{Reason: "none is installed, and there is none to fetch for " + platform}
	}
	return fetchArtifact(ctx, opts, acc, pinned)
}

func fetchArtifact(ctx context.Context, opts Options, acc account, a artifact) (installation, error) {
	dir := fetchedDir(opts)
	unlock, err := lockCache(ctx, filepath.Dir(dir))
	if err != nil {
		return installation{}, &NoBinariesError{Reason: "none is installed, and the cache cannot be used", Err: err}
	}
	defer unlock()
	if in, err := inspect(ctx, filepath.Join(dir, "bin"), acc); err == nil {
		return in, nil // another process was faster
	}
	base := os.Getenv(MavenURLVariable)
	if base == "" {
		base = defaultMavenURL
	}
	jar, err := download(ctx, a.url(base), opts.Progress)
	if err != nil {
		return installation{}, &NoBinariesError{Reason: "none is installed, and it could not be fetched", Err: err}
	}
	if sum := sha256.Sum256(jar); hex.EncodeToString(sum[:]) != a.sha256 {
		return installation{}, &NoBinariesError{Reason: "none is installed, and what was fetched is not what was expected",
			Err: fmt.Errorf("%s has sha256 %x, expected %s", a.url(base), sum, a.sha256)}
	}
	if err := unpackInto(dir, jar); err != nil {
		return installation{}, &NoBinariesError{Reason: "none is installed, and what was fetched cannot be unpacked", Err: err}
	}
	in, err := inspect(ctx, filepath.Join(dir, "bin"), acc)
	if err != nil {
		return installation{}, &NoBinariesError{Reason: "none is installed, and the fetched one does not run here", Err: err}
	}
	return in, nil
}

// lockCache lets one process at a time fill the cache.
func lockCache(ctx context.Context, dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // Postgres' account must read it
		return nil, err
	}
	f, err := openLock(dir, "fetch.lock")
	if err != nil {
		return nil, err
	}
	if err := awaitLock(ctx, f, dir); err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}

// unpackInto fills dir at once: it is written beside its place and renamed.
func unpackInto(dir string, jar []byte) error {
	fresh := dir + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if err := unpack(fresh, jar); err != nil {
		return errors.Join(err, os.RemoveAll(fresh))
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(fresh, dir)
}

// download reads url into memory, again when the network failed.
func download(ctx context.Context, url string, progress io.Writer) ([]byte, error) {
	return backoff.Retry(ctx, func() ([]byte, error) { return downloadOnce(ctx, url, progress) },
		backoff.WithMaxTries(fetchTries))
}

func downloadOnce(ctx context.Context, url string, progress io.Writer) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, backoff.Permanent(err)
	}
	// A connection of its own, since nothing else will be asked there: an idle one would stay for a while.
	client := &http.Client{Timeout: downloadTimeout, Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, ForceAttemptHTTP2: true}}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		err := fmt.Errorf("%s answered %s", url, resp.Status)
		if resp.StatusCode < http.StatusInternalServerError {
			return nil, backoff.Permanent(err)
		}
		return nil, err
	}
	bar := newBar(progress, "Fetching Postgres "+fetchedVersion+" (once)", resp.ContentLength)
	defer bar.finish()
	var body bytes.Buffer
	n, err := io.Copy(io.MultiWriter(&body, bar), io.LimitReader(resp.Body, largestArtifact+1))
	if err != nil {
		return nil, err
	}
	if n > largestArtifact {
		return nil, backoff.Permanent(fmt.Errorf("%s is larger than %d MiB", url, largestArtifact>>20))
	}
	return body.Bytes(), nil
}
