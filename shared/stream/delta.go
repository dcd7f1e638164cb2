package stream

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/feira-shop/feira/shared/events"
)

// AppendJSON may be implemented by states: it appends the state as encoding/json would write it, so that nothing is
// looked up by reflection for each key of each batch.
type AppendJSON interface {
	AppendJSON(b []byte) ([]byte, error)
}

// saved is a key's state in a delta row. One that is needed no more has no state and a time long past.
type saved[S any] struct {
	Key   string `json:"k"`
	Until int64  `json:"u,omitempty"`
	State S      `json:"s"`
}

// delta makes the row of a batch: what it changed, and what it carries forward. nil when there is nothing to write. The
// next batch overwrites the text.
func (p *processor[S]) delta(o *overlay[S]) ([]byte, error) {
	watermark := p.watermark(o.maxTime)
	if o.expires < watermark {
		return nil, nil // nothing of this partition is needed any more
	}
	o.carry(watermark)
	from, n := len(p.text), 0
	p.text = append(p.text, '[')
	for i := range o.changes {
		c := &o.changes[i]
		if !c.was && dead(c.now.until, watermark) {
			continue // it came and went
		}
		if err := p.write(&c.now, watermark); err != nil {
			return nil, err
		}
		n++
	}
	for i := range o.carried {
		c := &o.carried[i]
		c.now.state = p.trimmed(c.now.state, watermark)
		if err := p.write(&c.now, watermark); err != nil {
			return nil, err
		}
		n++
	}
	if n == 0 {
		return nil, nil
	}
	p.text[len(p.text)-1] = ']'
	o.row = &row{seq: o.base.log.next, expires: o.expires, bytes: len(p.text) - from, places: make([]place, 0, n)}
	return slices.Clip(p.text[from:]), nil
}

func dead(until, watermark int64) bool { return until < watermark || until == 0 }

// write adds an entry to the row.
func (p *processor[S]) write(e *entry[S], watermark int64) (err error) {
	from := len(p.text)
	p.text, err = appendEntry(p.text, e, dead(e.until, watermark))
	p.text = append(p.text, ',')
	e.size = len(p.text) - from
	return err
}

// appendEntry writes an entry as [saved] is read.
func appendEntry[S any](b []byte, e *entry[S], dead bool) ([]byte, error) {
	b = events.AppendText(append(b, `{"k":`...), e.key)
	if dead {
		return append(b, '}'), nil
	}
	b = strconv.AppendInt(append(b, `,"u":`...), e.until, 10)
	b = append(b, `,"s":`...)
	var err error
	if s, ok := any(&e.state).(AppendJSON); ok {
		b, err = s.AppendJSON(b)
	} else {
		var text []byte
		text, err = json.Marshal(&e.state)
		b = append(b, text...)
	}
	return append(b, '}'), err
}

// fold enters a row of the log.
func (p *processor[S]) fold(s *shard[S], seq, expires int64, delta []byte) error {
	var list []saved[S]
	if err := json.Unmarshal(delta, &list); err != nil {
		return err
	}
	r := &row{seq: seq, expires: expires, bytes: len(delta), places: make([]place, 0, len(list))}
	watermark := p.watermark(s.maxTime)
	s.log.append(r)
	for _, sv := range list {
		at, there := s.keys.find(sv.Key)
		e := entry[S]{key: sv.Key, state: sv.State, until: sv.Until, home: r, size: r.bytes / len(list)}
		if dead(e.until, watermark) {
			if there {
				s.remove(at)
			}
			continue
		}
		if p.rule.Timer != nil {
			if e.timer = micros(p.rule.Timer(e.state)); e.timer != 0 {
				s.timers.add(timer{e.timer, sv.Key})
			}
		}
		p.plan(&e, watermark)
		r.places = append(r.places, s.put(&e, at, there, watermark))
	}
	s.retime()
	return nil
}
