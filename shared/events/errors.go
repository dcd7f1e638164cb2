package events

import (
	"fmt"
	"strings"
)

// UnknownTypeError says that nobody here declared a type. Its events mean nothing to this service.
type UnknownTypeError struct{ Type string }

func (e *UnknownTypeError) Error() string {
	return fmt.Sprintf("events: type %q is unknown here", e.Type)
}

// UnknownVersionError says that a type is known, but not in this version: most likely the producer was
// deployed before this consumer.
type UnknownVersionError struct {
	Type  string
	Known []string // types of the same name that are known
}

func (e *UnknownVersionError) Error() string {
	return fmt.Sprintf("events: version of %q is unknown here, known are %s; deploy this service with the newer events, then replay",
		e.Type, strings.Join(e.Known, ", "))
}

// InvalidError says that data does not fit its type.
type InvalidError struct {
	Type string
	Err  error
}

func (e *InvalidError) Error() string {
	return fmt.Sprintf("events: data of %s does not fit: %v; its schema is schemas/%s.json", e.Type, e.Err, e.Type)
}

func (e *InvalidError) Unwrap() error { return e.Err }

// DeclarationError says that a type is declared in a way that cannot work. It is a fault of the program.
type DeclarationError struct{ Type, Reason string }

func (e *DeclarationError) Error() string {
	return fmt.Sprintf("events: declaration of %q: %s", e.Type, e.Reason)
}

// NotCloudEventError says that a record is not a CloudEvent in binary mode as [Headers] writes it.
type NotCloudEventError struct {
	Header string // which header is missing or malformed
	Reason string
}

func (e *NotCloudEventError) Error() string {
	return fmt.Sprintf("events: not a CloudEvent in binary mode: header %s %s", e.Header, e.Reason)
}

// FieldError says what is wrong with a field of data.
type FieldError struct{ Field, Reason string }

func (e *FieldError) Error() string { return fmt.Sprintf("field %s %s", e.Field, e.Reason) }
