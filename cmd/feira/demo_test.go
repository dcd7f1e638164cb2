package main_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// occupied is an address that is taken for as long as the test runs.
func occupied(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

func TestADemoSaysWhichAddressIsTaken(t *testing.T) {
	t.Parallel()
	taken := occupied(t)
	call(t, nil, "demo", "--listen="+taken, "--kafka-listen=127.0.0.1:0").fails(t, taken, "--listen", "stop it")
	call(t, nil, "demo", "--listen=127.0.0.1:0", "--kafka-listen="+taken).fails(t, taken, "--kafka-listen", "stop it")
	call(t, []string{"FEIRA_POSTGRES=postgres://127.0.0.1:1/{service}"}, "run", "gateway", "--upstreams=orders="+taken, "--listen="+taken).fails(t, taken, "--listen")
}

// Data of a Postgres that this machine does not have is not left aside for an empty database.
func TestADemoWithoutPostgresSaysWhatToInstall(t *testing.T) {
	t.Parallel()
	dir := newFolder(t)
	version := filepath.Join(dir, "postgres", "99", "PG_VERSION")
	if err := os.MkdirAll(filepath.Dir(version), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(version, []byte("99\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	call(t, nil, "demo", "--listen=127.0.0.1:0", "--kafka-listen=127.0.0.1:0", "--data="+dir).
		fails(t, "Postgres 99", "apt-get install postgresql", "brew install postgresql", "FEIRA_MAVEN_URL")
}

// A demo stops at once at Ctrl-C, also while browsers look at its page and a provider's answer is late on purpose.
// Its folder belongs to it until then, and to the next one afterwards, which finds everything where it was.
func TestADemoStopsAndGoesOn(t *testing.T) {
	t.Parallel()
	dir := newFolder(t)
	demo := startDemo(t, dir, "--shoppers=20")
	again := call(t, nil, "demo", "--listen=127.0.0.1:0", "--kafka-listen=127.0.0.1:0", "--data="+dir)
	again.fails(t, "another demo", dir, "--data")

	shop := demo.env["FEIRA_URL"]
	token := demo.token(t)
	for path, kind := range map[string]string{"/": "text/html", "/docs": "text/html", "/metrics": "text/plain", "/readyz": "application/json"} {
		if res := send(t, http.MethodGet, shop+path, token, "", nil, nil); res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Type"), kind) {
			t.Errorf("%s: %s, %s", path, res.Status, res.Header.Get("Content-Type"))
		}
	}
	live, err := http.Get(shop + "/live")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = live.Body.Close() }()
	bought, _ := checkout(t, shop, token, "before-the-stop", 5)
	code, took := demo.stop(syscall.SIGINT)
	log, err := os.ReadFile(filepath.Join(dir, "feira.log"))
	if code != 0 || err != nil || strings.Contains(string(log), "cut off") {
		t.Errorf("SIGINT: exit code %d after %s, %v; requests were cut off: %t", code, took, err, strings.Contains(string(log), "cut off"))
	}
	t.Logf("stopped within %s", took.Round(time.Millisecond))

	before := demo.env
	began := time.Now()
	demo = startDemo(t, dir, "--shoppers=0", "--for=1h")
	t.Logf("second start: %s", time.Since(began).Round(time.Millisecond))
	for _, name := range []string{"FEIRA_POSTGRES_ORDERS", "FEIRA_PROVIDER_URL", "FEIRA_PROVIDER_KEY"} {
		if demo.env[name] != before[name] {
			t.Errorf("%s was %s and is %s", name, before[name], demo.env[name])
		}
	}
	if o := order(t, demo.env["FEIRA_URL"], token, bought.Id); o.Id != bought.Id || o.Version < bought.Version {
		t.Errorf("the order was %+v, after the start it is %+v", bought, o)
	}
	if code, _ := demo.stop(syscall.SIGTERM); code != 1 {
		t.Errorf("a demo that was to verify and did not: exit code %d", code)
	}
	has(t, demo.out.String(), "nothing was verified")
}
