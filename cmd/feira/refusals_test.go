package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is wrong with a call is one sentence that says what to do, and exit code 1. Nothing is started for it.
func TestWrongCallsAreExplained(t *testing.T) {
	t.Parallel()
	addresses := []string{"FEIRA_POSTGRES=postgres://nobody@127.0.0.1:1/{service}?connect_timeout=1", "FEIRA_KAFKA=127.0.0.1:1"}
	dir := newFolder(t)
	notes := filepath.Join(dir, "notes.env")
	if err := os.WriteFile(notes, []byte("FEIRA_KAFKA=127.0.0.1:1\nwhat is this\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, "key.pem")
	unsafe := "--kafka broker --kafka-cert " + notes + " --kafka-sasl kerberos --kafka-user u"
	allUnsafe := []string{`"broker"`, "--kafka-cert (FEIRA_KAFKA_CERT)", `"kerberos"`, "--kafka-password-file", "FEIRA_KAFKA_PASSWORD"}
	for name, c := range map[string]struct {
		env  []string
		args string
		says []string
	}{
		"unknown command":     {args: "trade", says: []string{"unexpected argument trade", "feira --help"}},
		"unknown flag":        {args: "demo --bogus", says: []string{"--bogus", "feira demo --help"}},
		"no number":           {args: "demo --shoppers many", says: []string{"--shoppers", "many", "feira demo --help"}},
		"no duration":         {args: "demo --for 60", says: []string{"--for", "60", "feira demo --help"}},
		"windows":             {args: "demo --window 1500ms", says: []string{"--window", "1.5s", "whole seconds"}},
		"windows, run":        {env: addresses, args: "run analytics --window 0.5s", says: []string{"500ms", "whole seconds"}},
		"several at once":     {args: "demo --shoppers=-1 --for=-2s --deadline 0s --listen here --without paymints", says: []string{"--shoppers -1", "--for -2s", "--deadline 0s", `--listen "here"`, "catalog, orders, inventory, payments, fraud, loyalty, analytics"}},
		"no orders":           {args: "demo --without orders", says: []string{"--shoppers 0", "feira run gateway"}},
		"Kafka for all":       {args: "demo --listen 127.0.0.1:0 --kafka-listen 0.0.0.0:0", says: []string{"this machine only", "127.0.0.1:0"}},
		"data is a file":      {args: "demo --listen 127.0.0.1:0 --kafka-listen 127.0.0.1:0 --data " + notes, says: []string{notes, "--data"}},
		"data below a file":   {args: "demo --listen 127.0.0.1:0 --kafka-listen 127.0.0.1:0 --data " + notes + "/below", says: []string{notes + "/below", "--data"}},
		"no part":             {args: "run", says: []string{"<parts>", "feira run --help"}},
		"unknown part":        {args: "run paymints", says: []string{`"paymints"`, "payments, fraud"}},
		"no key set":          {env: addresses, args: "run orders", says: []string{"--jwks (FEIRA_JWKS)", "feira token"}},
		"absent key set":      {env: addresses, args: "run orders --listen 127.0.0.1:0 --jwks " + dir + "/none.json", says: []string{dir + "/none.json"}},
		"no provider":         {env: addresses, args: "run payments", says: []string{"--provider-url", "--provider-key", "FEIRA_PROVIDER_URL"}},
		"no address":          {env: addresses, args: "run payments --provider-url 127.0.0.1:1 --provider-key k", says: []string{`"127.0.0.1:1"`, "https://"}},
		"provider and shop":   {env: addresses, args: "run provider loyalty --listen 127.0.0.1:0 --provider-key k --jwks " + notes, says: []string{"process of its own"}},
		"provider, no key":    {env: addresses, args: "run provider --listen 127.0.0.1:0", says: []string{"--provider-key (FEIRA_PROVIDER_KEY)"}},
		"gateway to nowhere":  {env: addresses, args: "run gateway", says: []string{"--upstreams", "FEIRA_UPSTREAMS"}},
		"gateway to unknown":  {env: addresses, args: "run gateway --listen 127.0.0.1:0 --upstreams paymints=127.0.0.1:1", says: []string{`"paymints"`}},
		"run without address": {args: "run loyalty --listen 127.0.0.1:0 --jwks " + keySet(t), says: []string{"FEIRA_POSTGRES_LOYALTY", "--env-file"}},
		"broken key set":      {env: addresses, args: "run loyalty --listen 127.0.0.1:0 --jwks " + notes, says: []string{"key set"}},
		"verify":              {args: "verify", says: []string{"--env-file", "--postgres", "FEIRA_POSTGRES_"}},
		"no service in DSN":   {args: "verify --postgres postgres://127.0.0.1/shop", says: []string{"{service}"}},
		"database is away":    {env: addresses, args: "verify", says: []string{"127.0.0.1:1"}},
		"migrate":             {args: "migrate", says: []string{"FEIRA_POSTGRES_CATALOG", "--env-file"}},
		"migrate unknown":     {env: addresses, args: "migrate paymints", says: []string{`"paymints"`}},
		"operators":           {args: "admin operators --kafka 127.0.0.1:1", says: []string{"127.0.0.1:1"}},
		"pause":               {args: "admin pause payments", says: []string{"FEIRA_POSTGRES_PAYMENTS"}},
		"pause nobody":        {env: addresses, args: "admin pause paymints", says: []string{`"paymints"`}},
		"no operator":         {env: addresses, args: "admin audit payments", says: []string{"service.what", "feira admin operators"}},
		"no place":            {env: addresses, args: "admin parked show payments.pay orders/1", says: []string{"topic/partition/offset", "orders/3/1042"}},
		"which record":        {env: addresses, args: "admin parked replay payments.pay", says: []string{"--at PLACE, --key KEY or --all"}},
		"two selections":      {env: addresses, args: "admin parked replay payments.pay --all --key k", says: []string{"--key", "--all"}},
		"discard":             {env: addresses, args: "admin parked discard payments.pay --all", says: []string{"--yes"}},
		"accept-gap":          {env: addresses, args: "admin accept-gap payments.pay orders 0", says: []string{"--yes"}},
		"Kafka settings, run": {args: "run orders " + unsafe, says: allUnsafe},
		"Kafka, migrate":      {args: "migrate " + unsafe, says: allUnsafe},
		"Kafka, admin":        {args: "admin operators " + unsafe, says: allUnsafe},
		"Kafka, variables": {args: "migrate", env: []string{"FEIRA_KAFKA=broker.example:9092", "FEIRA_KAFKA_SASL=plain", "FEIRA_KAFKA_USER=u", "FEIRA_KAFKA_PASSWORD_FILE=" + notes},
			says: []string{"PLAIN", "broker.example:9092", "--kafka-tls (FEIRA_KAFKA_TLS)"}},
		"password file":      {args: "migrate --kafka-sasl scram-sha-512 --kafka-user u --kafka-password-file " + dir + "/none", says: []string{dir + "/none", "FEIRA_KAFKA_PASSWORD_FILE"}},
		"two passwords":      {env: []string{"FEIRA_KAFKA_PASSWORD=p"}, args: "migrate --kafka-sasl scram-sha-512 --kafka-user u --kafka-password-file " + notes, says: []string{"given twice", "FEIRA_KAFKA_PASSWORD_FILE"}},
		"strict, no Kafka":   {env: addresses, args: "run loyalty --strict --listen 127.0.0.1:0 --jwks " + keySet(t), says: []string{"--strict (FEIRA_STRICT)", "could not be inspected", "127.0.0.1:1"}},
		"no key":             {args: "token", says: []string{"--key", "feira token --help"}},
		"no role":            {args: "token --role king --key " + key, says: []string{"--role", "customer", "operator"}},
		"no time":            {args: "token --ttl=-1s --key " + key, says: []string{"--ttl", "24h"}},
		"not a key":          {args: "token --key " + notes, says: []string{notes}},
		"load without a key": {args: "load", says: []string{"--key", "feira load --help"}},
		"two kinds of load":  {args: "load --rate 5 --clients 5 --key " + key, says: []string{"--rate", "--clients"}},
		"no env file":        {args: "--env-file " + dir + "/none.env verify", says: []string{dir + "/none.env", "FEIRA_ENV_FILE"}},
		"broken env file":    {args: "--env-file " + notes + " verify", says: []string{notes + ":2", "NAME=value"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call(t, c.env, strings.Fields(c.args)...).fails(t, c.says...)
		})
	}
}

func TestHelpNamesEveryCommandFlagAndVariable(t *testing.T) {
	t.Parallel()
	top := call(t, nil).ok(t)
	has(t, top, "demo", "run", "migrate", "verify", "load", "token", "admin operators", "admin pause", "admin resume", "admin parked list",
		"admin parked show", "admin parked replay", "admin parked discard", "admin rebuild", "admin accept-gap", "admin fill-gap", "admin audit", "--env-file")
	for command, wanted := range map[string][]string{
		"demo": {"--listen", "127.0.0.1:8080", "--kafka-listen", "127.0.0.1:9092", "--data", "--shoppers", "--for", "--deadline", "30s",
			"--without", "--seed", "--window", "FEIRA_WINDOW", "FEIRA_DEMO_LISTEN", "FEIRA_DEMO_DATA", "FEIRA_DEADLINE"},
		"run": {"--window", "--listen", "--postgres", "--kafka", "--jwks", "--upstreams", "--provider-url", "--deadline", "--hold", "--migrate",
			"FEIRA_POSTGRES", "FEIRA_KAFKA", "FEIRA_JWKS", "FEIRA_UPSTREAMS", "FEIRA_MEMBER", "--strict", "FEIRA_STRICT",
			"--kafka-tls", "--kafka-ca", "--kafka-cert", "--kafka-key", "--kafka-server-name", "--kafka-sasl", "--kafka-user", "--kafka-password", "--kafka-password-file",
			"FEIRA_KAFKA_TLS", "FEIRA_KAFKA_CA", "FEIRA_KAFKA_CERT", "FEIRA_KAFKA_KEY", "FEIRA_KAFKA_SERVER_NAME", "FEIRA_KAFKA_SASL", "FEIRA_KAFKA_USER", "FEIRA_KAFKA_PASSWORD_FILE"},
		"migrate":              {"--replication", "--min-insync", "--clicks-retention", "FEIRA_KAFKA_REPLICATION", "FEIRA_KAFKA_MIN_INSYNC", "FEIRA_CLICKS_RETENTION", "--kafka-tls"},
		"admin operators":      {"--kafka-tls", "--kafka-sasl"},
		"load":                 {"--rate", "--clients", "--duration", "FEIRA_URL", "FEIRA_TOKEN_KEY"},
		"verify":               {"--window", "--kafka", "--settled", "--wait", "FEIRA_POSTGRES"},
		"token":                {"--sub", "--role", "--ttl", "--key", "--jwks", "FEIRA_TOKEN_KEY"},
		"admin parked discard": {"--at", "--key", "--all", "--yes", "--who", "FEIRA_WHO"},
	} {
		has(t, call(t, nil, append(strings.Fields(command), "--help")...).ok(t), wanted...)
	}
}
