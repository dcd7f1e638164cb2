// Package api is the shop's public contract: the OpenAPI description that requests are validated by, and the
// types and client generated from it. Each service's server is generated from the same file, limited to its tag.
package api

import (
	_ "embed"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
)

//go:generate go tool -modfile=../tools/go.mod oapi-codegen -config client.cfg.yaml openapi.yaml

//go:embed openapi.yaml
var source []byte

var parse = sync.OnceValues(func() (*openapi3.T, error) {
	return openapi3.NewLoader().LoadFromData(source)
})

// Source is the description as it is written, in YAML. The caller must not change it.
func Source() []byte { return source }

// Spec is the description, parsed once with its references resolved. The caller must not change it.
func Spec() (*openapi3.T, error) { return parse() }
