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
	env, err := d.infra.environment(d.all, d.shop, d.provider)
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
	for _, line := range [][2]string{
		{"Shop", d.shop + "/"},
		{"API", d.shop + "/docs"},
		{"Metrics", d.shop + "/metrics"},
		{"Kafka", strings.Join(d.infra.kafka.Brokers(), ",") + "   topics " + strings.Join(topics, ", ")},
		{"Postgres", fmt.Sprintf("127.0.0.1:%d   databases %s, %s", d.infra.postgres.Port(), strings.Join(databases, ", "), providerDatabase)},
		{"Addresses", env + "   for feira run, admin and verify: --env-file"},
		{"Token", token},
	} {
		if _, err := fmt.Fprintf(d.opts.Out, "  %-10s %s\n", line[0], line[1]); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(d.opts.Out, "\nA checkout to paste:\n\n%s\n\n", checkout(d.shop, token, time.Now().Format("0102-150405")))
	return err
}

// checkout is a curl command that orders two coffees.
func checkout(shop, token, key string) string {
	return fmt.Sprintf(`curl -i %s/v1/orders \
  -H 'Authorization: Bearer %s' \
  -H 'Idempotency-Key: %s' -H 'Prefer: wait=5' -H 'Content-Type: application/json' \
  -d '{"lines":[{"sku":"CAFE-500G","quantity":2}],"payment":{"method":"card","token":"tok_visa_ana1"},"email":"ana@example.com","shipping_address":{"name":"Ana Souza","street":"Rua das Flores, 10","city":"Olinda","state":"PE","postal_code":"53020-100","country":"BR"}}'`,
		shop, token, key)
}
