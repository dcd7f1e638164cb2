package main_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/feira-shop/feira/api"
)

// writeClicks sends values to the topic of clicks as a program does that knows nothing of the shop, and returns when all
// replicas have them.
func writeClicks(t *testing.T, broker string, values ...string) {
	t.Helper()
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V2_8_0_0
	cfg.Producer.RequiredAcks = sarama.WaitForAll
	cfg.Producer.Return.Successes = true
	producer, err := sarama.NewSyncProducer([]string{broker}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = producer.Close() }()
	batch := make([]*sarama.ProducerMessage, len(values))
	for i, v := range values {
		batch[i] = &sarama.ProducerMessage{Topic: "eventos-usuario", Value: sarama.StringEncoder(v)}
	}
	if err := producer.SendMessages(batch); err != nil {
		t.Fatal(err)
	}
}

// A thousand clicks of a stranger, one text that is no JSON, and a click more: the API shows a thousand and one, the text
// is parked, and nothing stops.
func TestClicksOfStrangersReachTheAPI(t *testing.T) {
	t.Parallel()
	demo := startDemo(t, newFolder(t), "--shoppers=0")
	shop, token := demo.env["FEIRA_URL"], demo.token(t)
	shows := func(want int64) func() bool {
		return func() bool {
			var page api.ClickPage
			res := send(t, http.MethodGet, shop+"/v1/analytics/clicks?acao=clique", token, "", nil, &page)
			if res.StatusCode != http.StatusOK || page.Total > want {
				t.Fatalf("%s, %d clicks", res.Status, page.Total)
			}
			return page.Total == want
		}
	}
	values := make([]string, 1000)
	for i := range values {
		values[i] = fmt.Sprintf(`{"id_usuario": %d, "acao": "clique", "timestamp": %d}`, i, 1711900000+i)
	}
	writeClicks(t, demo.env["FEIRA_KAFKA"], values...)
	eventually(t, "the API to show 1000 clicks", shows(1000))
	writeClicks(t, demo.env["FEIRA_KAFKA"], "clique")
	writeClicks(t, demo.env["FEIRA_KAFKA"], fmt.Sprintf(`{"id_usuario": "ana", "acao": "clique", "timestamp": %d}`, time.Now().UnixMilli()))
	eventually(t, "the click behind the text", shows(1001))
	has(t, demo.feira(t, "admin", "parked", "list", "analytics.clicks").ok(t), "invalid_data")
	if res := send(t, http.MethodPost, shop+"/v1/clicks", token, `{"id_usuario":42,"acao":"clique","timestamp":1711900000}`, nil, nil); res.StatusCode != http.StatusAccepted {
		t.Errorf("a click by the API: %s", res.Status)
	}
	eventually(t, "the click by the API", shows(1002))
	has(t, demo.feira(t, "verify").ok(t), "verify: no difference")
	if res := send(t, http.MethodGet, shop+"/readyz", token, "", nil, nil); res.StatusCode != http.StatusOK {
		t.Errorf("the shop is not well: %s", res.Status)
	}
}
