package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"unicode/utf8"
)

// maxDepth of nested objects and lists; the description needs four.
const maxDepth = 32

// decodeJSON reads one JSON value as it was sent, or says why it cannot: invalid UTF-8 and half surrogates,
// which Go would replace without a word, fields that occur twice, trailing data, or nesting without end.
func decodeJSON(body []byte) (any, *Error) {
	if !utf8.Valid(body) {
		return nil, &Error{Kind: Invalid, Code: "invalid_json", Detail: "The body is not UTF-8."}
	}
	if halfSurrogate(body) {
		return nil, &Error{Kind: Invalid, Code: "invalid_json", Detail: `The body escapes half of a surrogate pair (\ud800 to \udfff), which is no character.`}
	}
	// Go's decoder is fast, and keeps the last of two fields of one name. So count the names: when some got lost,
	// or anything else is wrong, the slow reader finds out what.
	if names, depth := outline(body); depth <= maxDepth {
		var v any
		if json.Unmarshal(body, &v) == nil && count(v) == names {
			return v, nil
		}
	}
	return readSlowly(body)
}

// outline counts the names of all objects in a JSON text, and how deeply it is nested.
func outline(body []byte) (names, depth int) {
	level := 0
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			for i++; i < len(body) && body[i] != '"'; i++ {
				if body[i] == '\\' {
					i++
				}
			}
		case ':':
			names++
		case '{', '[':
			level++
			depth = max(depth, level)
		case '}', ']':
			level--
		}
	}
	return names, depth
}

// count counts the names of all objects in a decoded value.
func count(v any) (names int) {
	switch v := v.(type) {
	case map[string]any:
		names = len(v)
		for _, member := range v {
			names += count(member)
		}
	case []any:
		for _, item := range v {
			names += count(item)
		}
	}
	return names
}

func readSlowly(body []byte) (any, *Error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber() // 1e400 is a number, if not one that any field takes
	v, err := (&reader{d: d}).value("", 0)
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return v, nil
		}
		err = &Error{Kind: Invalid, Code: "invalid_json", Detail: "There is more than one JSON value in the body."}
	}
	var e *Error
	if errors.As(err, &e) {
		return nil, e
	}
	return nil, &Error{Kind: Invalid, Code: "invalid_json", Detail: "The body is not JSON (near byte " + strconv.FormatInt(d.InputOffset(), 10) + ")."}
}

// reader reads a value token by token, and so sees every name.
type reader struct{ d *json.Decoder }

func (r *reader) value(path string, depth int) (any, error) {
	token, err := r.d.Token()
	if err != nil {
		return nil, err
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return token, nil
	}
	if depth == maxDepth {
		return nil, InvalidParam(shorten(path), "is nested too deeply.")
	}
	if delim == '{' {
		return r.object(path, depth)
	}
	return r.list(path, depth)
}

func (r *reader) object(path string, depth int) (any, error) {
	object := map[string]any{}
	for r.d.More() {
		token, err := r.d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string) // the decoder takes nothing else for a name
		at := join(path, name)
		if _, twice := object[name]; twice {
			return nil, &Error{Kind: Invalid, Code: "duplicate_field", Param: shorten(at), Detail: "is there twice."}
		}
		if object[name], err = r.value(at, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := r.d.Token() // the closing brace
	return object, err
}

func (r *reader) list(path string, depth int) (any, error) {
	list := []any{}
	for r.d.More() {
		v, err := r.value(join(path, strconv.Itoa(len(list))), depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := r.d.Token() // the closing bracket
	return list, err
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// halfSurrogate reports whether the JSON escapes a high surrogate without a low one after it, or the reverse.
func halfSurrogate(body []byte) bool {
	for i := bytes.IndexByte(body, '\\'); i >= 0 && i+1 < len(body); {
		next := i + 2
		if unit, ok := escapedUnit(body[i:]); ok {
			next = i + 6
			if unit >= 0xd800 && unit <= 0xdfff {
				low, paired := escapedUnit(body[next:])
				if unit >= 0xdc00 || !paired || low < 0xdc00 || low > 0xdfff {
					return true
				}
				next += 6
			}
		}
		step := bytes.IndexByte(body[min(next, len(body)):], '\\')
		if step < 0 {
			return false
		}
		i = next + step
	}
	return false
}

// escapedUnit reads \uXXXX at the start of s.
func escapedUnit(s []byte) (uint64, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	u, err := strconv.ParseUint(string(s[2:6]), 16, 16)
	return u, err == nil
}
