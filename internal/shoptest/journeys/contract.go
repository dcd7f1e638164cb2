package journeys

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/feira-shop/feira/internal/shoptest"
	"github.com/feira-shop/feira/shared/events"
)

// Contract reads every topic with a client that knows nothing of the shop: each record is JSON as its schema says, with
// the attributes of CloudEvents in its headers, and in each partition an unbroken chain; see [OnKafka]. It runs when the
// [Together] have ended.
func Contract(t *testing.T, s *shoptest.Shop, repeats bool) {
	t.Helper()
	types := OnKafka(t, s, repeats)
	for _, e := range []events.Event{
		events.OrderPlaced{}, events.OrderHeld{}, events.OrderReleased{}, events.OrderCancelled{}, events.OrderRefundFailed{},
		events.PaymentDeclined{}, events.PaymentCaptureFailed{}, events.PaymentVoided{}, events.PaymentRefunded{},
		events.AccountSpendClosed{}, events.StockRefused{}, events.StockReleased{}, events.PurchaseHeld{}, events.PointsReversed{}, events.ProductChanged{},
	} {
		if types[e.EventType()] == 0 {
			t.Errorf("no %s was published, so the test proves little", e.EventType())
		}
	}
}

// OnKafka holds all that is on Kafka to the contract and to the stores, as [Contract] does, and gives how many records
// of each type there are. Where relays or brokers were killed, or were so slow that a relay sent again, records may be
// repeated; their first occurrences are in order all the same, and none is missing.
func OnKafka(t *testing.T, s *shoptest.Shop, repeats bool) map[string]int {
	t.Helper()
	Published(t, s)
	c := &reader{
		repeats: repeats, schemas: map[string]*validator.Schema{}, ids: map[string]bool{}, last: map[place]int64{}, types: map[string]int{},
	}
	for _, topic := range events.Topics() {
		if topic.Owner == "" {
			continue // anybody may write to it, and nobody does
		}
		records := readAll(t, s, topic.Name)
		if len(records) == 0 {
			t.Errorf("topic %s is empty", topic.Name)
		}
		for _, r := range records {
			if err := c.check(topic, r); err != nil {
				t.Fatalf("%s/%d at %d: %v\nheaders %s\nvalue %s", r.Topic, r.Partition, r.Offset, err, r.Headers, r.Value)
			}
		}
		everythingStored(t, s, topic, c.ids)
	}
	return c.types
}

// Published waits until every order has come to its end, the first windows of time have closed, and no store has anything
// that its relay has not sent.
func Published(t *testing.T, s *shoptest.Shop) {
	t.Helper()
	shoptest.Eventually(t, "everything is published", func(ctx context.Context) error {
		if report, err := s.Examine(ctx, time.Minute, 1); err != nil || len(report.Open) > 0 {
			return fmt.Errorf("%d orders are open, %w", len(report.Open), err)
		}
		var closed int
		if err := s.Pool("analytics").QueryRow(ctx, "select count(*) from account_spend").Scan(&closed); err != nil || closed == 0 {
			return fmt.Errorf("%d windows have closed, %w", closed, err)
		}
		for _, d := range s.Services {
			var unsent int
			const sql = "select count(*) from events where position > (select max(position) from relay_cursor)"
			if err := s.Pool(d.Name).QueryRow(ctx, sql).Scan(&unsent); err != nil || unsent > 0 {
				return fmt.Errorf("the outbox of %s holds %d events, %w", d.Name, unsent, err)
			}
		}
		return nil
	})
}

// readAll reads a topic from its beginning to where it ends now.
func readAll(t *testing.T, s *shoptest.Shop, topic string) []*kgo.Record {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Kafka.Brokers...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	missing := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			missing[o.Partition] = o.Offset
		}
	})
	var all []*kgo.Record
	for len(missing) > 0 {
		fetched := client.PollFetches(ctx)
		if err := fetched.Err(); err != nil {
			t.Fatalf("read %s: %v", topic, err)
		}
		fetched.EachRecord(func(r *kgo.Record) {
			all = append(all, r)
			if end, more := missing[r.Partition]; more && r.Offset >= end-1 {
				delete(missing, r.Partition)
			}
		})
	}
	return all
}

type place struct {
	topic     string
	partition int32
}

// reader is a stranger who knows the contract only.
type reader struct {
	repeats bool // may be there
	schemas map[string]*validator.Schema
	ids     map[string]bool
	last    map[place]int64 // sequence
	types   map[string]int
}

func (c *reader) check(topic events.Topic, r *kgo.Record) error {
	h := map[string]string{}
	for _, header := range r.Headers {
		h[header.Key] = string(header.Value)
	}
	value, err := validator.UnmarshalJSON(bytes.NewReader(r.Value))
	if err != nil {
		return fmt.Errorf("the value is no JSON: %w", err)
	}
	at, err := time.Parse(time.RFC3339Nano, h["ce_time"])
	if err != nil || at.Location() != time.UTC {
		return fmt.Errorf("ce_time is %q: %w", h["ce_time"], err)
	}
	if h["ce_specversion"] != "1.0" || h["ce_source"] != "/feira/"+topic.Owner || h["content-type"] != "application/json" || h["ce_id"] == "" {
		return fmt.Errorf("the headers are not those of a CloudEvent of %s", topic.Owner)
	}
	if h["ce_type"] == events.TickType {
		if _, numbered := h["ce_sequence"]; numbered || !topic.Ticks || string(r.Value) != "{}" {
			return fmt.Errorf("not as a tick should be")
		}
		return nil
	}
	if err := c.schema(h["ce_type"], value); err != nil {
		return err
	}
	c.types[h["ce_type"]]++
	return c.attributes(topic, r, h)
}

func (c *reader) attributes(topic events.Topic, r *kgo.Record, h map[string]string) error {
	sequence, err := strconv.ParseInt(h["ce_sequence"], 10, 64)
	if err != nil {
		return err
	}
	p := place{r.Topic, r.Partition}
	before := c.last[p]
	if c.repeats && c.ids[h["ce_id"]] && sequence <= before {
		return nil
	}
	id, err := uuid.Parse(h["ce_id"])
	if err != nil || id.Version() != 7 || c.ids[h["ce_id"]] {
		return fmt.Errorf("the id is no UUIDv7, or was there before: %w", err)
	}
	c.ids[h["ce_id"]] = true
	if !slices.ContainsFunc(events.Published(topic), func(e events.Event) bool { return e.EventType() == h["ce_type"] }) {
		return fmt.Errorf("the type is not one of %s", topic.Name)
	}
	if len(r.Key) == 0 || h["ce_subject"] == "" || h["ce_correlationid"] == "" || h["ce_recordedtime"] == "" {
		return fmt.Errorf("something is missing")
	}
	if holds := bytes.Contains(r.Value, []byte("@example.com")); holds != (h["ce_type"] == events.OrderPlaced{}.EventType()) {
		return fmt.Errorf("an e-mail address is where it should not be, or is not where it should be")
	}
	c.last[p] = sequence
	if previous, chained := h["ce_previous"]; chained == topic.Compacted || chained && previous != strconv.FormatInt(before, 10) || sequence <= before {
		return fmt.Errorf("the chain has %d after %d", sequence, before)
	}
	return nil
}

// schema holds a value to the published schema of its type.
func (c *reader) schema(kind string, value any) error {
	if c.schemas[kind] == nil {
		root, err := moduleRoot()
		if err != nil {
			return err
		}
		s, err := validator.NewCompiler().Compile(filepath.Join(root, "shared", "events", "schemas", kind+".json"))
		if err != nil {
			return err
		}
		c.schemas[kind] = s
	}
	return c.schemas[kind].Validate(value)
}

// moduleRoot is the folder of go.mod, whichever package's folder the test runs in.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir, nil
		}
		if filepath.Dir(dir) == dir {
			return "", errors.New("there is no go.mod above the test's folder")
		}
		dir = filepath.Dir(dir)
	}
	return "", err
}

// everythingStored fails the test if an event of the owner's store was not among the records.
func everythingStored(t *testing.T, s *shoptest.Shop, topic events.Topic, ids map[string]bool) {
	t.Helper()
	for _, r := range s.Events(t, topic.Owner) {
		if _, shared := events.TopicOf(r.Type); shared && !ids[r.ID] {
			text, _ := json.Marshal(r.Meta)
			t.Errorf("the %s at position %d was never published: %s", r.Type, r.Sequence, text)
		}
	}
}
