package relay

import (
	"github.com/IBM/sarama"

	"github.com/feira-shop/feira/shared/events"
)

// headersOf puts the bytes of all headers into one allocation.
func headersOf(hs []events.Header) []sarama.RecordHeader {
	size := 0
	for _, h := range hs {
		size += len(h.Key) + len(h.Value)
	}
	all := make([]byte, 0, size)
	bytes := func(s string) []byte {
		from := len(all)
		all = append(all, s...)
		return all[from:len(all):len(all)]
	}
	out := make([]sarama.RecordHeader, len(hs))
	for i, h := range hs {
		out[i] = sarama.RecordHeader{Key: bytes(h.Key), Value: bytes(h.Value)}
	}
	return out
}
