package demo

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/pg"
)

func valid() Options {
	return Options{Listen: "127.0.0.1:0", KafkaListen: "127.0.0.1:0", Shoppers: 2, Deadline: time.Second}
}

func TestOptionsAreCheckedBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	if err := valid().validate(); err != nil {
		t.Fatal(err)
	}
	for flag, change := range map[string]func(*Options){
		"--listen":          func(o *Options) { o.Listen = "8080" },
		"--kafka-listen":    func(o *Options) { o.KafkaListen = "" },
		"--shoppers -1":     func(o *Options) { o.Shoppers = -1 },
		"--shoppers 1001":   func(o *Options) { o.Shoppers = 1001 },
		"--shoppers NaN":    func(o *Options) { o.Shoppers = math.NaN() },
		"--for":             func(o *Options) { o.For = -1 },
		"--deadline":        func(o *Options) { o.Deadline = time.Second - 1 },
		"--without":         func(o *Options) { o.Without = []string{"nobody"} },
		"--without orders:": func(o *Options) { o.Without = []string{"orders"} },
	} {
		o := valid()
		change(&o)
		if err := o.validate(); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

func TestFailuresOfTheOptionsSayWhatToDo(t *testing.T) {
	t.Parallel()
	o := Options{Data: "/data"}
	for _, c := range []struct {
		err  error
		says []string
	}{
		{&kafka.AddressInUseError{Address: "127.0.0.1:9092"}, []string{"127.0.0.1:9092", "--kafka-listen"}},
		{&kafka.DataDirInUseError{Dir: "/data/kafka"}, []string{"/data", "another demo", "--data"}},
		{&pg.InUseError{Dir: "/data/postgres", PID: 42}, []string{"process 42", "/data", "--data"}},
		{&pg.DirError{Dir: "/data/postgres", Reason: "closed", Do: "open it"}, []string{"closed", "open it", "--data"}},
		{&fs.PathError{Op: "open", Path: "/data/keys", Err: fs.ErrPermission}, []string{"/data/keys", "permission denied", "--data"}},
	} {
		got := o.explain(fmt.Errorf("wrapped: %w", c.err)).Error()
		for _, text := range c.says {
			if !strings.Contains(got, text) {
				t.Errorf("%T: %q does not say %q", c.err, got, text)
			}
		}
	}
	if refused := error(&folderError{"/data", fs.ErrPermission}); o.explain(refused) != refused { //nolint:errorlint // the very same
		t.Error("a folder was refused twice")
	}
	if other := errors.New("other"); o.explain(other) != other { //nolint:errorlint // the very same
		t.Error("another failure was changed")
	}
}

func TestAddressesOfTheRunBeforeAreFoundAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), environmentFile)
	if got := readEnvironment(path); len(got) != 0 {
		t.Errorf("without a run before: %v", got)
	}
	text := "FEIRA_PROVIDER_URL=http://127.0.0.1:4242\nFEIRA_POSTGRES_PROVIDER=postgres://p:x=y@127.0.0.1:5433/provider?sslmode=disable\nnonsense\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := readEnvironment(path)
	if p := portOf(got["FEIRA_PROVIDER_URL"]); p != 4242 {
		t.Errorf("the provider's port is %d", p)
	}
	if p := portOf(got["FEIRA_POSTGRES_PROVIDER"]); p != 5433 {
		t.Errorf("Postgres' port is %d", p)
	}
	for _, address := range []string{"", "http://127.0.0.1", "://", "http://127.0.0.1:70000"} {
		if p := portOf(address); p != 0 {
			t.Errorf("%q has port %d", address, p)
		}
	}
}

func TestAnAddressForEverywhereIsShownAsOneToConnectTo(t *testing.T) {
	t.Parallel()
	for ip, want := range map[string]string{"0.0.0.0": "127.0.0.1:80", "::": "127.0.0.1:80", "127.0.0.1": "127.0.0.1:80", "::1": "[::1]:80"} {
		if got := reachable(&net.TCPAddr{IP: net.ParseIP(ip), Port: 80}); got != want {
			t.Errorf("%s: %s, expected %s", ip, got, want)
		}
	}
}
