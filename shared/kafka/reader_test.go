package kafka_test

import (
	"testing"

	"github.com/feira-shop/feira/shared/kafka"
)

func TestReaderReadsFromAnOffsetToTheEnd(t *testing.T) {
	t.Parallel()
	f := newFaulty(t, 1)
	p := newPublisher(t, f)
	if _, err := p.Send(t.Context(), topic, toPartitions(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)); err != nil {
		t.Fatal(err)
	}
	client, err := kafka.NewClient(f.config())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	if err := f.DeleteRecords(topic, 0, 2); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, first, count int64 }{{4, 4, 6}, {0, 2, 8}, {9, 9, 1}, {10, 10, 0}, {12, 12, 0}} {
		r, err := kafka.OpenReader(client, topic, 0, c.from)
		if err != nil {
			t.Fatal(err)
		}
		// What is written after the reader was opened is not its business.
		if _, err := p.Send(t.Context(), topic, toPartitions(1)); err != nil {
			t.Fatal(err)
		}
		next := c.first
		for {
			records, err := r.Next(t.Context(), 4)
			if err != nil {
				t.Fatal(err)
			}
			if len(records) == 0 {
				break
			}
			for _, m := range records {
				if m.Offset != next {
					t.Errorf("from %d: got offset %d, want %d", c.from, m.Offset, next)
				}
				next++
			}
		}
		if next != c.first+c.count || r.From != c.first || r.To != 10 {
			t.Errorf("from %d: read to %d of [%d, %d), want %d records from %d", c.from, next, r.From, r.To, c.count, c.first)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
