package main_test

import (
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/shared/kafka"
)

// The log loses events that loyalty has not applied. It stops by name, and gets them from their owner's store; or goes
// on without them, which verify then shows.
func TestEventsThatTheLogLostAreFilledInOrGivenUp(t *testing.T) {
	t.Parallel()
	demo := startDemo(t, newFolder(t), "--without=loyalty", "--shoppers=0")
	shop, token, db := demo.env["FEIRA_URL"], demo.token(t), demo.database(t, "loyalty")
	orders := 0
	pay := func() {
		t.Helper()
		orders++ // each of another amount, or it would be held as a duplicate; on one card, so in one partition
		o, _ := buy(t, shop, token, fmt.Sprintf("gap-%d", orders), "ana1", orders, 10)
		eventually(t, "the order to be paid", func() bool { return order(t, shop, token, o.Id).FinancialStatus == api.FinancialStatusPaid })
	}
	// lose has loyalty meet a log that no longer has what was paid while it was away.
	lose := func(loyalty *process) (again *process, address string) {
		t.Helper()
		if code, _ := loyalty.stop(syscall.SIGTERM); code != 0 {
			t.Fatalf("SIGTERM: exit code %d", code)
		}
		pay()
		forgetPayments(t, demo)
		again, address = begin(t, demo, "loyalty")
		eventually(t, "loyalty to stop by name", func() bool { return stopped(t, db, "history_lost") > 0 })
		return again, address
	}

	loyalty, _ := part(t, demo, "loyalty")
	pay()
	eventually(t, "points for the first order", func() bool { return accounts(t, db) == 1 })
	demo.feira(t, "admin", "accept-gap", "loyalty.account", "payments", "0", "--yes").fails(t, "is not there", "feira admin operators")
	demo.feira(t, "admin", "fill-gap", "loyalty.account", "payments", "0").fails(t, "is not there", "feira admin operators")
	demo.feira(t, "admin", "fill-gap", "loyalty.account", "eventos-usuario", "0").fails(t, "no service owns the topic")

	loyalty, address := lose(loyalty)
	has(t, demo.feira(t, "admin", "operators").ok(t), "stopped: ", "loyalty.account")
	if ready(t, address) {
		t.Error("loyalty is ready although it stopped")
	}
	looksChangeNothing(t, demo, db)
	stands := one[int32](t, db, "select min(partition) from operator_stops")
	demo.feira(t, "admin", "fill-gap", "loyalty.account", "payments", fmt.Sprint((stands+1)%6)).fails(t, "is not there")
	said := demo.feira(t, "admin", "fill-gap", "loyalty.account", "payments", "all").ok(t)
	has(t, said, "filled in; loyalty.account goes on by itself")
	eventually(t, "loyalty to be ready", func() bool { return ready(t, address) })
	pay()
	has(t, demo.feira(t, "verify", "--settled", "--wait=60s").ok(t), "verify: no difference")
	has(t, demo.feira(t, "admin", "audit", "loyalty.account").ok(t), "fill-gap", "fill finished", "tester")

	_, address = lose(loyalty)
	demo.feira(t, "admin", "accept-gap", "loyalty.account", "payments", "all").fails(t, "without what is missing", "nothing was done", "--dry-run", "--yes")
	has(t, demo.feira(t, "admin", "accept-gap", "loyalty.account", "payments", "all", "--yes").ok(t), "loyalty.account goes on by itself")
	eventually(t, "loyalty to be ready", func() bool { return ready(t, address) })
	wrong := demo.feira(t, "verify")
	wrong.fails(t)
	has(t, wrong.out, "DIFFERENCE: loyalty: the account of ana")
	if n := strings.Count(wrong.out, "DIFFERENCE"); n != 1 {
		t.Errorf("%d differences:\n%s", n, wrong.out)
	}
	has(t, demo.feira(t, "admin", "audit", "loyalty.account").ok(t), "accept-gap", "history lost", "tester")
}

// looksChangeNothing has both commands say what they would do.
func looksChangeNothing(t *testing.T, demo *running, db *pgxpool.Pool) {
	t.Helper()
	kept := `select json_build_object('checkpoints', (select json_agg(c order by c::text) from checkpoints c),
		'stops', (select json_agg(s order by s::text) from operator_stops s), 'audit', (select count(*) from operator_audit),
		'requests', (select count(*) from operator_requests), 'fills', (select count(*) from operator_fills))::text`
	before := one[string](t, db, kept)
	dry := demo.feira(t, "admin", "fill-gap", "loyalty.account", "payments", "all", "--dry-run").ok(t)
	if !regexp.MustCompile(`payments/\d +history_lost +\d events? at positions \d+ to \d+ of the owner's store, \d of types`).MatchString(dry) {
		t.Errorf("the dry run does not say what is missing:\n%s", dry)
	}
	has(t, dry, "would be filled in", "of types that loyalty.account takes; nothing was changed")
	dry = demo.feira(t, "admin", "accept-gap", "loyalty.account", "payments", "all", "--dry-run").ok(t)
	if !regexp.MustCompile(`payments/\d +history_lost +records of offsets \d+ to \d+; \d events? at positions`).MatchString(dry) {
		t.Errorf("the dry run does not say what is given up:\n%s", dry)
	}
	has(t, dry, "nothing was changed")
	if after := one[string](t, db, kept); after != before {
		t.Errorf("a dry run changed something:\n%s\n%s", before, after)
	}
}

// stopped counts the partitions that an operator stopped for.
func stopped(t *testing.T, db *pgxpool.Pool, kind string) int64 {
	t.Helper()
	return one[int64](t, db, "select count(*) from operator_stops where kind = $1", kind)
}

func accounts(t *testing.T, db *pgxpool.Pool) int64 {
	t.Helper()
	return one[int64](t, db, "select count(*) from streams")
}

// forgetPayments deletes every record of the topic, once the others have them.
func forgetPayments(t *testing.T, demo *running) {
	t.Helper()
	client, err := kafka.NewClient(kafka.Config{Brokers: []string{demo.env["FEIRA_KAFKA"]}, ClientID: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	partitions, err := client.Partitions("payments")
	if err != nil {
		t.Fatal(err)
	}
	upTo := map[int32]int64{}
	for _, p := range partitions {
		if upTo[p], err = client.GetOffset("payments", p, sarama.OffsetNewest); err != nil {
			t.Fatal(err)
		}
		for service, operator := range map[string]string{"orders": "orders.process", "fraud": "fraud.cards", "analytics": "analytics.spend"} {
			db := demo.database(t, service)
			eventually(t, operator, func() bool {
				return one[int64](t, db, "select next_offset from checkpoints where operator = $1 and topic = 'payments' and partition = $2", operator, p) >= upTo[p]
			})
		}
	}
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.DeleteRecords("payments", upTo); err != nil {
		t.Fatal(err)
	}
}
