package web

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
)

// validateRequest holds parameters and body against the description. kin-openapi judges values; the body is
// decoded here, because its decoder (as Go's) lets pass what would not be stored as it was sent: repeated fields,
// of which the generated types may keep another one than was validated, and text that is not Unicode.
func (l *layers) validateRequest(next http.Handler) http.Handler {
	options := &openapi3filter.Options{
		SkipSettingDefaults:     true,
		SchemaValidationOptions: []openapi3.SchemaValidationOption{openapi3.EnableFormatValidation()},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := exchangeOf(r.Context())
		if e := validateParameters(x, r, options); e != nil {
			fail(l.Log, w, r, e)
			return
		}
		if e := l.validateBody(w, r, x.op); e != nil {
			fail(l.Log, w, r, e)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func validateParameters(x *exchange, r *http.Request, options *openapi3filter.Options) *Error {
	if len(x.op.parameters) == 0 {
		return nil
	}
	input := &openapi3filter.RequestValidationInput{
		Request: r, PathParams: x.params, QueryParams: r.URL.Query(), Route: x.op.route, Options: options,
	}
	for _, p := range x.op.parameters {
		if p.In != openapi3.ParameterInPath && !p.Required && !present(r, input, p) {
			continue
		}
		if err := openapi3filter.ValidateParameter(r.Context(), input, p); err != nil {
			return parameterError(p, err)
		}
		if len(r.Header.Values(p.Name)) > 1 && p.In == openapi3.ParameterInHeader || len(input.QueryParams[p.Name]) > 1 && p.In == openapi3.ParameterInQuery {
			return InvalidParam(p.Name, "given more than once.")
		}
	}
	return nil
}

func present(r *http.Request, input *openapi3filter.RequestValidationInput, p *openapi3.Parameter) bool {
	if p.In == openapi3.ParameterInHeader {
		return len(r.Header.Values(p.Name)) > 0
	}
	return input.QueryParams.Has(p.Name)
}

func parameterError(p *openapi3.Parameter, err error) *Error {
	var schema *openapi3.SchemaError
	switch {
	case errors.Is(err, openapi3filter.ErrInvalidRequired):
		return &Error{Kind: Invalid, Code: "missing_parameter", Detail: p.Name + " is required.", Param: p.Name}
	case errors.As(err, &schema):
		return InvalidParam(p.Name, sentence(schema.Reason))
	default:
		return InvalidParam(p.Name, "cannot be read as "+strings.Join(p.Schema.Value.Type.Slice(), " or ")+".")
	}
}

func (l *layers) validateBody(w http.ResponseWriter, r *http.Request, op *operation) *Error {
	body, err := l.readBody(w, r)
	if err != nil {
		return translate(err, nil).orInvalid("The body could not be read to its end.")
	}
	trimmed := bytes.TrimSpace(body)
	if op.body == nil {
		if len(trimmed) > 0 && string(trimmed) != "{}" {
			return &Error{Kind: Invalid, Detail: "This operation takes no body."}
		}
		return nil
	}
	if len(trimmed) == 0 {
		if op.mustBody {
			return &Error{Kind: Invalid, Code: "missing_body", Detail: "A body is required."}
		}
		return nil
	}
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return &Error{Kind: UnsupportedMedia, Param: "Content-Type"}
	}
	value, e := decodeJSON(body)
	if e != nil {
		return e
	}
	if err := op.body.VisitJSON(value, openapi3.VisitAsRequest(), openapi3.EnableFormatValidation()); err != nil {
		return bodyError(err)
	}
	return nil
}

// readBody reads the whole body, at most the limit, and puts it back for the handler.
func (l *layers) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	if r.ContentLength > l.MaxBody {
		return nil, &http.MaxBytesError{Limit: l.MaxBody}
	}
	var buf bytes.Buffer
	if r.ContentLength > 0 {
		buf.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	if _, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, l.MaxBody)); err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(buf.Bytes()))
	r.ContentLength = int64(buf.Len())
	return buf.Bytes(), nil
}

// bodyError names the field by its path: lines.0.quantity.
func bodyError(err error) *Error {
	var schema *openapi3.SchemaError
	if !errors.As(err, &schema) {
		return &Error{Kind: Invalid, Cause: err}
	}
	path := schema.JSONPointer()
	code := ""
	switch schema.SchemaField {
	case "properties": // the error is the object's; the field that it does not know is not in the path
		path = append(path, unknownField(schema))
		code = "unknown_field"
	case "required":
		code = "missing_field"
	}
	return &Error{Kind: Invalid, Code: code, Param: strings.Join(path, "."), Detail: sentence(schema.Reason)}
}

func unknownField(e *openapi3.SchemaError) string {
	fields, _ := e.Value.(map[string]any)
	var unknown []string
	for name := range fields {
		if e.Schema.Properties[name] == nil {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return ""
	}
	return shorten(slices.Min(unknown))
}

// sentence makes kin-openapi's reasons readable. They hold no values, but may repeat a field's name.
func sentence(reason string) string {
	if strings.HasPrefix(reason, "string doesn't match the regular expression") {
		return "has characters or a form that are not allowed."
	}
	if i := strings.Index(reason, `property "`); i >= 0 {
		if strings.HasSuffix(reason, "is unsupported") {
			return "There is no such field."
		}
		if strings.HasSuffix(reason, "is missing") {
			return "is required."
		}
	}
	return reason + "."
}

// shorten keeps a client's own text, such as a field's name, to a length that suits a message.
func shorten(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
