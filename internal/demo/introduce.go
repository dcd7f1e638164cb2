package demo

import (
	"fmt"
	"strings"
	"time"

	"github.com/feira-shop/feira/shared/auth"
	"github.com/feira-shop/feira/shared/events"
)

// introduce prints where everything is and a checkout to paste.
func (d *demo) introduce() error {
	env, err := d.writeEnvironment()
	if err != nil {
		return err
	}
	token, err := d.infra.key.Sign("ana", []auth.Role{auth.Customer}, 30*24*time.Hour)
	if err != nil {
		return err
	}
	var topics, databases []string
	for _, t := range events.Topics() {
		topics = append(topics, t.Name)
	}
	for _, s := range d.all {
		databases = append(databases, s.Name)
	}
	databases = append(databases, providerDatabase)
	folder := d.infra.dir + "   the log is " + logFile
	if d.infra.temporary {
		folder += "; gone at the end, --data DIR keeps one"
	}
	var b strings.Builder
	for _, line := range [][2]string{
		{"Shop", d.shop + "/   orders as they flow"},
		{"API", d.shop + "/docs"},
		{"Metrics", d.shop + "/metrics"},
		{"Kafka", strings.Join(d.infra.kafka.Brokers(), ",") + "   topics " + strings.Join(topics, ", ")},
		{"Databases", fmt.Sprintf("127.0.0.1:%d   %s", d.infra.postgres.Port(), strings.Join(databases, ", "))},
		{"Folder", folder},
		{"Addresses", env + "   for other commands: feira --env-file FILE admin operators"},
		{"Token", token + "   ana's, for 30 days"},
	} {
		fmt.Fprintf(&b, "  %-10s %s\n", line[0], line[1])
	}
	fmt.Fprintf(&b, "\nA checkout to paste (and to paste again):\n\n%s\n\n", checkout(d.shop, token, time.Now().Format("0102-150405")))
	d.console.print(b.String())
	return nil
}

// checkout is a curl command that orders two coffees.
func checkout(shop, token, key string) string {
	return fmt.Sprintf(`curl -i %s/v1/orders \
  -H 'Authorization: Bearer %s' \
  -H 'Idempotency-Key: %s' -H 'Prefer: wait=5' -H 'Content-Type: application/json' \
  -d '{"lines":[{"sku":"CAFE-500G","quantity":2}],"payment":{"method":"card","token":"tok_visa_ana1"},"email":"ana@example.com","shipping_address":{"name":"Ana Souza","street":"Rua das Flores, 10","city":"Olinda","state":"PE","postal_code":"53020-100","country":"BR"}}'`,
		shop, token, key)
}
