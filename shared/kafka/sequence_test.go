package kafka

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
)

// Sequence numbers are int32. Long before they wrap, the publisher takes a new producer id.
func TestSequenceNumbersNeverWrap(t *testing.T) {
	t.Parallel()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p, err := NewPublisher(Config{Brokers: c.ListenAddrs()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	send := func() {
		t.Helper()
		if _, err := p.Send(t.Context(), "orders", []Record{{Value: []byte("1")}, {Value: []byte("2")}}); err != nil {
			t.Fatal(err)
		}
	}
	send()
	first, at := *p.identity, place{"orders", 0}
	if first.next[at] != 2 {
		t.Fatalf("after two records the next sequence number is %d", first.next[at])
	}
	p.identity.next[at] = renewAt
	send()
	if p.identity.id == first.id || p.identity.next[at] != 2 {
		t.Errorf("producer id %d goes on at sequence number %d", p.identity.id, p.identity.next[at])
	}
}
