package pg

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// testdata/installation.txz holds bin/postgres and bin/initdb, scripts that say their version, share/file and a
// symbolic link; testdata/outside.txz one file whose path leads out of the archive.

// repository serves a jar that holds the given archive, and counts the downloads.
func repository(t *testing.T, archive string) (a artifact, downloads *atomic.Int64) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", archive))
	if err != nil {
		t.Fatal(err)
	}
	var jar bytes.Buffer
	w := zip.NewWriter(&jar)
	entry, err := w.Create("postgres-test.txz")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := entry.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(jar.Bytes())
	a, downloads = artifact{platform: "test", sha256: hex.EncodeToString(sum[:])}, &atomic.Int64{}
	path := a.url("")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/maven"+path {
			http.NotFound(w, r)
			return
		}
		downloads.Add(1)
		_, _ = w.Write(jar.Bytes())
	}))
	t.Cleanup(server.Close)
	t.Setenv(MavenURLVariable, server.URL+"/maven/")
	return a, downloads
}

func TestBinariesAreFetchedOnce(t *testing.T) {
	a, downloads := repository(t, "installation.txz")
	opts := Options{Cache: filepath.Join(t.TempDir(), "cache")}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			in, err := fetchArtifact(t.Context(), opts, current(), a)
			if err != nil {
				t.Error(err)
			}
			if in.major != 18 || in.version != "18.4" {
				t.Errorf("got %+v", in)
			}
		})
	}
	all.Wait()
	if n := downloads.Load(); n != 1 {
		t.Errorf("downloaded %d times", n)
	}
	for path, mode := range map[string]os.FileMode{"bin/postgres": 0o755, "share/file": 0o644, "share": 0o755} {
		info, err := os.Stat(filepath.Join(fetchedDir(opts), path))
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v %v", path, info, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(fetchedDir(opts), "bin/link")); err != nil || string(text) != "data\n" {
		t.Errorf("the link leads to %q, %v", text, err)
	}
	// What was fetched is found again.
	have := installed(t.Context(), opts, current())
	if last := have[len(have)-1]; last.bin != filepath.Join(fetchedDir(opts), "bin") {
		t.Errorf("found %+v last", last)
	}
}

func TestAFetchIsShown(t *testing.T) {
	a, _ := repository(t, "installation.txz")
	var shown bytes.Buffer
	if _, err := fetchArtifact(t.Context(), Options{Cache: t.TempDir(), Progress: &shown}, current(), a); err != nil {
		t.Fatal(err)
	}
	if text := shown.String(); !strings.HasPrefix(text, "Fetching Postgres 18.4.0") || strings.Count(text, "\n") != 1 {
		t.Errorf("shown: %q", text)
	}
}

func TestWhatCannotBeFetchedIsExplained(t *testing.T) {
	a, _ := repository(t, "installation.txz")
	other, _ := repository(t, "outside.txz")
	cases := map[string]struct {
		artifact artifact
		base     string
		says     string
	}{
		"tampered":    {artifact{other.platform, a.sha256}, "", "expected " + a.sha256},
		"outside":     {other, "", "cannot be unpacked"},
		"absent":      {artifact{"absent", a.sha256}, "", "404"},
		"unreachable": {a, "http://127.0.0.1:1", "could not be fetched"},
		"no address":  {a, "://", "could not be fetched"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.base != "" {
				t.Setenv(MavenURLVariable, c.base)
			}
			cache := t.TempDir()
			_, err := fetchArtifact(t.Context(), Options{Cache: cache}, current(), c.artifact)
			if err == nil {
				t.Fatal("it was taken")
			}
			for _, text := range []string{c.says, "apt-get install postgresql", "brew install", MavenURLVariable} {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q is not in: %v", text, err)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(cache, "*")); len(left) != 1 { // the lock file
				t.Errorf("left in the cache: %v", left)
			}
		})
	}
}

// Root may be able to run what the account that it hands Postgres to is not.
func TestBinariesThatTheAccountCannotRunDoNotCount(t *testing.T) {
	t.Parallel()
	bin, acc := t.TempDir(), current()
	mode := os.FileMode(0o644)
	if os.Geteuid() == 0 {
		var err error
		if acc, err = handOver(bin); err != nil {
			t.Fatal(err)
		}
		mode = 0o700
	}
	for _, name := range []string{"postgres", "initdb"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\necho '(PostgreSQL) 18.4'\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	if in, err := inspect(t.Context(), bin, acc); err == nil {
		t.Errorf("taken: %+v", in)
	}
}

func TestTheRightBinariesArePicked(t *testing.T) {
	t.Parallel()
	local, fetched := installation{major: 16}, installation{major: 18}
	cases := map[string]struct {
		have  []installation
		data  []int
		major int // 0: none
		fetch bool
	}{
		"new directory":               {[]installation{local, fetched}, nil, 16, false},
		"nothing installed":           {nil, nil, 0, true},
		"data of the installed one":   {[]installation{local, fetched}, []int{16}, 16, false},
		"data of the fetched one":     {[]installation{local, fetched}, []int{16, 18}, 18, false},
		"data of one to fetch":        {[]installation{local}, []int{16, 18}, 0, true},
		"data of one that is removed": {[]installation{local, fetched}, []int{16, 17}, 0, false},
	}
	for name, c := range cases {
		in, mustFetch, err := pick(c.have, c.data, "/data")
		if in.major != c.major || mustFetch != c.fetch || (err != nil) != (c.major == 0 && !c.fetch) {
			t.Errorf("%s: got %d, fetch %v, %v", name, in.major, mustFetch, err)
		}
	}
}

func TestEveryPlatformIsPinned(t *testing.T) {
	t.Parallel()
	for _, platform := range []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"} {
		if sum, err := hex.DecodeString(artifacts[platform].sha256); err != nil || len(sum) != sha256.Size {
			t.Errorf("%s: %q is no sha256", platform, artifacts[platform].sha256)
		}
	}
}
