package main_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/feira-shop/feira/internal/shop"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/kafka/kafkatest"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

func TestMigrateBringsFreshDatabasesUpToDateOnce(t *testing.T) {
	t.Parallel()
	broker := kafkatest.New(t)
	env := []string{"FEIRA_KAFKA=" + strings.Join(broker.Brokers(), ",")}
	databases := map[string]*pgtest.DB{}
	for _, name := range append(shop.Names(), "provider") {
		databases[name] = pgtest.New(t)
		env = append(env, fmt.Sprintf("FEIRA_POSTGRES_%s=%s", strings.ToUpper(name), databases[name].DSN))
	}
	has(t, call(t, env[:1], "migrate", "topics").ok(t), "made orders: 6 partitions, copies 1, in sync at least 1") // without any database
	call(t, env[:1], "migrate", "topics", "--no-topics").fails(t, "--no-topics", "contradict")
	call(t, env, "run", "loyalty", "--listen=127.0.0.1:0", "--jwks="+keySet(t)).fails(t, "loyalty", "feira migrate", "--migrate")

	said := call(t, env, "migrate").ok(t)
	for _, name := range shop.Names() {
		has(t, said, "migrated "+name)
	}
	has(t, said, fmt.Sprintf("%d topics", len(events.Topics())))
	call(t, env, "migrate", "provider", "--no-topics").ok(t)
	has(t, call(t, env, "migrate", "provider", "--clicks-retention=48h", "--min-insync=1").ok(t), "changed eventos-usuario: retention.ms was 604800000 and is 172800000")
	call(t, env, "migrate", "provider", "--replication=2", "--min-insync=3").fails(t, "--replication (FEIRA_KAFKA_REPLICATION)", "--min-insync (FEIRA_KAFKA_MIN_INSYNC)")
	tables := func(name string) int64 {
		return one[int64](t, databases[name].Pool, "select count(*) from pg_class where relkind in ('r', 'i') and relnamespace = 'public'::regnamespace")
	}
	before := map[string]int64{}
	for name := range databases {
		if before[name] = tables(name); before[name] == 0 {
			t.Errorf("%s has no tables", name)
		}
	}
	call(t, env, "migrate").ok(t)
	call(t, env, "migrate", "provider", "orders").ok(t)
	for name := range databases {
		if now := tables(name); now != before[name] {
			t.Errorf("%s had %d tables and indexes and has %d", name, before[name], now)
		}
	}
}

// keySet is a file that feira run accepts.
func keySet(t *testing.T) string {
	t.Helper()
	dir := newFolder(t)
	call(t, nil, "token", "--key="+dir+"/key.pem", "--jwks="+dir+"/jwks.json").ok(t)
	return dir + "/jwks.json"
}
