//go:build e2e

package compose

import (
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// These hold for the images that make images builds, and for the originals whose settings they take.

// alone runs a container outside of the stack until the test ends, and gives its id.
func alone(t *testing.T, service string, args ...string) string {
	t.Helper()
	image, err := shop.image(t.Context(), service)
	if err != nil {
		t.Fatal(err)
	}
	id, err := shop.docker(t.Context(), append(append([]string{"run", "--detach"}, args...), image)...)
	if err != nil {
		t.Fatal(err)
	}
	id = strings.TrimSpace(id)
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := shop.docker(ctx, "logs", "--tail", "30", id)
			t.Log(out)
		}
		if _, err := shop.docker(ctx, "rm", "--force", "--volumes", id); err != nil {
			t.Error(err)
		}
	})
	return id
}

// inside runs a command in a container; it must succeed.
func inside(t *testing.T, id string, command ...string) string {
	t.Helper()
	out, err := shop.docker(t.Context(), append([]string{"exec", id}, command...)...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// answers waits until a command in a container succeeds.
func answers(t *testing.T, id string, command ...string) {
	t.Helper()
	eventually(t, strings.Join(command, " "), func() (bool, string) {
		out, err := shop.docker(t.Context(), append([]string{"exec", id}, command...)...)
		return err == nil, out
	})
}

func TestThePostgresImageTakesTheOriginalsSettings(t *testing.T) {
	first := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(first, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // whatever the umask is
			t.Fatal(err)
		}
		return path
	}
	if err := os.Chmod(first, 0o755); err != nil {
		t.Fatal(err)
	}
	write("1.sql", "create table said (by text);", 0o644)
	write("2.sh", "#!/bin/bash\npsql --username \"$POSTGRES_USER\" --dbname \"$POSTGRES_DB\" -c \"insert into said values ('script')\"\n", 0o755)
	var packed strings.Builder
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte("insert into said values ('packed');\n"))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	write("3.sql.gz", packed.String(), 0o644)
	password := write("password", "it's $ecret\n", 0o644)
	id := alone(t, "postgres", "--env", "POSTGRES_USER=ana", "--env", "POSTGRES_DB=shop", "--env", "POSTGRES_PASSWORD_FILE=/password",
		"--volume", password+":/password:ro", "--volume", first+":/docker-entrypoint-initdb.d:ro")
	ask := func(password string) []string {
		return []string{"bash", "-c", `PGPASSWORD="$1" psql -h "$(hostname -i)" -U ana shop -Atc "select string_agg(by, ',' order by by) from said"`, "bash", password}
	}
	answers(t, id, "pg_isready", "--quiet", "--host=127.0.0.1")
	if got := inside(t, id, ask("it's $ecret")...); got != "packed,script" {
		t.Errorf("the first steps left %q", got)
	}
	if out, err := shop.docker(t.Context(), append([]string{"exec", id}, ask("other")...)...); err == nil || !strings.Contains(err.Error(), "password authentication failed") {
		t.Errorf("another password: %q %v", out, err)
	}
	if _, err := shop.docker(t.Context(), "restart", id); err != nil {
		t.Fatal(err)
	}
	answers(t, id, "pg_isready", "--quiet", "--host=127.0.0.1")
	if got := inside(t, id, ask("it's $ecret")...); got != "packed,script" {
		t.Errorf("after a restart there is %q", got)
	}
}

func TestThePostgresImageAsksForAPassword(t *testing.T) {
	id := alone(t, "postgres")
	if code, err := shop.docker(t.Context(), "wait", id); err != nil || strings.TrimSpace(code) != "1" {
		t.Errorf("exit code %s %v", code, err)
	}
}

func TestTheKafkaImageTakesTheOriginalsSettings(t *testing.T) {
	const tools, here = "/opt/kafka/bin/", "--bootstrap-server=localhost:9092"
	usual, chosen := alone(t, "kafka"), alone(t, "kafka",
		"--env", "KAFKA_NODE_ID=7", "--env", "KAFKA_PROCESS_ROLES=broker,controller", "--env", "KAFKA_CONTROLLER_QUORUM_VOTERS=7@localhost:9093",
		"--env", "KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER", "--env", "KAFKA_LISTENERS=PLAINTEXT://:9092,CONTROLLER://:9093",
		"--env", "KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:9092", "--env", "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1",
		"--env", "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT", "--env", "KAFKA_NUM_PARTITIONS=5")
	listens := []string{"bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/9092"} // quicker than any tool
	for id, partitions := range map[string]string{usual: "1", chosen: "5"} {
		answers(t, id, listens...)
		inside(t, id, tools+"kafka-topics.sh", here, "--create", "--topic", "said")
		// The broker's own folders say how many there are.
		if got := inside(t, id, "bash", "-c", "ls -d /tmp/kraft-combined-logs/said-* /tmp/kafka-logs/said-* 2>/dev/null | wc -l"); got != partitions {
			t.Errorf("%s partitions instead of %s", got, partitions)
		}
	}
	inside(t, chosen, "bash", "-c", "echo hello | "+tools+"kafka-console-producer.sh "+here+" --topic said")
	if _, err := shop.docker(t.Context(), "restart", chosen); err != nil {
		t.Fatal(err)
	}
	answers(t, chosen, listens...)
	if got := inside(t, chosen, tools+"kafka-console-consumer.sh", here, "--topic", "said", "--from-beginning", "--max-messages", "1", "--timeout-ms", "20000"); got != "hello" {
		t.Errorf("after a restart it says %q", got)
	}
}
