package api_test

import (
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// closed checks that a request schema bounds every object, list, text and number in it.
func closed(t *testing.T, at string, ref *openapi3.SchemaRef) {
	t.Helper()
	s := ref.Value
	switch {
	case s.Type.Is("object"):
		if s.AdditionalProperties.Has == nil || *s.AdditionalProperties.Has {
			t.Errorf("%s takes any field", at)
		}
		for name, p := range s.Properties {
			closed(t, at+"."+name, p)
		}
	case s.Type.Is("array"):
		if s.MaxItems == nil {
			t.Errorf("%s has no maxItems", at)
		}
		closed(t, at+"[]", s.Items)
	case s.Type.Is("string"):
		if len(s.Enum) == 0 && s.Pattern == "" {
			t.Errorf("%s has no pattern: it takes NUL, which Postgres does not store", at)
		}
	case s.Type.Is("integer"):
		if s.Min == nil || s.Max == nil {
			t.Errorf("%s has no minimum or maximum", at)
		}
	}
}
