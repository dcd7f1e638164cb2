package api_test

import (
	"context"
	"testing"

	"github.com/feira-shop/feira/api"
)

func TestSpecIsValidWithItsExamples(t *testing.T) {
	t.Parallel()
	spec, err := api.Spec()
	if err != nil {
		t.Fatal(err)
	}
	if err := spec.Validate(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func TestEveryOperationHasOneTagAndSaysWhoMayCallIt(t *testing.T) {
	t.Parallel()
	spec, err := api.Spec()
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range spec.Paths.Map() {
		for method, op := range item.Operations() {
			if len(op.Tags) != 1 {
				t.Errorf("%s %s has tags %v; the gateway needs exactly one", method, path, op.Tags)
			}
			open := op.Security != nil && len(*op.Security) == 0
			if _, limited := op.Extensions["x-roles"]; limited == open {
				t.Errorf("%s %s must either be open (security: []) or name its x-roles", method, path)
			}
		}
	}
}

// keyless are the operations whose repetition does no harm.
var keyless = map[string]bool{"/v1/clicks": true}

// Repeating a POST must never do a thing twice, so each needs the client's key.
func TestEveryPostDemandsAnIdempotencyKey(t *testing.T) {
	t.Parallel()
	spec, err := api.Spec()
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range spec.Paths.Map() {
		if item.Post == nil || keyless[path] {
			continue
		}
		key := item.Post.Parameters.GetByInAndName("header", "Idempotency-Key")
		if key == nil || !key.Required {
			t.Errorf("POST %s does not demand Idempotency-Key", path)
		}
	}
}

// A body with a field that the service does not know (a price, say) must be refused, at every depth.
func TestRequestBodiesAreClosed(t *testing.T) {
	t.Parallel()
	spec, err := api.Spec()
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range spec.Paths.Map() {
		for method, op := range item.Operations() {
			if op.RequestBody != nil {
				closed(t, method+" "+path, op.RequestBody.Value.Content.Get("application/json").Schema)
			}
		}
	}
}
