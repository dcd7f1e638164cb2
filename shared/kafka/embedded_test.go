package kafka_test

import (
	"errors"
	"net"
	"testing"

	"github.com/IBM/sarama"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/kafka/kafkatest"
)

func TestDataDirSurvivesARestart(t *testing.T) {
	t.Parallel()
	opts := kafka.EmbeddedOptions{Dir: t.TempDir(), Sync: true}
	first := start(t, opts)
	if err := kafka.EnsureTopics(t.Context(), first.Config(""), []events.Topic{events.Orders}, kafka.EnsureOptions{}); err != nil {
		t.Fatal(err)
	}
	var inUse *kafka.DataDirInUseError
	if _, err := kafka.StartEmbedded(t.Context(), opts); !errors.As(err, &inUse) || inUse.Dir != opts.Dir {
		t.Errorf("second broker on one directory: %v", err)
	}
	first.Close()
	first.Close() // a second time does nothing
	second := start(t, opts)
	if err := kafka.EnsureTopics(t.Context(), second.Config(""), []events.Topic{events.Orders}, kafka.EnsureOptions{CheckOnly: true}); err != nil {
		t.Errorf("after the restart: %v", err)
	}
}

func TestListensExactlyAsAsked(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := taken.Addr().String()
	var inUse *kafka.AddressInUseError
	dir := t.TempDir()
	if _, err := kafka.StartEmbedded(t.Context(), kafka.EmbeddedOptions{Listen: address, Dir: dir}); !errors.As(err, &inUse) || inUse.Address != address {
		t.Errorf("busy address: %v", err)
	}
	_ = taken.Close()
	e := start(t, kafka.EmbeddedOptions{Listen: address, Dir: dir}) // also: the failed start gave the directory back
	if got := e.Brokers(); len(got) != 1 || got[0] != address {
		t.Errorf("listens on %v, want %s", got, address)
	}
	free := start(t, kafka.EmbeddedOptions{Listen: "127.0.0.1:0"})
	if len(free.Brokers()) != 1 || free.Brokers()[0] == "127.0.0.1:0" {
		t.Errorf("port 0 gave %v", free.Brokers())
	}
	for _, bad := range []string{"0.0.0.0:9092", "9092", "127.0.0.1:x", "127.0.0.1:70000", "shop.example:1"} {
		if _, err := kafka.StartEmbedded(t.Context(), kafka.EmbeddedOptions{Listen: bad}); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}

func TestTopicsAreNotCreatedByUse(t *testing.T) {
	t.Parallel()
	b := kafkatest.New(t)
	client, err := kafka.NewClient(b.Config(""))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	if _, err := client.Partitions("odrers"); !errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
		t.Errorf("got %v", err)
	}
	if b.Cluster().TopicInfo("odrers") != nil {
		t.Error("the topic was created")
	}
}

func start(t *testing.T, opts kafka.EmbeddedOptions) *kafka.Embedded {
	t.Helper()
	e, err := kafka.StartEmbedded(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}
