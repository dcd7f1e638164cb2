package events

import (
	"strconv"
	"time"
)

// Header is one header of a Kafka record.
type Header struct{ Key, Value string }

// Names of the headers; see the package comment for what they carry.
const (
	HeaderSpecVersion = "ce_specversion"
	HeaderID          = "ce_id"
	HeaderSource      = "ce_source"
	HeaderType        = "ce_type"
	HeaderTime        = "ce_time"
	HeaderSubject     = "ce_subject"
	HeaderSequence    = "ce_sequence"
	HeaderPrevious    = "ce_previous"
	HeaderRecorded    = "ce_recordedtime"
	HeaderCorrelation = "ce_correlationid"
	HeaderCausation   = "ce_causationid"
	HeaderActor       = "ce_actor"
	HeaderTraceparent = "traceparent"
	HeaderContentType = "content-type"
)

const (
	specVersion = "1.0"
	contentType = "application/json"
	maxHeaders  = 14
)

// Headers writes an event's attributes as headers of its record; the record's value is r.Data as it is, its
// key r.Key. Attributes without a value are left out.
func Headers(r Recorded) []Header {
	return AppendHeaders(make([]Header, 0, maxHeaders), r)
}

// AppendHeaders is [Headers] into a slice that may be used again.
func AppendHeaders(hs []Header, r Recorded) []Header {
	// Times and numbers are written into one string that the headers share: one allocation instead of four.
	var scratch [128]byte
	buf := r.Time.UTC().AppendFormat(scratch[:0], time.RFC3339Nano)
	afterTime := len(buf)
	buf = r.RecordedAt.UTC().AppendFormat(buf, time.RFC3339Nano)
	afterRecorded := len(buf)
	buf = strconv.AppendInt(buf, r.Sequence, 10)
	afterSequence := len(buf)
	buf = strconv.AppendInt(buf, r.Previous, 10)
	text := string(buf)

	hs = append(hs,
		Header{HeaderSpecVersion, specVersion},
		Header{HeaderID, r.ID},
		Header{HeaderSource, r.Source},
		Header{HeaderType, r.Type},
		Header{HeaderTime, text[:afterTime]},
	)
	hs = appendText(hs, HeaderSubject, r.Subject)
	if r.Sequence != 0 {
		hs = append(hs, Header{HeaderSequence, text[afterRecorded:afterSequence]})
	}
	if r.HasPrevious {
		hs = append(hs, Header{HeaderPrevious, text[afterSequence:]})
	}
	if !r.RecordedAt.IsZero() {
		hs = append(hs, Header{HeaderRecorded, text[afterTime:afterRecorded]})
	}
	hs = appendText(hs, HeaderCorrelation, r.Correlation)
	hs = appendText(hs, HeaderCausation, r.Causation)
	hs = appendText(hs, HeaderActor, r.Actor)
	hs = appendText(hs, HeaderTraceparent, r.Traceparent)
	return append(hs, Header{HeaderContentType, contentType})
}

func appendText(hs []Header, key, value string) []Header {
	if value == "" {
		return hs
	}
	return append(hs, Header{key, value})
}
