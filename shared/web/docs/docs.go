// Package docs serves the API's description for people at /docs and for programs at /openapi.yaml. The page,
// Scalar's API reference, is embedded: it works offline and may talk to nobody but the server it came from.
package docs

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"time"
)

//go:embed assets/scalar.js.gz assets/index.html assets/start.js
var assets embed.FS

// policy allows what the page needs and nothing else. Scalar sets styles inline; it runs without eval.
const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Handler serves /docs, its scripts and /openapi.yaml, which is spec.
func Handler(spec []byte) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /openapi.yaml", file("application/yaml", spec))
	mux.Handle("GET /docs", page())
	mux.Handle("GET /docs/{$}", page())
	mux.Handle("GET /docs/start.js", file("text/javascript; charset=utf-8", asset("start.js")))
	mux.Handle("GET /docs/scalar.js", script())
	return mux
}

// asset reads an embedded file, which the compiler made sure is there.
func asset(name string) []byte {
	content, _ := assets.ReadFile("assets/" + name)
	return content
}

func page() http.Handler {
	html := file("text/html; charset=utf-8", asset("index.html"))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("Referrer-Policy", "no-referrer")
		html.ServeHTTP(w, r)
	})
}

// file serves content that a client may keep but asks about each time.
func file(contentType string, content []byte) http.Handler {
	sum := sha256.Sum256(content)
	etag := `"` + hex.EncodeToString(sum[:8]) + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", contentType)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", etag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	})
}

// script serves the compressed bundle as it is, and unpacks it for a client that cannot.
func script() http.Handler {
	packed := asset("scalar.js.gz")
	compressed := file("text/javascript; charset=utf-8", packed)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "Accept-Encoding")
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			compressed.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		unpacked, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			http.Error(w, "the embedded page is damaged", http.StatusInternalServerError)
			return
		}
		_, _ = io.Copy(w, unpacked) //nolint:gosec // our own file, of known size
	})
}
