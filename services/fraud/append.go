package fraud

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/stream"
)

var _ stream.AppendJSON = Profile{}

// AppendJSON implements [stream.AppendJSON].
func (c Profile) AppendJSON(b []byte) ([]byte, error) {
	b = append(b, '{')
	b = appendList(b, "r", c.Recent, (*Purchase).append)
	b = appendList(b, "m", c.Minute, (*Bucket).append)
	b = appendList(b, "h", c.Hour, (*Bucket).append)
	var err error
	b = appendList(b, "a", c.Amounts, func(a *Amounts, b []byte) []byte {
		b, failed := a.append(b)
		if failed != nil {
			err = failed
		}
		return b
	})
	if c.First != 0 {
		b = appendInt(b, "f", c.First)
	}
	if c.Last != 0 {
		b = appendInt(b, "l", c.Last)
	}
	return append(b, '}'), err
}

func (p *Purchase) append(b []byte) []byte {
	b = p.Payment.appendJSON(append(b, `{"p":`...))
	b = p.Order.appendJSON(append(b, `,"o":`...))
	b = appendInt(b, "t", p.At)
	b = appendInt(b, "a", p.Amount)
	return append(events.AppendText(append(b, `,"c":`...), p.Currency.text()), '}')
}

func (k *Bucket) append(b []byte) []byte {
	b = appendInt(append(b, '{'), "i", k.Index)
	b = appendInt(b, "n", k.Payments)
	b = appendInt(b, "s", k.Sum)
	return append(events.AppendText(append(b, `,"c":`...), k.Currency.text()), '}')
}

func (a *Amounts) append(b []byte) ([]byte, error) {
	b = events.AppendText(append(b, `{"c":`...), a.Currency.text())
	b = appendInt(b, "n", a.Count)
	b, wrongMean := appendFloat(append(b, `,"m":`...), a.Mean)
	b, wrongSquares := appendFloat(append(b, `,"s":`...), a.Squares)
	if wrongMean == nil {
		wrongMean = wrongSquares
	}
	return append(b, '}'), wrongMean
}

// appendName begins a field, after a comma unless it is the first.
func appendName(b []byte, name string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return append(append(append(b, '"'), name...), `":`...)
}

func appendInt(b []byte, name string, n int64) []byte {
	return strconv.AppendInt(appendName(b, name), n, 10)
}

// appendFloat writes a number as encoding/json does; one that is none is its error.
func appendFloat(b []byte, f float64) ([]byte, error) {
	if size := math.Abs(f); f == 0 || 1e-6 <= size && size < 1e21 {
		return strconv.AppendFloat(b, f, 'f', -1, 64), nil
	}
	text, err := json.Marshal(f)
	return append(b, text...), err
}

// appendList writes a list that holds anything.
func appendList[T any](b []byte, name string, list []T, one func(*T, []byte) []byte) []byte {
	if len(list) == 0 {
		return b
	}
	b = append(appendName(b, name), '[')
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = one(&list[i], b)
	}
	return append(b, ']')
}
