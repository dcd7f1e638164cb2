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

// brokers says where Kafka is, and how to connect.
type brokers struct {
	Kafka        []string     `group:"Kafka:" env:"FEIRA_KAFKA" default:"127.0.0.1:9092" help:"Addresses of Kafka brokers."`
	TLS          bool         `group:"Kafka:" name:"kafka-tls" env:"FEIRA_KAFKA_TLS" help:"Encrypt the connections."`
	CA           string       `group:"Kafka:" name:"kafka-ca" env:"FEIRA_KAFKA_CA" placeholder:"FILE" help:"Authorities (PEM) that sign the brokers' certificates (default: the system's)."`
	Cert         string       `group:"Kafka:" name:"kafka-cert" env:"FEIRA_KAFKA_CERT" placeholder:"FILE" help:"Certificate (PEM) to show to brokers that ask for one."`
	Key          string       `group:"Kafka:" name:"kafka-key" env:"FEIRA_KAFKA_KEY" placeholder:"FILE" help:"Its private key (PEM)."`
	ServerName   string       `group:"Kafka:" name:"kafka-server-name" env:"FEIRA_KAFKA_SERVER_NAME" placeholder:"NAME" help:"Name that the brokers' certificates carry (default: the host of each address)."`
	SASL         string       `group:"Kafka:" name:"kafka-sasl" env:"FEIRA_KAFKA_SASL" placeholder:"MECHANISM" help:"Sign in by scram-sha-512, scram-sha-256, or plain, which needs TLS (default: do not sign in)."`
	User         string       `group:"Kafka:" name:"kafka-user" env:"FEIRA_KAFKA_USER" placeholder:"NAME" help:"Who signs in."`
	Password     kafka.Secret `group:"Kafka:" name:"kafka-password" env:"FEIRA_KAFKA_PASSWORD" placeholder:"SECRET" help:"The password. A flag shows in the list of processes; rather use the variable, or a file."`
	PasswordFile string       `group:"Kafka:" name:"kafka-password-file" env:"FEIRA_KAFKA_PASSWORD_FILE" placeholder:"FILE" help:"File that holds the password."`
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
	return kafka.Config{
		Brokers: c.Kafka, ClientID: client,
		TLS:  kafka.TLS{Enabled: c.TLS, CA: c.CA, Cert: c.Cert, Key: c.Key, ServerName: c.ServerName},
		SASL: kafka.SASL{Mechanism: c.SASL, User: c.User, Password: c.Password},
	}
}

// AfterApply reads the password's file and refuses settings that cannot work, before anything is started.
func (c *brokers) AfterApply() error {
	if c.PasswordFile != "" {
		if c.Password != "" {
			return errors.New("the password is given twice: by --kafka-password (FEIRA_KAFKA_PASSWORD) and by --kafka-password-file (FEIRA_KAFKA_PASSWORD_FILE); leave one out")
		}
		password, err := os.ReadFile(c.PasswordFile)
		if err != nil {
			return fmt.Errorf("--kafka-password-file (FEIRA_KAFKA_PASSWORD_FILE): %w", err)
		}
		c.Password = kafka.Secret(strings.TrimRight(string(password), "\r\n"))
	}
	return c.kafka("").Validate()
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
