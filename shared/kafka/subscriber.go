package kafka

import (
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	wkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
)

// NewSubscriber makes the Watermill subscriber that runs a consumer group for an operator. The operator's tracer
// wraps the group's handler and reads the claims itself, so the messages made here are empty stand-ins.
//
// Subscribe fails when no broker answers: retry it outside. An error from Setup would make it reconnect without
// pause: never return one.
func NewSubscriber(cfg Config, group, instanceID string, tracer wkafka.SaramaTracer) (*wkafka.Subscriber, error) {
	return wkafka.NewSubscriber(wkafka.SubscriberConfig{
		Brokers:               cfg.Brokers,
		Unmarshaler:           standIn{},
		OverwriteSaramaConfig: ConsumerConfig(cfg, instanceID),
		ConsumerGroup:         group,
		ReconnectRetrySleep:   time.Second,
		Tracer:                tracer,
	}, watermill.NewSlogLogger(cfg.log()))
}

// standIn never fails: an unmarshaler that returned an error would end the claim, and the record would come back
// for ever.
type standIn struct{}

func (standIn) Unmarshal(*sarama.ConsumerMessage) (*message.Message, error) {
	return message.NewMessage("", nil), nil
}
