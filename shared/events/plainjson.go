package events

import (
	"bytes"
	"reflect"
	"time"
	"unicode/utf8"
)

// plainJSON reads JSON by a [plan]. It is over once something is there that the plan does not foresee.
type plainJSON struct {
	data []byte
	at   int
}

// read fills v, a zero value; false: encoding/json must read the data, into another one.
func (p *plan) read(data []byte, v reflect.Value) bool {
	j := plainJSON{data: data}
	if !j.value(p, v) {
		return false
	}
	j.space()
	return j.at == len(j.data)
}

func (j *plainJSON) space() {
	for j.at < len(j.data) && (j.data[j.at] == ' ' || j.data[j.at] == '\n' || j.data[j.at] == '\t' || j.data[j.at] == '\r') {
		j.at++
	}
}

// is takes c, with the space before it, if it is next.
func (j *plainJSON) is(c byte) bool {
	j.space()
	if j.at == len(j.data) || j.data[j.at] != c {
		return false
	}
	j.at++
	return true
}

func (j *plainJSON) value(p *plan, v reflect.Value) bool {
	switch p.kind {
	case planObject:
		return j.object(p, v)
	case planList:
		return j.list(p, v)
	case planText:
		text, ok := j.text()
		if ok {
			v.SetString(string(text))
		}
		return ok
	case planNumber:
		n, ok := j.number()
		if ok && !v.OverflowInt(n) {
			v.SetInt(n)
			return true
		}
	case planBool:
		b, ok := j.bool()
		if ok {
			v.SetBool(b)
		}
		return ok
	case planTime:
		text, ok := j.text()
		if t, is := v.Addr().Interface().(*time.Time); ok && is {
			return t.UnmarshalText(text) == nil
		}
	}
	return false
}

func (j *plainJSON) object(p *plan, v reflect.Value) bool {
	if !j.is('{') {
		return false
	}
	if j.is('}') {
		return true
	}
	seen, next := uint64(0), 0
	for {
		name, ok := j.text()
		if !ok || !j.is(':') {
			return false
		}
		i := p.field(name, next)
		if i < 0 || seen&(1<<i) != 0 {
			return false
		}
		seen |= 1 << i
		next = i + 1
		f := v
		for _, n := range p.fields[i].index {
			f = f.Field(n)
		}
		if !j.value(p.fields[i].plan, f) {
			return false
		}
		if !j.is(',') {
			return j.is('}')
		}
	}
}

// field finds a field, likely the next one.
func (p *plan) field(name []byte, next int) int {
	for i := range p.fields {
		n := (next + i) % len(p.fields)
		if p.fields[n].name == string(name) {
			return n
		}
	}
	return -1
}

func (j *plainJSON) list(p *plan, v reflect.Value) bool {
	if !j.is('[') {
		return false
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	if j.is(']') {
		return true
	}
	for n := 0; ; n++ {
		v.Grow(1)
		v.SetLen(n + 1)
		item := v.Index(n)
		item.SetZero()
		if !j.value(p.item, item) {
			return false
		}
		if !j.is(',') {
			return j.is(']')
		}
	}
}

// text takes a string without escapes.
func (j *plainJSON) text() ([]byte, bool) {
	if !j.is('"') {
		return nil, false
	}
	end := bytes.IndexByte(j.data[j.at:], '"')
	if end < 0 {
		return nil, false
	}
	text := j.data[j.at : j.at+end]
	j.at += end + 1
	ascii := true
	for _, c := range text {
		if c < ' ' || c == '\\' {
			return nil, false
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	return text, ascii || utf8.Valid(text)
}

// mostDigits of a number are sure to fit.
const mostDigits = 18

// number takes a whole number; a fraction or an exponent behind it is not what is next then.
func (j *plainJSON) number() (int64, bool) {
	negative := j.is('-')
	if !negative {
		j.space()
	}
	from, n := j.at, int64(0)
	for j.at < len(j.data) && '0' <= j.data[j.at] && j.data[j.at] <= '9' {
		n = n*10 + int64(j.data[j.at]-'0')
		j.at++
	}
	digits := j.at - from
	if digits == 0 || digits > mostDigits || digits > 1 && j.data[from] == '0' {
		return 0, false
	}
	if negative {
		n = -n
	}
	return n, true
}

func (j *plainJSON) bool() (is, ok bool) {
	j.space()
	rest := j.data[j.at:]
	switch {
	case bytes.HasPrefix(rest, []byte("true")):
		j.at += len("true")
		return true, true
	case bytes.HasPrefix(rest, []byte("false")):
		j.at += len("false")
		return false, true
	}
	return false, false
}
