package live

import (
	"testing"

	"github.com/IBM/sarama"

	"github.com/feira-shop/feira/shared/events"
)

// The page is told of events and clicks, and not of ticks and of what nobody understands.
func TestWhatThePageIsTold(t *testing.T) {
	t.Parallel()
	headers := func(r events.Recorded) (list []*sarama.RecordHeader) {
		for _, h := range events.Headers(r) {
			list = append(list, &sarama.RecordHeader{Key: []byte(h.Key), Value: []byte(h.Value)})
		}
		return list
	}
	tick := events.Tick(events.Orders, 0, events.UnixTime(1711900000_000000).Time())
	paid := tick
	paid.Type, paid.Data = events.OrderPaid{}.EventType(), []byte(`{"order":"o1"}`)
	for name, c := range map[string]struct {
		m    *sarama.ConsumerMessage
		want string
	}{
		"event":        {&sarama.ConsumerMessage{Topic: "orders", Headers: headers(paid), Value: paid.Data}, `{"topic":"orders","type":"shop.feira.order.paid.v1","order":"o1","time":"2024-03-31T15:46:40Z"}`},
		"tick":         {&sarama.ConsumerMessage{Topic: "orders", Headers: headers(tick), Value: tick.Data}, ""},
		"click":        {&sarama.ConsumerMessage{Topic: "eventos-usuario", Value: []byte(`{"id_usuario":42,"acao":"clique","timestamp":1711900000}`)}, `{"topic":"eventos-usuario","type":"shop.feira.user.acted.v1","order":"","time":"2024-03-31T15:46:40Z"}`},
		"no click":     {&sarama.ConsumerMessage{Topic: "eventos-usuario", Value: []byte(`clique`)}, ""},
		"no event":     {&sarama.ConsumerMessage{Topic: "orders", Value: []byte(`{"order":"o1"}`)}, ""},
		"nothing":      {&sarama.ConsumerMessage{Topic: "orders"}, ""},
		"empty clicks": {&sarama.ConsumerMessage{Topic: "eventos-usuario"}, ""},
	} {
		if m, err := (entry{}).Unmarshal(c.m); err != nil || string(m.Payload) != c.want {
			t.Errorf("%s: %s, %v", name, m.Payload, err)
		}
	}
}
