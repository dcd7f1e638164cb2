package web

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 255)
	for header, want := range map[string]string{
		"abc": "abc", `"abc"`: "abc", " abc ": "abc", `"a\"b\\c"`: `a"b\c`, "a b": "a b",
		long: long, `"` + long + `"`: long, `a"b`: `a"b`,
	} {
		if got, err := IdempotencyKey(header); err != nil || got != want {
			t.Errorf("%s: %q, %v", header, got, err)
		}
	}
	for _, header := range []string{"", " ", `""`, `"`, `"abc`, `"a"b`, `"a\b"`, `"a\`, long + "k", "é", "a\x00", "a\x7f"} {
		var e *Error
		if got, err := IdempotencyKey(header); !errors.As(err, &e) || e.Kind != Invalid || e.Param != "Idempotency-Key" {
			t.Errorf("%q: %q, %v", header, got, err)
		}
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	for prefer, want := range map[string]time.Duration{
		"wait=5": 5, "wait=10": 10, "wait=11": 10, "wait=2147483647": 10, "Wait = 3": 3, `wait="4"`: 4,
		"respond-async, wait=2": 2, "wait=2;x=y": 2, "wait=1, wait=9": 1,
		"": 0, "wait": 0, "wait=": 0, "wait=0": 0, "wait=-1": 0, "wait=1.5": 0, "wait=99999999999": 0, "waits=5": 0,
	} {
		wait, applied := Wait(&prefer)
		if wait != want*time.Second || (applied != nil) != (want > 0) {
			t.Errorf("%q: %v, %v", prefer, wait, applied)
		}
	}
	eleven := "wait=11"
	if _, applied := Wait(&eleven); *applied != "wait=10" {
		t.Errorf("the cap is not echoed: %s", *applied)
	}
	if wait, applied := Wait(nil); wait != 0 || applied != nil {
		t.Error("no header")
	}
}

func TestConditions(t *testing.T) {
	t.Parallel()
	type row struct {
		header  string
		version int64
		match   bool // If-Match holds
		none    bool // If-None-Match holds
	}
	for _, c := range []row{
		{`"3"`, 3, true, false}, {`"3"`, 4, false, true}, {`"1", "3"`, 3, true, false}, {`W/"3"`, 3, false, false},
		{"*", 3, true, false}, {"*", 0, false, true}, {`"0"`, 0, false, true}, {`"abc"`, 3, false, true}, {`"-3"`, 3, false, true},
	} {
		m, err := IfMatch(&c.header)
		if err != nil {
			t.Fatal(err)
		}
		n, err := IfNoneMatch(&c.header)
		if err != nil {
			t.Fatal(err)
		}
		for name, got := range map[string][2]any{"If-Match": {m.Check(c.version), c.match}, "If-None-Match": {n.Check(c.version), c.none}} {
			err, holds := got[0], got[1].(bool)
			var e *Error
			if (err == nil) != holds || err != nil && (!errors.As(err.(error), &e) || e.Kind != PreconditionFailed || e.Param != name) {
				t.Errorf("%s: %s at version %d: %v", name, c.header, c.version, err)
			}
		}
	}
	for _, header := range []string{"3", `"3`, `"`, `"3",`, "**"} {
		var e *Error
		if _, err := IfMatch(&header); !errors.As(err, &e) || e.Kind != Invalid || e.Param != "If-Match" {
			t.Errorf("%s: %v", header, err)
		}
	}
	none, err := IfMatch(nil)
	if err != nil || none.Given() || none.Check(0) != nil {
		t.Errorf("no header: %v", err)
	}
	one := ETag(3)
	c, err := IfMatch(&one)
	if v, ok := c.Version(); err != nil || !ok || v != 3 {
		t.Errorf("%d, %v, %v", v, ok, err)
	}
}

func TestCursorsAndLimits(t *testing.T) {
	t.Parallel()
	type place struct {
		At time.Time `json:"at"`
		ID string    `json:"id"`
	}
	want := place{time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), "x"}
	cursor, err := EncodeCursor(want)
	if err != nil {
		t.Fatal(err)
	}
	var got place
	if err := DecodeCursor(&cursor, &got); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"x", "e30=", "eyJvdGhlciI6MX0", "bnVsbA!"} {
		var e *Error
		if err := DecodeCursor(&bad, &got); !errors.As(err, &e) || e.Param != "after" || e.Code != "invalid_cursor" {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if err := DecodeCursor(nil, &got); err != nil || got != want {
		t.Error("the first page has no cursor")
	}
	for given, want := range map[int]int{0: DefaultLimit, -1: DefaultLimit, 7: 7, 1000: MaxLimit} {
		if got := Limit(&given); got != want {
			t.Errorf("limit %d: %d", given, got)
		}
	}
	if Limit(nil) != DefaultLimit {
		t.Error("no limit")
	}
}
