package web

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ETag writes a version as a strong entity tag: 3 becomes "3", with the quotes.
func ETag(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }

// Condition is what an If-Match or If-None-Match header asks for.
type Condition struct {
	header   string
	given    bool
	any      bool // *
	versions []int64
}

// IfMatch reads If-Match; nil is none. A weak tag never matches, as RFC 9110 demands.
func IfMatch(header *string) (Condition, error) { return condition("If-Match", header, false) }

// IfNoneMatch reads If-None-Match; nil is none. Weak tags match like strong ones.
func IfNoneMatch(header *string) (Condition, error) { return condition("If-None-Match", header, true) }

// Given reports whether the client sent the header.
func (c Condition) Given() bool { return c.given }

// Names reports whether the condition names the version; 0 stands for a resource that does not exist, which
// nothing names, not even *.
func (c Condition) Names(version int64) bool {
	return version > 0 && (c.any || slices.Contains(c.versions, version))
}

// Version returns the only version that an If-Match names, to demand it when the change is written. False when
// there is none, or any will do.
func (c Condition) Version() (int64, bool) {
	if len(c.versions) != 1 {
		return 0, false
	}
	return c.versions[0], true
}

// Check returns an error of kind [PreconditionFailed] unless the condition holds for a resource at this version:
// If-Match must name it, If-None-Match must not. Without the header it always holds.
func (c Condition) Check(version int64) error {
	if !c.given || c.Names(version) == (c.header == "If-Match") {
		return nil
	}
	e := &Error{Kind: PreconditionFailed, Param: c.header}
	if version == 0 {
		e.Detail = "The resource does not exist."
	}
	return e
}

func condition(name string, header *string, weak bool) (Condition, error) {
	if header == nil || strings.TrimSpace(*header) == "" {
		return Condition{header: name}, nil
	}
	c := Condition{header: name, given: true}
	if strings.TrimSpace(*header) == "*" {
		c.any = true
		return c, nil
	}
	for tag := range strings.SplitSeq(*header, ",") {
		opaque, isWeak := strings.CutPrefix(strings.TrimSpace(tag), "W/")
		if len(opaque) < 2 || opaque[0] != '"' || opaque[len(opaque)-1] != '"' {
			return Condition{}, InvalidParam(name, fmt.Sprintf(`must be * or entity tags in quotes, such as %s.`, ETag(3)))
		}
		version, err := strconv.ParseInt(opaque[1:len(opaque)-1], 10, 64)
		if err == nil && version > 0 && (weak || !isWeak) {
			c.versions = append(c.versions, version)
		} // any other tag is valid and names no version of ours
	}
	return c, nil
}
