package docs

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func ask(h http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestPagesAndTypes(t *testing.T) {
	t.Parallel()
	h := Handler([]byte("openapi: 3.0.3\n"))
	for path, contentType := range map[string]string{
		"/openapi.yaml": "application/yaml", "/docs": "text/html; charset=utf-8", "/docs/": "text/html; charset=utf-8",
		"/docs/start.js": "text/javascript; charset=utf-8", "/docs/scalar.js": "text/javascript; charset=utf-8",
	} {
		w := ask(h, path)
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != contentType || w.Body.Len() == 0 {
			t.Errorf("%s: %d %s, %d bytes", path, w.Code, w.Header().Get("Content-Type"), w.Body.Len())
		}
	}
	first := ask(h, "/openapi.yaml")
	if w := ask(h, "/openapi.yaml", "If-None-Match", first.Header().Get("ETag")); w.Code != http.StatusNotModified {
		t.Errorf("unchanged, and yet sent again: %d", w.Code)
	}
}

func TestThePageMayTalkToItsOwnServerOnly(t *testing.T) {
	t.Parallel()
	w := ask(Handler(nil), "/docs")
	for _, directive := range strings.Split(w.Header().Get("Content-Security-Policy"), ";") {
		for _, source := range strings.Fields(directive)[1:] {
			switch source {
			case "'none'", "'self'", "data:":
			case "'unsafe-inline'":
				if !strings.Contains(directive, "style-src") {
					t.Errorf("inline scripts may run: %s", directive)
				}
			default:
				t.Errorf("the policy lets the page talk to %s", source)
			}
		}
	}
	for _, part := range []string{"http://", "https://"} {
		if strings.Contains(w.Body.String()+string(asset("start.js")), part) {
			t.Errorf("the page names another server")
		}
	}
}

func TestCompressedAndPlainScriptAreTheSame(t *testing.T) {
	t.Parallel()
	h := Handler(nil)
	packed := ask(h, "/docs/scalar.js", "Accept-Encoding", "gzip, br")
	if packed.Header().Get("Content-Encoding") != "gzip" || packed.Body.Len() > 3<<19 {
		t.Fatalf("encoding %q, %d bytes", packed.Header().Get("Content-Encoding"), packed.Body.Len())
	}
	unpacked, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	want, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	plain := ask(h, "/docs/scalar.js")
	if plain.Header().Get("Content-Encoding") != "" || plain.Body.String() != string(want) {
		t.Error("a client without gzip gets another script")
	}
	if plain.Header().Get("Vary") != "Accept-Encoding" {
		t.Error("a cache would mix them up")
	}
}
