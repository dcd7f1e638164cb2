package oracle

import "testing"

func TestDifference(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ is, should, want string }{
		{`{"a":1,"b":{"c":2}}`, `{"b": {"c": 2}, "a": 1}`, ""},
		{`{"a":1}`, `{"a":2}`, "a is 1, should be 2"},
		{`{"a":1}`, `{"a":1,"b":"x"}`, `b is nothing, should be "x"`},
		{`{"a":9007199254740993}`, `{"a":9007199254740992}`, "a is 9007199254740993, should be 9007199254740992"},
		{`[1]`, `[2]`, "it is [1], should be [2]"},
	} {
		if got := difference([]byte(c.is), []byte(c.should)); got != c.want {
			t.Errorf("%s and %s: %q, want %q", c.is, c.should, got, c.want)
		}
	}
}
