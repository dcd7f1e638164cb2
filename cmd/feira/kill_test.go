package main_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/feira-shop/feira/shared/kafka"
)

// number reads a whole number from a variable.
func number(t *testing.T, name string, otherwise int64) int64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%q is no whole number", name, text)
	}
	return n
}

// The demo is killed under load, again and again: FEIRA_KILLS times, at moments that follow from FEIRA_SEED. Each time
// it goes on where it was. At the end every order has ended, every table is what the event stores give, and Kafka has
// every record that it acknowledged.
func TestADemoThatIsKilledGoesOn(t *testing.T) {
	t.Parallel()
	kills, seed := number(t, "FEIRA_KILLS", 3), number(t, "FEIRA_SEED", time.Now().UnixNano())
	t.Logf("%d kills; FEIRA_SEED=%d", kills, seed)
	dice := rand.New(rand.NewPCG(uint64(seed), 0))
	dir := newFolder(t)
	clicks := &clicker{t: t}
	var placed int64
	for kill := range kills {
		began := time.Now()
		demo := startDemo(t, dir, "--shoppers=20")
		ready := time.Since(began)
		orders := demo.database(t, "orders")
		eventually(t, "the first order", func() bool {
			return one[int64](t, orders, "select count(*) from streams where stream like 'order-%'") > placed
		})
		stop := clicks.produce(demo.env["FEIRA_KAFKA"])
		moment := time.Duration(dice.Int64N(int64(3 * time.Second)))
		select {
		case <-time.After(moment):
		case <-demo.ended:
			t.Fatal("the demo ended by itself")
		}
		placed = one[int64](t, orders, "select count(*) from streams where stream like 'order-%'")
		orders.Close()
		demo.kill()
		stop()
		t.Logf("kill %d: ready after %s, killed %s later with %d orders", kill+1, ready.Round(time.Millisecond), moment.Round(time.Millisecond), placed)
	}
	if dice.IntN(2) == 0 { // a start that is killed in its middle harms nothing either
		p := start(t, nil, "demo", "--listen=127.0.0.1:0", "--kafka-listen=127.0.0.1:0", "--data="+dir)
		select {
		case <-time.After(time.Duration(dice.Int64N(int64(time.Second)))):
		case <-p.ended:
			t.Fatal("the demo ended by itself")
		}
		p.kill()
	}

	last := startDemo(t, dir, "--shoppers=5", "--for=3s")
	missing := clicks.missing(last.env["FEIRA_KAFKA"])
	if code := last.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	said := last.out.String()
	has(t, said, "verify: no difference")
	if total := count(t, said, `verify: (\d+) orders`); total <= placed {
		t.Errorf("%d orders at the end, %d before the last kill", total, placed)
	}
	if missing > 0 {
		t.Errorf("Kafka acknowledged %d records that it has not kept, of %d", missing, len(clicks.acknowledged))
	}
	t.Logf("%s, %d clicks", regexp.MustCompile(`verify: \d+ orders, \d+ events`).FindString(said), len(clicks.acknowledged))
}

// count is the number that the pattern's group matches.
func count(t *testing.T, text, pattern string) int64 {
	t.Helper()
	match := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if match == nil {
		t.Fatalf("%q is not in:\n%s", pattern, text)
	}
	n, err := strconv.ParseInt(match[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// clicker writes to the topic of clicks and remembers what Kafka acknowledged.
type clicker struct {
	t            *testing.T
	sent         int
	acknowledged []string
}

// produce writes until it is stopped, or the broker is gone.
func (c *clicker) produce(broker string) (stop func()) {
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V2_8_0_0
	cfg.Producer.RequiredAcks = sarama.WaitForAll
	cfg.Producer.Return.Successes = true
	cfg.Producer.Retry.Max = 0
	producer, err := sarama.NewSyncProducer([]string{broker}, cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	done := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			c.sent++
			value := fmt.Sprintf(`{"id_usuario":"ana","acao":"clique","timestamp":%d}`, 1711900000+c.sent)
			if _, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: "eventos-usuario", Value: sarama.StringEncoder(value)}); err != nil {
				return // the broker is gone; this one may be there or not
			}
			c.acknowledged = append(c.acknowledged, value)
		}
	})
	return func() {
		close(done)
		writing.Wait()
		_ = producer.Close() // towards a broker that is gone
	}
}

// missing reads the topic from its beginning and counts what was acknowledged and is not there.
func (c *clicker) missing(broker string) int {
	client, err := kafka.NewClient(kafka.Config{Brokers: []string{broker}, ClientID: "test"})
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = consumer.Close() }()
	partitions, err := client.Partitions("eventos-usuario")
	if err != nil {
		c.t.Fatal(err)
	}
	found := map[string]bool{}
	for _, p := range partitions {
		oldest, err1 := client.GetOffset("eventos-usuario", p, sarama.OffsetOldest)
		end, err2 := client.GetOffset("eventos-usuario", p, sarama.OffsetNewest)
		if err := cmp.Or(err1, err2); err != nil {
			c.t.Fatal(err)
		}
		if oldest == end {
			continue
		}
		records, err := consumer.ConsumePartition("eventos-usuario", p, oldest)
		if err != nil {
			c.t.Fatal(err)
		}
		timeout := time.After(patience)
		for at := oldest; at < end; {
			select {
			case m := <-records.Messages():
				found[string(m.Value)] = true
				at = m.Offset + 1
			case <-timeout:
				c.t.Fatalf("read eventos-usuario/%d up to %d of %d only", p, at, end)
			}
		}
		_ = records.Close() // read to its end
	}
	missing := 0
	for _, value := range c.acknowledged {
		if !found[value] {
			missing++
		}
	}
	return missing
}
