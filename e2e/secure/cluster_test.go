//go:build e2e

package secure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	tcnetwork "github.com/testcontainers/testcontainers-go/network"

	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/kafka/kafkatest"
)

const (
	brokers  = 3
	user     = "feira"
	password = "open sesame, 7 times"
	// patience bounds everything that is waited for; images may be fetched meanwhile.
	patience = 5 * time.Minute
)

// The listeners of each broker, by their port in the container. Only setup is open to everybody: it is where the user
// is made, as an operator of a cluster does it on a broker's own machine.
var listeners = []struct {
	name, protocol string
	port           int
}{
	{"SIGNED", "SASL_SSL", 9092}, {"MUTUAL", "SSL", 9093}, {"SETUP", "PLAINTEXT", 9094}, {"BROKERS", "PLAINTEXT", 9095}, {"CONTROLLER", "PLAINTEXT", 9096},
}

// outside is how many of the listeners are for clients.
const outside = 3

// cluster is three brokers in containers of their own.
type cluster struct {
	authority *kafkatest.Authority
	network   *testcontainers.DockerNetwork
	nodes     []testcontainers.Container
	ports     [brokers][outside]int
}

// start starts the brokers and makes the user. All is removed with the test.
func start(ctx context.Context, t *testing.T) *cluster {
	t.Helper()
	image := imageOf(ctx, t)
	c := &cluster{authority: kafkatest.NewAuthority(t), nodes: make([]testcontainers.Container, brokers)}
	var err error
	if c.network, err = tcnetwork.New(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.network.Remove(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	for i := range c.ports {
		for l := range c.ports[i] {
			c.ports[i][l] = freePort(t)
		}
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i := range brokers {
		options := c.node(t, i)
		wg.Go(func() {
			node, err := testcontainers.Run(ctx, image, options...)
			mu.Lock()
			defer mu.Unlock()
			c.nodes[i] = node
			if err != nil {
				t.Errorf("start broker %d of image %s: %v", i+1, image, err)
			}
		})
	}
	wg.Wait()
	for _, n := range c.nodes {
		testcontainers.CleanupContainer(t, n)
	}
	if t.Failed() {
		t.FailNow()
	}
	t.Logf("%d brokers of image %s", brokers, image)
	c.ready(ctx, t)
	return c
}

// imageOf is the image that was asked for, or one that is on the machine, or the official one, which is fetched.
func imageOf(ctx context.Context, t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	docker, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err == nil {
		_, err = docker.Client.Ping(ctx, client.PingOptions{})
	}
	if err != nil {
		t.Fatalf("this test runs Kafka in containers, and Docker does not answer: start it, or point DOCKER_HOST at one that runs: %v", err)
	}
	if image := os.Getenv("KAFKA_IMAGE"); image != "" {
		return image
	}
	version := cmp.Or(os.Getenv("KAFKA"), "4.4.0")
	if built := "feira-kafka:" + version; func() bool { _, err := docker.ImageInspect(ctx, built); return err == nil }() {
		return built
	}
	return "apache/kafka:" + version
}

// node is how broker i runs.
func (c *cluster) node(t *testing.T, i int) []testcontainers.ContainerCustomizer {
	t.Helper()
	certificate, key := c.authority.Issue(t, nodeName(i), "127.0.0.1", nodeName(i))
	var pem strings.Builder
	for _, file := range []string{key, certificate} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pem.Write(content)
	}
	file := func(name, from, content string) testcontainers.ContainerFile {
		f := testcontainers.ContainerFile{HostFilePath: from, ContainerFilePath: "/etc/kafka/secrets/" + name, FileMode: 0o644}
		if content != "" {
			f.Reader = strings.NewReader(content)
		}
		return f
	}
	bindings, exposed := network.PortMap{}, []string{}
	for l, port := range c.ports[i] {
		inside := fmt.Sprintf("%d/tcp", listeners[l].port)
		exposed = append(exposed, inside)
		bindings[network.MustParsePort(inside)] = []network.PortBinding{{HostIP: netip.MustParseAddr("127.0.0.1"), HostPort: strconv.Itoa(port)}}
	}
	return []testcontainers.ContainerCustomizer{
		testcontainers.WithEnv(c.environment(i)), testcontainers.WithExposedPorts(exposed...),
		testcontainers.WithFiles(file("broker.pem", "", pem.String()), file("ca.pem", c.authority.File, "")),
		tcnetwork.WithNetwork([]string{nodeName(i)}, c.network),
		testcontainers.WithHostConfigModifier(func(h *container.HostConfig) { h.PortBindings = bindings }),
	}
}

func nodeName(i int) string { return fmt.Sprintf("kafka-%d", i+1) }

// environment configures broker i as the official image takes it.
func (c *cluster) environment(i int) map[string]string {
	var listen, advertise, protocols, voters []string
	for l, x := range listeners {
		listen = append(listen, fmt.Sprintf("%s://:%d", x.name, x.port))
		protocols = append(protocols, x.name+":"+x.protocol)
		switch {
		case l < outside:
			advertise = append(advertise, fmt.Sprintf("%s://127.0.0.1:%d", x.name, c.ports[i][l]))
		case x.name == "BROKERS":
			advertise = append(advertise, fmt.Sprintf("%s://%s:%d", x.name, nodeName(i), x.port))
		default:
			for n := range brokers {
				voters = append(voters, fmt.Sprintf("%d@%s:%d", n+1, nodeName(n), x.port))
			}
		}
	}
	return map[string]string{
		"KAFKA_NODE_ID": strconv.Itoa(i + 1), "KAFKA_PROCESS_ROLES": "broker,controller",
		"KAFKA_LISTENERS": strings.Join(listen, ","), "KAFKA_ADVERTISED_LISTENERS": strings.Join(advertise, ","),
		"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": strings.Join(protocols, ","),
		"KAFKA_INTER_BROKER_LISTENER_NAME":     "BROKERS", "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
		"KAFKA_CONTROLLER_QUORUM_VOTERS": strings.Join(voters, ","),
		"KAFKA_SSL_KEYSTORE_TYPE":        "PEM", "KAFKA_SSL_KEYSTORE_LOCATION": "/etc/kafka/secrets/broker.pem",
		"KAFKA_SSL_TRUSTSTORE_TYPE": "PEM", "KAFKA_SSL_TRUSTSTORE_LOCATION": "/etc/kafka/secrets/ca.pem",
		"KAFKA_LISTENER_NAME_MUTUAL_SSL_CLIENT_AUTH":                    "required",
		"KAFKA_SASL_ENABLED_MECHANISMS":                                 "SCRAM-SHA-512",
		"KAFKA_LISTENER_NAME_SIGNED_SCRAM___SHA___512_SASL_JAAS_CONFIG": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
		// A connection whose client does not sign in again in time is ended by the broker.
		"KAFKA_CONNECTIONS_MAX_REAUTH_MS":        strconv.FormatInt(signInAgain.Milliseconds(), 10),
		"KAFKA_AUTO_CREATE_TOPICS_ENABLE":        "false",
		"KAFKA_BROKER_SESSION_TIMEOUT_MS":        "2000", // how soon a killed broker is noticed
		"KAFKA_BROKER_HEARTBEAT_INTERVAL_MS":     "500",
		"KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
		"KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS":     "6",
		// Three virtual machines that live for a minute do not repay the time to optimise them.
		"KAFKA_JVM_PERFORMANCE_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
		"KAFKA_HEAP_OPTS":            "-Xms128m -Xmx384m",
	}
}

// ready waits until all brokers are there and the user can sign in at each.
func (c *cluster) ready(ctx context.Context, t *testing.T) {
	t.Helper()
	eventually(ctx, t, "the brokers and their user", func() error {
		client, err := kafka.NewClient(c.config("SETUP"))
		if err != nil {
			return err
		}
		defer func() { _ = client.Close() }()
		if n := len(client.Brokers()); n != brokers {
			return fmt.Errorf("%d brokers", n)
		}
		admin, err := sarama.NewClusterAdminFromClient(client)
		if err != nil {
			return err
		}
		results, err := admin.UpsertUserScramCredentials([]sarama.AlterUserScramCredentialsUpsert{{
			Name: user, Mechanism: sarama.SCRAM_MECHANISM_SHA_512, Iterations: 8192, Salt: []byte("salt of the user"), Password: []byte(password),
		}})
		for _, r := range results {
			if r.ErrorCode != sarama.ErrNoError {
				err = errors.Join(err, r.ErrorCode)
			}
		}
		if err != nil {
			return err
		}
		for i := range brokers {
			cfg := c.signed()
			cfg.Brokers = cfg.Brokers[i : i+1]
			client, err := kafka.NewClient(cfg)
			if err != nil {
				return err
			}
			_ = client.Close()
		}
		return nil
	})
}

// config knows a listener's addresses and nothing else.
func (c *cluster) config(listener string) kafka.Config {
	cfg := kafka.Config{ClientID: "secure"}
	for l := range outside {
		for i := range brokers {
			if listeners[l].name == listener {
				cfg.Brokers = append(cfg.Brokers, net.JoinHostPort("127.0.0.1", strconv.Itoa(c.ports[i][l])))
			}
		}
	}
	return cfg
}

// signed connects as services do.
func (c *cluster) signed() kafka.Config {
	cfg := c.config("SIGNED")
	cfg.TLS = kafka.TLS{Enabled: true, CA: c.authority.File}
	cfg.SASL = kafka.SASL{Mechanism: "scram-sha-512", User: user, Password: password}
	return cfg
}

// kill ends a broker as a power cut would.
func (c *cluster) kill(ctx context.Context, t *testing.T, i int) {
	t.Helper()
	now := time.Duration(0)
	if err := c.nodes[i].Stop(ctx, &now); err != nil {
		t.Fatal(err)
	}
}

// eventually polls until the condition holds.
func eventually(ctx context.Context, t *testing.T, what string, condition func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for err := condition(); err != nil; err = condition() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s: %v", what, err)
		}
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}
