package main_test

import (
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/IBM/sarama"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/shared/kafka"
)

// The commands that look after a shop, one after the other on one demo, since some of them break it on purpose.
func TestCommandsOnARunningShop(t *testing.T) {
	t.Parallel()
	demo := startDemo(t, newFolder(t), "--shoppers=0")
	for _, step := range []struct {
		name string
		run  func(*testing.T, *running)
	}{
		{"token", tokensAreTaken}, {"load", loadIsMeasured}, {"pause", pauseAndResume}, {"verify", verifyFindsWhatIsWrong},
		{"rebuild", rebuildMendsStates}, {"rebuild of an operator", rebuildMendsTables}, {"parked", parkedRecordsAreLookedAfter},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, demo) }) {
			return
		}
	}
	demo.feira(t, "verify", "--settled", "--wait=60s").ok(t)
}

func tokensAreTaken(t *testing.T, demo *running) {
	shop := demo.env["FEIRA_URL"]
	status := func(method, path, token, body string) int {
		t.Helper()
		return send(t, method, shop+path, token, body, map[string]string{"Idempotency-Key": "token-" + path}, nil).StatusCode
	}
	customer, keeper := demo.token(t, "--sub=bia"), demo.token(t, "--sub=eva", "--role=operator", "--ttl=1m")
	if got := status(http.MethodGet, "/v1/orders", customer, ""); got != http.StatusOK {
		t.Errorf("a customer: %d", got)
	}
	if got := status(http.MethodGet, "/v1/orders", "nonsense", ""); got != http.StatusUnauthorized {
		t.Errorf("nonsense: %d", got)
	}
	receipt := "/v1/stock/CAFE-500G/receipts"
	if got := status(http.MethodPost, receipt, customer, `{"quantity":1}`); got != http.StatusForbidden {
		t.Errorf("a customer who receives stock: %d", got)
	}
	if got := status(http.MethodPost, receipt, keeper, `{"quantity":1}`); got/100 != 2 {
		t.Errorf("an operator who receives stock: %d", got)
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(keeper, ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	var claims struct{ Iat, Exp int64 }
	if err := json.Unmarshal(payload, &claims); err != nil || claims.Exp-claims.Iat != 60 {
		t.Errorf("%s, expected to be valid for a minute: %v", payload, err)
	}
	demo.feira(t, "token", "--key="+newFolder(t)+"/other.pem").fails(t, demo.env["FEIRA_JWKS"], "does not hold this key", "--jwks")
}

func loadIsMeasured(t *testing.T, demo *running) {
	said := demo.feira(t, "load", "--rate=20", "--duration=1s").ok(t)
	has(t, said, "20.0/s wanted", "20 × 201", "p99.9", "0 failed")
	said = demo.feira(t, "load", "--clients=2", "--duration=1s", "--wait=10s").ok(t)
	has(t, said, "× 201 confirmed", "0 failed")
	demo.feira(t, "load", "--clients=1", "--duration=1s", "--url=http://"+closedAddress(t)).fails(t, "not one checkout", "is the shop at http://127.0.0.1:")
	demo.feira(t, "load", "--rate=5", "--wait=11s").fails(t, "10s")
}

// closedAddress is one that nobody listens on.
func closedAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func pauseAndResume(t *testing.T, demo *running) {
	shop, token := demo.env["FEIRA_URL"], demo.token(t)
	said := demo.feira(t, "admin", "pause", "payments").ok(t)
	has(t, said, "paused payments.pay", "paused the jobs of payments")
	o, _ := checkout(t, shop, token, "paused", 0)
	eventually(t, "the stock of the order", func() bool { return order(t, shop, token, o.Id).Version >= 2 })
	said = demo.feira(t, "admin", "operators").ok(t)
	if !regexp.MustCompile(`payments\.pay +orders .* paused`).MatchString(said) || !regexp.MustCompile(`payments jobs .* paused`).MatchString(said) {
		t.Errorf("payments is not shown as paused:\n%s", said)
	}
	if !regexp.MustCompile(`orders\.process +fraud .* running`).MatchString(said) {
		t.Errorf("orders is not shown as running:\n%s", said)
	}
	if o = order(t, shop, token, o.Id); o.FinancialStatus != api.FinancialStatusPending {
		t.Errorf("with payments paused the order is %s", o.FinancialStatus)
	}
	demo.feira(t, "admin", "resume", "payments.pay").ok(t)
	has(t, demo.feira(t, "admin", "resume", "payments").ok(t), "resumed payments.pay", "resumed the jobs of payments")
	eventually(t, "the order to be paid", func() bool { return order(t, shop, token, o.Id).FinancialStatus == api.FinancialStatusPaid })
	eventually(t, "a lag of 0", func() bool {
		return regexp.MustCompile(`payments\.pay +orders +0 .* running`).MatchString(demo.feira(t, "admin", "operators").ok(t))
	})
	has(t, demo.feira(t, "admin", "operators", "--partitions").ok(t), "orders/0", "orders/5")
	alone := call(t, []string{"FEIRA_KAFKA=" + demo.env["FEIRA_KAFKA"], "FEIRA_POSTGRES_PAYMENTS=" + demo.env["FEIRA_POSTGRES_PAYMENTS"]}, "admin", "operators", "payments").ok(t)
	if has(t, alone, "payments.pay", "payments jobs"); strings.Contains(alone, "orders.process") {
		t.Errorf("operators of payments alone:\n%s", alone)
	}
	demo.feira(t, "admin", "operators", "nobody").fails(t, `no service "nobody"`, "payments")
	demo.feira(t, "admin", "pause", "payments.nobody").fails(t, "payments.nobody", "feira admin operators")
	said = demo.feira(t, "admin", "audit", "payments.pay").ok(t)
	has(t, said, "tester", "pause", "resume")
}

func verifyFindsWhatIsWrong(t *testing.T, demo *running) {
	demo.feira(t, "verify", "--settled", "--wait=60s").ok(t)
	stock := demo.database(t, "inventory")
	exec1(t, stock, "update stock set on_hand = on_hand + 1 where sku = 'CAFE-500G'")
	wrong := demo.feira(t, "verify")
	wrong.fails(t)
	has(t, wrong.out, "DIFFERENCE: inventory: the shelf of CAFE-500G")
	exec1(t, stock, "update stock set on_hand = on_hand - 1 where sku = 'CAFE-500G'")
	has(t, demo.feira(t, "verify").ok(t), "verify: no difference")
}

func rebuildMendsStates(t *testing.T, demo *running) {
	orders := demo.database(t, "orders")
	name := one[string](t, orders, "select min(stream) from streams where stream like 'order-%'")
	kept := one[string](t, orders, "select state::text from streams where stream = $1", name)
	exec1(t, orders, `update streams set state = '{"status":"delivered"}' where stream = $1`, name)
	wrong := demo.feira(t, "verify")
	wrong.fails(t)
	has(t, wrong.out, "DIFFERENCE", name)
	has(t, demo.feira(t, "admin", "rebuild", "orders", "--dry-run").ok(t), ", 1 states differed; nothing was written")
	has(t, demo.feira(t, "admin", "rebuild", "orders").ok(t), ", 1 states differed\n")
	if now := one[string](t, orders, "select state::text from streams where stream = $1", name); now != kept {
		t.Errorf("the state was %s, it was rebuilt as %s", kept, now)
	}
	has(t, demo.feira(t, "admin", "rebuild", "orders").ok(t), ", 0 states differed")
	has(t, demo.feira(t, "verify").ok(t), "verify: no difference")
}

// produce writes a record straight to a topic, as a stranger could.
func produce(t *testing.T, broker, topic, key, value string) (partition int32, offset int64) {
	t.Helper()
	client, err := kafka.NewClient(kafka.Config{Brokers: []string{broker}, ClientID: "stranger"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	cfg := client.Config()
	cfg.Producer.Return.Successes = true
	producer, err := sarama.NewSyncProducerFromClient(client)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = producer.Close() }()
	partition, offset, err = producer.SendMessage(&sarama.ProducerMessage{
		Topic: topic, Key: sarama.StringEncoder(key), Value: sarama.StringEncoder(value),
	})
	if err != nil {
		t.Fatal(err)
	}
	return partition, offset
}
