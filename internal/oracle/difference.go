package oracle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// difference names the fields in which two JSON values differ, with both values; "" when they are equal. It compares
// values, not their layout.
func difference(is, should []byte) string {
	if bytes.Equal(is, should) {
		return ""
	}
	have, want, ok := fields(is, should)
	if !ok {
		return fmt.Sprintf("it is %s, should be %s", is, should)
	}
	names := maps.Clone(have)
	maps.Copy(names, want)
	var all []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		h, w := canonical(have[name]), canonical(want[name])
		if h != w {
			all = append(all, fmt.Sprintf("%s is %s, should be %s", name, h, w))
		}
	}
	return strings.Join(all, "; ")
}

func fields(a, b []byte) (x, y map[string]json.RawMessage, ok bool) {
	ok = json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil
	return x, y, ok
}

// canonical writes a value with its object's names sorted; "nothing" for a field that is not there.
func canonical(raw json.RawMessage) string {
	if raw == nil {
		return "nothing"
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return string(raw)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return string(raw)
	}
	return string(b)
}
