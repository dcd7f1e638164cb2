package auth

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newPair(tb testing.TB) (*Key, *Verifier) {
	tb.Helper()
	k, err := NewKey()
	if err != nil {
		tb.Fatal(err)
	}
	v, err := StaticVerifier(k.JWKS(), Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return k, v
}

func TestSignedTokenIsVerified(t *testing.T) {
	t.Parallel()
	k, v := newPair(t)
	token, err := k.Sign("ana", []Role{Customer, "wizard"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second answer comes from the cache
		c, err := v.Verify(token)
		if err != nil {
			t.Fatal(err)
		}
		if c.Subject != "ana" || len(c.Roles) != 1 || !c.Has(Customer) || c.Has(Operator) {
			t.Fatalf("claims %+v", c)
		}
	}
}

func TestMaySee(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		claims Claims
		want   bool
	}{
		"own":                 {Claims{Subject: "ana", Roles: []Role{Customer}}, true},
		"another's":           {Claims{Subject: "bia", Roles: []Role{Customer}}, false},
		"operator":            {Claims{Subject: "op", Roles: []Role{Operator}}, true},
		"own without a role":  {Claims{Subject: "ana"}, false},
		"nobody has no thing": {Claims{Roles: []Role{Customer}}, false},
	} {
		if got := c.claims.MaySee("ana"); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if (Claims{Roles: []Role{Customer}}).MaySee("") {
		t.Error("an empty subject owns what has no owner")
	}
}

func TestKeyFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key.pem")
	var kids sync.Map
	var wg sync.WaitGroup
	for range 8 { // processes that start together agree on one key
		wg.Go(func() {
			k, err := LoadOrCreateKey(path)
			if err != nil {
				t.Error(err)
				return
			}
			kids.Store(k.public.Kid, true)
		})
	}
	wg.Wait()
	n := 0
	kids.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Fatalf("%d keys", n)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %#o", info.Mode().Perm())
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".key-*")); len(left) > 0 {
		t.Fatalf("left behind: %v", left)
	}
}

func TestUnusableKeyFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good := filepath.Join(dir, "good")
	if _, err := LoadOrCreateKey(good); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(good, 0o644); err != nil {
		t.Fatal(err)
	}
	junk := filepath.Join(dir, "junk")
	if err := os.WriteFile(junk, []byte("not a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{good, junk} {
		var bad *KeyFileError
		if _, err := LoadOrCreateKey(path); !errors.As(err, &bad) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestFromRequest(t *testing.T) {
	t.Parallel()
	k, v := newPair(t)
	token, err := k.Sign("ana", []Role{Customer}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		headers []string
		ok      bool
		missing bool
	}{
		"bearer":        {[]string{"Bearer " + token}, true, false},
		"lower case":    {[]string{"bearer " + token}, true, false},
		"none":          {nil, false, true},
		"basic":         {[]string{"Basic YTpi"}, false, true},
		"empty":         {[]string{"Bearer "}, false, false},
		"two of them":   {[]string{"Bearer " + token, "Bearer " + token}, false, false},
		"extra segment": {[]string{"Bearer " + token + ".x"}, false, false},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		for _, h := range c.headers {
			r.Header.Add("Authorization", h)
		}
		_, err := v.FromRequest(r)
		if (err == nil) != c.ok || errors.Is(err, ErrNoToken) != c.missing {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestVerifierFromFileAndAddress(t *testing.T) {
	t.Parallel()
	k, _ := newPair(t)
	token, err := k.Sign("ana", []Role{Operator}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "jwks.json")
	if err := os.WriteFile(file, k.JWKS(), 0o600); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(k.JWKS()) }))
	defer srv.Close()
	defer http.DefaultClient.CloseIdleConnections()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, source := range []string{file, srv.URL} {
		v, err := NewVerifier(ctx, source, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if c, err := v.Verify(token); err != nil || !c.Has(Operator) {
			t.Errorf("%s: %+v, %v", source, c, err)
		}
	}
}

// The set may rotate: a key that appears later is found by its unknown id, without a restart.
func TestRemoteKeySetIsReadAgainForAnUnknownKey(t *testing.T) {
	t.Parallel()
	first, _ := newPair(t)
	second, _ := newPair(t)
	var mu sync.Mutex
	current := first
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		time.Sleep(30 * time.Millisecond) // it is not on this machine
		_, _ = w.Write(current.JWKS())
	}))
	defer srv.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	v, err := NewVerifier(ctx, srv.URL, Options{})
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	current = second
	mu.Unlock()
	token, err := second.Sign("ana", []Role{Customer}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(token); err != nil {
		t.Fatal(err)
	}
}

func TestCacheIsBoundedAndForgets(t *testing.T) {
	t.Parallel()
	c, now := newCache(), time.Now()
	for i := range 3 * cacheEntries {
		c.put(strings.Repeat("x", i%7)+string(rune(i)), Claims{Expires: now.Add(time.Hour)}, now)
	}
	if n := len(c.young) + len(c.old); n > 2*cacheEntries {
		t.Errorf("%d entries", n)
	}
	c.put("long", Claims{Expires: now.Add(time.Hour)}, now)
	c.put("short", Claims{Expires: now.Add(time.Second)}, now)
	if _, ok := c.get("short", now.Add(time.Second)); ok {
		t.Error("remembered past its end")
	}
	if _, ok := c.get("long", now.Add(cacheFor-time.Second)); !ok {
		t.Error("forgotten too early")
	}
	if _, ok := c.get("long", now.Add(cacheFor)); ok {
		t.Error("trusted longer than a minute without looking at the key set")
	}
}

func BenchmarkVerify(b *testing.B) {
	k, v := newPair(b)
	token, err := k.Sign("ana", []Role{Customer}, time.Hour)
	if err != nil {
		b.Fatal(err)
	}
	for name, forget := range map[string]bool{"seen": false, "new": true} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if forget {
					v.seen = newCache()
				}
				if _, err := v.Verify(token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
