package analytics

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/feira-shop/feira/services/analytics/api"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/web"
)

// stranger writes to the topic of clicks as programs do that know nothing of the shop.
func (b *bed) stranger(values ...string) {
	b.t.Helper()
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V2_8_0_0
	cfg.Producer.RequiredAcks = sarama.WaitForAll
	cfg.Producer.Return.Successes = true
	producer, err := sarama.NewSyncProducer(b.broker.Brokers(), cfg)
	b.must(err)
	defer func() { b.must(producer.Close()) }()
	batch := make([]*sarama.ProducerMessage, len(values))
	for i, v := range values {
		batch[i] = &sarama.ProducerMessage{Topic: events.Clicks.Name, Value: sarama.StringEncoder(v)}
	}
	b.must(producer.SendMessages(batch))
}

// clicksAre reads the clicks of an action, of all time.
func (b *bed) clicksAre(action string) int64 {
	b.t.Helper()
	return read[api.ClickPage](b, "ana", "/v1/analytics/clicks?acao="+action).Total
}

// A thousand clicks of a program that knows nothing of the shop, and what is no click between them: the clicks count in
// their own minutes, however old, the rest is parked, and nothing stops.
func TestClicksOfStrangersCount(t *testing.T) {
	t.Parallel()
	b := newBed(t, Config{})
	var values []string
	for i := range 1000 {
		values = append(values, fmt.Sprintf(`{"id_usuario": %d, "acao": "clique", "timestamp": %d}`, i, 1711900000+i%120))
		if i == 500 {
			values = append(values, "clique!", `{"id_usuario": 1}`, "")
		}
	}
	b.stranger(values...)
	b.stranger(`{"id_usuario": "ana", "acao": "busca", "timestamp": 1711900000123}`)
	b.eventually("a thousand are counted", func() bool { return b.clicksAre("clique") == 1000 && b.clicksAre("busca") == 1 })
	if all := read[api.ClickPage](b, "ana", "/v1/analytics/clicks"); all.Total != 1001 || len(all.Data) != 4 || all.HasMore {
		t.Errorf("all clicks are %+v", all)
	}
	// 2024-03-31 15:46:40 is 1711900000: 20 seconds of its minute, a whole one, and 40 seconds.
	page := read[api.ClickPage](b, "ana", "/v1/analytics/clicks?acao=clique&from=2024-03-31T15:47:00Z&to=2024-03-31T15:49:00Z&limit=1")
	if page.Total != 1000-180 || len(page.Data) != 1 || !page.HasMore || page.Data[0].Minute.Format("15:04") != "15:47" {
		t.Errorf("a period is %+v", page)
	}
	rest := read[api.ClickPage](b, "ana", "/v1/analytics/clicks?acao=clique&from=2024-03-31T15:47:00Z&to=2024-03-31T15:49:00Z&limit=1&after="+page.NextCursor)
	if rest.HasMore || len(rest.Data) != 1 || rest.Data[0].Clicks+page.Data[0].Clicks != page.Total {
		t.Errorf("its second page is %+v", rest)
	}
	b.eventually("what is no click is parked", func() bool {
		var parked int
		b.must(b.db.Pool.QueryRow(t.Context(), "select count(*) from parked where operator = 'analytics.clicks'").Scan(&parked))
		return parked == 3
	})
}

// A click by the API is the very JSON on the topic, and counts as any other.
func TestClicksByTheAPI(t *testing.T) {
	t.Parallel()
	b := newBed(t, Config{})
	for _, body := range []string{
		`{"id_usuario":42,"acao":"clique","timestamp":1711900000}`, `{"acao":"clique","timestamp":1711900000.5,"id_usuario":"ana"}`,
		`{"id_usuario":42.0,"acao":"clique","timestamp":1711900000000}`,
	} {
		if w := b.call("ana", http.MethodPost, "/v1/clicks", body); w.Code != http.StatusAccepted || w.Body.Len() > 0 {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
	b.eventually("they count", func() bool { return b.clicksAre("clique") == 3 })
	consumer, err := sarama.NewConsumer(b.broker.Brokers(), nil)
	b.must(err)
	defer func() { _ = consumer.Close() }()
	var found []string
	for p := range events.Clicks.Partitions {
		claim, err := consumer.ConsumePartition(events.Clicks.Name, p, sarama.OffsetOldest)
		b.must(err)
		for range claim.HighWaterMarkOffset() {
			m := <-claim.Messages()
			if len(m.Headers) > 0 {
				t.Errorf("%s has headers", m.Value)
			}
			found = append(found, string(m.Key)+" "+string(m.Value))
		}
		_ = claim.Close()
	}
	want := `42 {"id_usuario":42,"acao":"clique","timestamp":1711900000}`
	if all := strings.Join(found, "\n"); strings.Count(all, want) != 2 || !strings.Contains(all, `ana {"id_usuario":"ana","acao":"clique","timestamp":1711900000.5}`) {
		t.Errorf("the topic has\n%s", all)
	}
}

// What is asked wrongly is answered by name, and writes nothing.
func TestWhatTheAPIRefuses(t *testing.T) {
	t.Parallel()
	b := newBed(t, Config{})
	long := strings.Repeat("a", events.MostActed+1)
	for body, param := range map[string]string{
		`{"acao":"a","timestamp":1}`: "id_usuario", `{"id_usuario":1.5,"acao":"a","timestamp":1}`: "id_usuario",
		`{"id_usuario":true,"acao":"a","timestamp":1}`: "id_usuario", `{"id_usuario":"` + long + `","acao":"a","timestamp":1}`: "id_usuario",
		`{"id_usuario":9223372036854775808,"acao":"a","timestamp":1}`: "id_usuario", `{"id_usuario":1,"timestamp":1}`: "acao",
		`{"id_usuario":1,"acao":"","timestamp":1}`: "acao", `{"id_usuario":1,"acao":"a\u0000","timestamp":1}`: "acao",
		`{"id_usuario":1,"acao":"` + long + `","timestamp":1}`: "acao", `{"id_usuario":1,"acao":"a"}`: "timestamp",
		`{"id_usuario":1,"acao":"a","timestamp":"1"}`: "timestamp", `{"id_usuario":1,"acao":"a","timestamp":-1}`: "timestamp",
		`{"id_usuario":1,"acao":"a","timestamp":1e14}`: "timestamp", `{"id_usuario":1,"acao":"a","timestamp":1,"price":1}`: "price",
	} {
		refused(t, b, http.MethodPost, "/v1/clicks", body, param)
	}
	for path, param := range map[string]string{
		"clicks?acao=" + long: "acao", "clicks?from=yesterday": "from", "clicks?from=2024-01-01T00:00:00Z&to=2024-02-01T00:00:01Z": "to",
		"conversion?from=2024-01-02T00:00:00Z&to=2024-01-02T00:00:00Z": "to", "conversion?from=2124-01-02T00:00:00Z": "from",
		"account-spend?account=%00": "account", "account-spend?limit=101": "limit", "account-spend?after=x": "after",
		"top-products?from=2024-01-01T00:00:00Z": "to", "top-products?to=x": "to", "conversion?limit=0": "limit",
	} {
		refused(t, b, http.MethodGet, "/v1/analytics/"+path, "", param)
	}
	if page := read[api.ClickPage](b, "ana", "/v1/analytics/clicks"); page.Total != 0 {
		t.Errorf("something was counted: %+v", page)
	}
}

func refused(t *testing.T, b *bed, method, path, body, param string) {
	t.Helper()
	w := b.call("ana", method, path, body)
	var p web.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatal(err)
	}
	if w.Code != http.StatusBadRequest || p.Param != param {
		t.Errorf("%s %s %s: %d %s", method, path, body, w.Code, w.Body)
	}
}

// Orders per click, minute by minute.
func TestConversion(t *testing.T) {
	t.Parallel()
	b := newBed(t, Config{})
	at := base()
	b.say(b.orders, at, events.OrderPlaced{Order: "o1", PlacedAt: at.Add(59 * time.Second)})
	b.say(b.orders, at, events.OrderPlaced{Order: "o2", PlacedAt: at.Add(3 * time.Minute)})
	for i := range 3 {
		b.stranger(fmt.Sprintf(`{"id_usuario":%d,"acao":"clique","timestamp":%d}`, i, at.Unix()))
	}
	b.stranger(fmt.Sprintf(`{"id_usuario":1,"acao":"busca","timestamp":%d}`, at.Add(time.Minute).Unix()))
	path := "/v1/analytics/conversion?from=" + at.Format(time.RFC3339) + "&to=" + at.Add(time.Hour).Format(time.RFC3339)
	shown := func(more string) (lines []string) {
		for _, c := range read[api.ConversionPage](b, "ana", path+more).Data {
			line := fmt.Sprintf("%s %d/%d", c.Minute.Format("04"), c.Orders, c.Clicks)
			if c.Rate != nil {
				line += fmt.Sprintf(" %.4f", *c.Rate)
			}
			lines = append(lines, line)
		}
		return lines
	}
	b.eventually("all is counted", func() bool { return fmt.Sprint(shown("")) == "[00 1/3 0.3333 01 0/1 0.0000 03 1/0]" })
	if got := fmt.Sprint(shown("&acao=busca")); got != "[00 1/0 01 0/1 0.0000 03 1/0]" {
		t.Errorf("of one action: %s", got)
	}
	first := read[api.ConversionPage](b, "ana", path+"&limit=2")
	if second := fmt.Sprint(shown("&limit=2&after=" + first.NextCursor)); !first.HasMore || second != "[03 1/0]" {
		t.Errorf("the second page: %s", second)
	}
}
