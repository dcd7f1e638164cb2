package kafka

import "github.com/IBM/sarama"

// murmur2 has no state for records with a key, so one serves all.
var murmur2 = sarama.NewMurmur2Partitioner("")

// Partition is the partition at which an event of a store is published: where Java's producers put its key. An
// event without a key is spread by its position, because it must come to the same partition each time it is sent:
// in another one it would not be recognised as a duplicate.
func Partition(key string, position int64, partitions int32) int32 {
	if key == "" {
		return int32(position % int64(partitions))
	}
	// The partitioner of sarama cannot fail on a key that is a string.
	p, _ := murmur2.Partition(&sarama.ProducerMessage{Key: sarama.StringEncoder(key)}, partitions)
	return p
}
