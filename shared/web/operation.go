package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
	"github.com/go-chi/chi/v5"

	"github.com/feira-shop/feira/shared/auth"
)

// operation is one operation of the description, prepared so that a request costs as little as possible.
type operation struct {
	pattern    string // "/v1/orders/{id}": the label route
	method     string
	open       bool // needs no token
	roles      []auth.Role
	streams    bool // offers text/event-stream
	parameters []*openapi3.Parameter
	body       *openapi3.Schema // nil: takes no body
	mustBody   bool
	route      *routers.Route
}

// operations finds the operation of a request, by chi's own tree.
type operations struct {
	tree  *chi.Mux
	table map[string]map[string]*operation // pattern, method
}

// SpecError says what in the description this package cannot serve.
type SpecError struct{ Operation, Reason string }

func (e *SpecError) Error() string {
	return fmt.Sprintf("web: operation %s: %s", e.Operation, e.Reason)
}

func newOperations(spec *openapi3.T, tags []string) (*operations, error) {
	ops := &operations{tree: chi.NewRouter(), table: map[string]map[string]*operation{}}
	for pattern, item := range spec.Paths.Map() {
		for method, op := range item.Operations() {
			if len(tags) > 0 && !slices.ContainsFunc(op.Tags, func(t string) bool { return slices.Contains(tags, t) }) {
				continue
			}
			prepared, err := prepare(spec, pattern, method, item, op)
			if err != nil {
				return nil, err
			}
			if ops.table[pattern] == nil {
				ops.table[pattern] = map[string]*operation{}
			}
			ops.table[pattern][method] = prepared
			ops.tree.MethodFunc(method, pattern, func(http.ResponseWriter, *http.Request) {})
		}
	}
	return ops, nil
}

func prepare(spec *openapi3.T, pattern, method string, item *openapi3.PathItem, op *openapi3.Operation) (*operation, error) {
	security := spec.Security
	if op.Security != nil {
		security = *op.Security
	}
	o := &operation{
		pattern: pattern, method: method, open: len(security) == 0,
		route: &routers.Route{Spec: spec, Path: pattern, PathItem: item, Method: method, Operation: op},
	}
	for _, p := range item.Parameters {
		if op.Parameters.GetByInAndName(p.Value.In, p.Value.Name) == nil {
			o.parameters = append(o.parameters, p.Value)
		}
	}
	for _, p := range op.Parameters {
		o.parameters = append(o.parameters, p.Value)
	}
	if err := o.readRoles(op); err != nil {
		return nil, err
	}
	if ok := op.Responses.Status(http.StatusOK); ok != nil && ok.Value != nil {
		o.streams = ok.Value.Content["text/event-stream"] != nil
	}
	if op.RequestBody != nil {
		media := op.RequestBody.Value.Content["application/json"]
		if media == nil || len(op.RequestBody.Value.Content) != 1 {
			return nil, &SpecError{op.OperationID, "its body must be application/json and nothing else"}
		}
		o.body, o.mustBody = media.Schema.Value, op.RequestBody.Value.Required
	}
	return o, nil
}

// readRoles reads x-roles. An operation that is not open must have them, so that none is left open by accident.
func (o *operation) readRoles(op *openapi3.Operation) error {
	raw, err := json.Marshal(op.Extensions["x-roles"])
	if err == nil {
		err = json.Unmarshal(raw, &o.roles)
	}
	if err != nil {
		return &SpecError{op.OperationID, "x-roles must be a list of roles"}
	}
	if o.open != (len(o.roles) == 0) {
		return &SpecError{op.OperationID, "must either be open (security: []) or say in x-roles who may call it"}
	}
	return nil
}

// find returns the operation of a request with its path parameters, unescaped. Without one, allowed lists the
// methods that the path has; none means that there is no such path.
func (ops *operations) find(r *http.Request) (op *operation, params map[string]string, allowed []string) {
	path := r.URL.Path
	if r.URL.RawPath != "" {
		path = r.URL.RawPath
	}
	rctx := chi.NewRouteContext()
	if !ops.tree.Match(rctx, r.Method, path) {
		return nil, nil, ops.methods(path)
	}
	op = ops.table[rctx.RoutePattern()][r.Method]
	if len(rctx.URLParams.Keys) > 0 {
		params = make(map[string]string, len(rctx.URLParams.Keys))
		for i, k := range rctx.URLParams.Keys {
			v, err := url.PathUnescape(rctx.URLParams.Values[i])
			if err != nil {
				return nil, nil, nil
			}
			params[k] = v
		}
	}
	return op, params, nil
}

func (ops *operations) methods(path string) (allowed []string) {
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if ops.tree.Match(chi.NewRouteContext(), m, path) {
			allowed = append(allowed, m)
		}
	}
	return allowed
}

// methodLabel keeps made-up methods out of the metrics.
func methodLabel(m string) string {
	if slices.Contains([]string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"}, m) {
		return m
	}
	return "other"
}

func allowHeader(methods []string) string { return strings.Join(methods, ", ") }
