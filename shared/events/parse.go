package events

import (
	"bytes"
	"encoding/json"
	"iter"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// FromHeaders reads the attributes of a record, the inverse of [Headers]. The data is not looked at and not
// copied: decode it with [Registry.Decode]. Headers it does not know are passed over; of repeated ones the last
// counts. A [*NotCloudEventError] says what is wrong; the record that comes with it holds what could be read.
func FromHeaders(key, value []byte, headers iter.Seq2[[]byte, []byte]) (Recorded, error) {
	p, _ := parsers.Get().(*parser) // handed to headers, it would be made on the heap for each record
	defer func() {
		*p = parser{}
		parsers.Put(p)
	}()
	p.texts[textKey] = key
	headers(func(k, v []byte) bool {
		p.header(k, v)
		return true
	})
	r := p.rec
	p.fill(&r)
	if value != nil {
		r.Data = json.RawMessage(value)
	}
	if p.err == nil {
		p.check(&r)
	}
	if p.err != nil {
		return r, p.err
	}
	return r, nil
}

// The attributes that are plain text.
const (
	textKey = iota
	textID
	textSource
	textType
	textSubject
	textCorrelation
	textCausation
	textActor
	textTraceparent
	texts
)

var textNames = [texts]string{"key (of the record)", HeaderID, HeaderSource, HeaderType, HeaderSubject,
	HeaderCorrelation, HeaderCausation, HeaderActor, HeaderTraceparent}

// parser collects what the headers of one record say. The first fault is kept.
type parser struct {
	rec     Recorded
	texts   [texts][]byte
	version bool
	err     *NotCloudEventError
}

var parsers = sync.Pool{New: func() any { return &parser{} }}

func (p *parser) fault(header, reason string) {
	if p.err == nil {
		p.err = &NotCloudEventError{header, reason}
	}
}

func (p *parser) header(key, v []byte) {
	switch string(key) {
	case HeaderSpecVersion:
		p.version = true
		if string(v) != specVersion {
			p.fault(HeaderSpecVersion, "is not "+specVersion)
		}
	case HeaderContentType:
		p.content(v)
	case HeaderTime:
		p.time(HeaderTime, v, &p.rec.Time)
	case HeaderRecorded:
		p.time(HeaderRecorded, v, &p.rec.RecordedAt)
	case HeaderSequence:
		p.number(HeaderSequence, v, &p.rec.Sequence, 1)
	case HeaderPrevious:
		p.rec.HasPrevious = true
		p.number(HeaderPrevious, v, &p.rec.Previous, 0)
	default:
		p.text(key, v)
	}
}

func (p *parser) text(key, v []byte) {
	switch string(key) {
	case HeaderID:
		p.texts[textID] = v
	case HeaderSource:
		p.texts[textSource] = v
	case HeaderType:
		p.texts[textType] = v
	case HeaderSubject:
		p.texts[textSubject] = v
	case HeaderCorrelation:
		p.texts[textCorrelation] = v
	case HeaderCausation:
		p.texts[textCausation] = v
	case HeaderActor:
		p.texts[textActor] = v
	case HeaderTraceparent:
		p.texts[textTraceparent] = v
	}
}

// content takes JSON with or without parameters; structured mode has a media type of its own.
func (p *parser) content(v []byte) {
	media, _, _ := bytes.Cut(v, []byte(";"))
	if !bytes.EqualFold(bytes.TrimSpace(media), []byte(contentType)) {
		p.fault(HeaderContentType, "is not "+contentType)
	}
}

func (p *parser) time(header string, v []byte, t *time.Time) {
	if err := t.UnmarshalText(v); err != nil {
		p.fault(header, "is not a time of RFC 3339")
		return
	}
	*t = t.UTC()
}

func (p *parser) number(header string, v []byte, n *int64, least int64) {
	i, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil || i < least {
		p.fault(header, "is not an integer of at least "+strconv.FormatInt(least, 10))
		return
	}
	*n = i
}

// fill turns the texts into strings that share one allocation. Types and sources of the shop are not copied at all.
func (p *parser) fill(r *Recorded) {
	r.Type, r.Source = wellKnown[string(p.texts[textType])], wellKnown[string(p.texts[textSource])]
	size := 0
	for i, v := range p.texts {
		switch {
		case !plain(v):
			p.fault(textNames[i], "is not plain UTF-8 text")
			p.texts[i] = nil
		case i == textType && r.Type != "", i == textSource && r.Source != "":
			p.texts[i] = nil
		}
		size += len(p.texts[i])
	}
	var all strings.Builder
	all.Grow(size)
	cut := func(i int) string {
		from := all.Len()
		all.Write(p.texts[i])
		return all.String()[from:]
	}
	if r.Type == "" {
		r.Type = cut(textType)
	}
	if r.Source == "" {
		r.Source = cut(textSource)
	}
	r.Key, r.ID, r.Subject = cut(textKey), cut(textID), cut(textSubject)
	r.Correlation, r.Causation = cut(textCorrelation), cut(textCausation)
	r.Actor, r.Traceparent = cut(textActor), cut(textTraceparent)
}

// check demands what CloudEvents requires, and the time, which every reader here needs.
func (p *parser) check(r *Recorded) {
	switch {
	case !p.version:
		p.fault(HeaderSpecVersion, "is missing")
	case r.ID == "":
		p.fault(HeaderID, "is missing")
	case r.Source == "":
		p.fault(HeaderSource, "is missing")
	case r.Type == "":
		p.fault(HeaderType, "is missing")
	case r.Time.IsZero():
		p.fault(HeaderTime, "is missing")
	case r.HasPrevious && r.Previous >= r.Sequence:
		p.fault(HeaderPrevious, "is not below "+HeaderSequence)
	}
}

// plain reports whether v can be kept as text anywhere: valid UTF-8 without NUL, which Postgres refuses.
func plain(v []byte) bool { return utf8.Valid(v) && bytes.IndexByte(v, 0) < 0 }

// wellKnown holds the types and sources of the shop, so that reading a record does not copy them.
var wellKnown = func() map[string]string {
	m := map[string]string{TickType: TickType}
	for _, p := range published {
		m[p.topic.Source()] = p.topic.Source()
		for _, e := range p.types {
			m[e.EventType()] = e.EventType()
		}
	}
	return m
}()
