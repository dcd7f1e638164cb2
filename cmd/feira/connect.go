package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/feira-shop/feira/shared/kafka"
)

// databases says where the services' databases are.
type databases struct {
	Postgres string `env:"FEIRA_POSTGRES" placeholder:"DSN" help:"Address of the databases, postgres://…/{service}: {service} stands for the service's name. A variable FEIRA_POSTGRES_<SERVICE> gives one its own."`
}

// brokers says where Kafka is.
type brokers struct {
	Kafka []string `env:"FEIRA_KAFKA" default:"127.0.0.1:9092" help:"Addresses of Kafka brokers."`
}

// dsn is the address of a service's database.
func (c databases) dsn(service string) (string, error) {
	own := "FEIRA_POSTGRES_" + strings.ToUpper(service)
	if v := os.Getenv(own); v != "" {
		return v, nil
	}
	if c.Postgres == "" {
		return "", fmt.Errorf("no address for the database of %s: name a file of addresses with --env-file, such as a demo's feira.env, or set %s, or --postgres with {service} in it", service, own)
	}
	if !strings.Contains(c.Postgres, "{service}") {
		return "", errors.New("--postgres needs {service} in it: every service has a database of its own")
	}
	return strings.ReplaceAll(c.Postgres, "{service}", service), nil
}

func (c brokers) kafka(client string) kafka.Config {
	return kafka.Config{Brokers: c.Kafka, ClientID: client}
}

// loadEnv sets variables from the file named by --env-file or FEIRA_ENV_FILE, before flags are parsed. What is set
// already stays.
func loadEnv(args []string) error {
	path := os.Getenv("FEIRA_ENV_FILE")
	for i, a := range args {
		if v, ok := strings.CutPrefix(a, "--env-file="); ok {
			path = v
		} else if a == "--env-file" && i+1 < len(args) {
			path = args[i+1]
		}
	}
	if path == "" {
		return nil
	}
	f, err := os.Open(path) //nolint:gosec // the user names it
	if err != nil {
		return fmt.Errorf("read the addresses (--env-file, FEIRA_ENV_FILE): %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			return fmt.Errorf("%s:%d: %q is not NAME=value", path, n, line)
		}
		if os.Getenv(name) == "" {
			if err := os.Setenv(name, value); err != nil {
				return fmt.Errorf("%s:%d: %w", path, n, err)
			}
		}
	}
	return lines.Err()
}
