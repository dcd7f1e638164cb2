package stream

import (
	"encoding/json"
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

// delta makes the row of a batch: what it changed, and what it carries forward. nil when there is nothing to write. It is
// overwritten by the next batch.
func (p *processor[S]) delta(o *overlay[S]) ([]byte, error) {
	watermark := p.watermark(o.maxTime)
	if o.expires < watermark {
		return nil, nil // nothing of this partition is needed any more
	}
	o.carry(watermark)
	r := &row{seq: o.base.log.next, expires: o.expires, keys: make([]string, 0, len(o.changes)+len(o.carried))}
	from := len(p.text)
	p.text = append(p.text, '[')
	for i := range o.changes {
		c := &o.changes[i]
		if !c.was && dead(c.now.until, watermark) {
			continue // it came and went
		}
		if err := p.write(r, c, watermark); err != nil {
			return nil, err
		}
	}
	for i := range o.carried {
		c := &o.carried[i]
		c.now.state = p.trimmed(c.now.state, watermark)
		if err := p.write(r, c, watermark); err != nil {
			return nil, err
		}
	}
	if len(r.keys) == 0 {
		return nil, nil
	}
	p.text[len(p.text)-1] = ']'
	r.bytes, o.row = len(p.text)-from, r
	return p.text[from:], nil
}

func dead(until, watermark int64) bool { return until < watermark || until == 0 }

// write adds a key to the row.
func (p *processor[S]) write(r *row, c *change[S], watermark int64) (err error) {
	from := len(p.text)
	p.text, err = appendEntry(p.text, c.key, &c.now, dead(c.now.until, watermark))
	if err != nil {
		return err
	}
	p.text = append(p.text, ',')
	c.size = len(p.text) - from
	r.keys = append(r.keys, c.key)
	return nil
}

// appendEntry writes an entry as [saved] is read.
func appendEntry[S any](b []byte, key string, e *entry[S], dead bool) ([]byte, error) {
	b = events.AppendText(append(b, `{"k":`...), key)
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
	r := &row{seq: seq, expires: expires, bytes: len(delta), keys: make([]string, 0, len(list))}
	watermark := p.watermark(s.maxTime)
	s.log.append(r)
	for _, sv := range list {
		e := entry[S]{state: sv.State, until: sv.Until, home: r, size: r.bytes / len(list)}
		if p.rule.Timer != nil {
			if e.timer = micros(p.rule.Timer(e.state)); e.timer != 0 {
				s.timers.add(timer{e.timer, sv.Key})
			}
		}
		p.plan(&e, watermark)
		r.keys = append(r.keys, sv.Key)
		s.put(sv.Key, e, watermark)
	}
	s.retime()
	return nil
}
