package demo

import (
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/feira-shop/feira/shared/service"
)

// environmentFile tells other processes (feira run, admin, verify, load) where everything is.
const environmentFile = "feira.env"

// writeEnvironment writes the file whole or not at all.
func (d *demo) writeEnvironment() (path string, err error) {
	path = d.infra.path(environmentFile)
	if err := os.WriteFile(path+".new", []byte(d.environment(d.all)), 0o600); err != nil {
		return "", fmt.Errorf("write the addresses: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return "", fmt.Errorf("write the addresses: %w", err)
	}
	return path, nil
}

func (d *demo) environment(services []service.Definition) string {
	in := d.infra
	var b strings.Builder
	set := func(name, value string) { fmt.Fprintf(&b, "%s=%s\n", name, value) }
	set("FEIRA_URL", d.shop)
	set("FEIRA_KAFKA", strings.Join(in.kafka.Brokers(), ","))
	for _, s := range services {
		set("FEIRA_POSTGRES_"+strings.ToUpper(s.Name), in.postgres.DSN(s.Name))
	}
	set("FEIRA_POSTGRES_PROVIDER", in.postgres.DSN(providerDatabase))
	set("FEIRA_PROVIDER_URL", d.provider)
	set("FEIRA_PROVIDER_KEY", in.providerKey)
	set("FEIRA_JWKS", in.jwks)
	set("FEIRA_TOKEN_KEY", in.path("keys", "token.pem"))
	set("FEIRA_DEADLINE", d.opts.Deadline.String())
	set("FEIRA_HOLD", Hold.String())
	set("FEIRA_WINDOW", d.opts.Analytics.WithDefaults().Window.String())
	if d.opts.Fraud.Forget != 0 {
		set("FEIRA_FRAUD_FORGET", d.opts.Fraud.Forget.String())
	}
	if file := d.opts.FraudFiles.Thresholds; file != "" {
		set("FEIRA_FRAUD_THRESHOLDS", file)
	}
	if file := d.opts.FraudFiles.Model; file != "" {
		set("FEIRA_FRAUD_MODEL", file)
	}
	return b.String()
}

// readEnvironment reads what a run before wrote; nothing where there was none.
func readEnvironment(path string) map[string]string {
	values := map[string]string{}
	raw, err := os.ReadFile(path) //nolint:gosec // the demo's own folder
	if err != nil {
		return values
	}
	for line := range strings.Lines(string(raw)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			values[name] = value
		}
	}
	return values
}

// portOf is the port of an address, 0 when it has none.
func portOf(address string) int {
	u, err := url.Parse(address)
	if err != nil {
		return 0
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil {
		return 0
	}
	return int(port)
}
