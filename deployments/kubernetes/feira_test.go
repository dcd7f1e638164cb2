package kubernetes

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// root is the main module, whose program the manifests run.
const root = "../.."

// program is the built feira. What it says of itself is what the manifests are held to.
type program struct {
	path    string
	address string // of a running gateway

	mu   sync.Mutex
	envs map[string][]string // by command
}

var shared struct {
	sync.Once
	program
	stop func()
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.stop != nil {
		shared.stop()
	}
	os.Exit(code)
}

// feira builds the program once and starts its gateway, which needs neither Kafka nor Postgres.
func feira(t *testing.T) *program {
	t.Helper()
	shared.Do(func() { shared.stop, shared.err = shared.start() })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return &shared.program
}

func (f *program) start() (stop func(), err error) {
	dir, err := os.MkdirTemp("", "feira-manifests-")
	if err != nil {
		return nil, err
	}
	stop = func() { _ = os.RemoveAll(dir) }
	f.path, f.envs = filepath.Join(dir, "feira"), map[string][]string{}
	compile := exec.Command("go", "build", "-o", f.path, "./cmd/feira")
	compile.Dir = root
	if out, err := compile.CombinedOutput(); err != nil {
		return stop, fmt.Errorf("build feira: %w\n%s", err, out)
	}
	gateway := exec.Command(f.path, "run", "gateway")
	gateway.Env = []string{"FEIRA_LISTEN=127.0.0.1:0", "FEIRA_UPSTREAMS=orders=127.0.0.1:1", "FEIRA_LOG_FORMAT=json"}
	log, err := gateway.StderrPipe()
	if err != nil {
		return stop, err
	}
	if err := gateway.Start(); err != nil {
		return stop, err
	}
	stop = func() {
		_ = gateway.Process.Kill()
		_ = gateway.Wait()
		_ = os.RemoveAll(dir)
	}
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		var line struct{ Msg, Listen string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Listen != "" {
			f.address = line.Listen
			go func() { // so that it can always write
				for lines.Scan() {
				}
			}()
			return stop, nil
		}
	}
	return stop, errors.New("the gateway did not say where it listens")
}

// serves says whether a process of feira answers a path. All have the same paths beside the API.
func (f *program) serves(path string) bool {
	res, err := http.Get("http://" + f.address + path)
	if err != nil {
		return false
	}
	_ = res.Body.Close()
	return res.StatusCode == http.StatusOK
}

var variable = regexp.MustCompile(`\$(FEIRA_[A-Z_]+)`)

// knows says whether a command has a flag for a variable.
func (f *program) knows(command []string, env string) bool {
	if strings.HasPrefix(env, "OTEL_") || env == "GOMEMLIMIT" {
		return true // read by libraries, not flags
	}
	if after, ok := strings.CutPrefix(env, "FEIRA_POSTGRES_"); ok && slices.Contains(command, strings.ToLower(after)) {
		return true // of the service that is run or migrated
	}
	key := strings.Join(command, " ")
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.envs[key] == nil {
		help, err := exec.Command(f.path, append(slices.Clone(command), "--help")...).CombinedOutput()
		if err != nil {
			return false
		}
		for _, found := range variable.FindAllStringSubmatch(string(help), -1) {
			f.envs[key] = append(f.envs[key], found[1])
		}
	}
	return slices.Contains(f.envs[key], env)
}

// try runs a command until it fails, and returns what it says.
func (f *program) try(args, env []string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, f.path, args...)
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return "feira still ran after 20 s: " + string(out)
	}
	if err == nil {
		return "feira did its work: " + string(out)
	}
	return string(out)
}

var known = regexp.MustCompile(`the services are ([a-z, ]+)`)

// services are the shop's, as the program lists them.
func (f *program) services(t *testing.T) []string {
	t.Helper()
	found := known.FindStringSubmatch(f.try([]string{"migrate", "no-such-service"}, nil))
	if found == nil {
		t.Fatal("feira did not list its services")
	}
	return strings.Split(found[1], ", ")
}

// withAPI are the services that have a part in the API.
func withAPI(t *testing.T) (names []string) {
	t.Helper()
	var spec struct{ Tags []struct{ Name string } }
	read(t, "api/openapi.yaml", &spec)
	for _, tag := range spec.Tags {
		names = append(names, tag.Name)
	}
	return names
}

// partitions is the least number of partitions of what services write: more replicas than that are idle.
func partitions(t *testing.T) int32 {
	t.Helper()
	var contract struct {
		Channels map[string]struct {
			Bindings struct {
				Kafka struct {
					Topic      string
					Partitions int32
				}
			}
		}
	}
	read(t, "shared/events/asyncapi.yaml", &contract)
	var least int32
	for _, c := range contract.Channels {
		k := c.Bindings.Kafka
		if k.Topic != "eventos-usuario" && k.Partitions > 0 && (least == 0 || k.Partitions < least) {
			least = k.Partitions
		}
	}
	if least == 0 {
		t.Fatal("no partitions in the contract of the topics")
	}
	return least
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(raw, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
