package events

import (
	"bytes"
	"encoding/json"
	"iter"
	"strconv"
	"time"
)

// IsPlain reports whether a record carries no header of CloudEvents, as records of programs that know nothing of them.
func IsPlain(headers iter.Seq2[[]byte, []byte]) bool {
	for k := range headers {
		if bytes.HasPrefix(k, []byte("ce_")) {
			return false
		}
	}
	return true
}

// FromPlain is a record without CloudEvents headers on a topic that takes such, see [Topic.Plain]. It is named by its
// place, "<topic>/<partition>/<offset>", and its times are the one that the broker stamped it with: only the data knows
// when it happened. Like [FromHeaders] it neither looks at the data nor copies it. An error says that the key is no text.
func FromPlain(t Topic, partition int32, offset int64, key, value []byte, stamped time.Time) (Recorded, error) {
	stamped = stamped.UTC()
	r := Recorded{
		Meta: Meta{
			ID:   t.Name + "/" + strconv.Itoa(int(partition)) + "/" + strconv.FormatInt(offset, 10),
			Time: stamped,
		},
		Type:       t.Plain,
		RecordedAt: stamped,
	}
	if value != nil {
		r.Data = json.RawMessage(value)
	}
	if !plain(key) {
		return r, &NotCloudEventError{textNames[textKey], "is not plain UTF-8 text"}
	}
	r.Key = string(key)
	return r, nil
}
