// Package kafkatest gives each test a broker of its own.
package kafkatest

import (
	"context"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/kafka"
)

// New starts an embedded broker in memory with the topics created. It is closed when the test ends.
func New(tb testing.TB, topics ...events.Topic) *kafka.Embedded {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	e, err := kafka.StartEmbedded(ctx, kafka.EmbeddedOptions{})
	if err != nil {
		tb.Fatalf("start a broker: %v", err)
	}
	tb.Cleanup(e.Close)
	if err := kafka.EnsureTopics(ctx, e.Config("kafkatest"), topics, kafka.EnsureOptions{}); err != nil {
		tb.Fatalf("create topics: %v", err)
	}
	return e
}
