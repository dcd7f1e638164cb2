//go:build e2e

package compose

import (
	"encoding/json"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/api"
	shops "github.com/feira-shop/feira/internal/shop"
)

// everything that runs all the time.
func services() []string {
	return append([]string{"kafka", "postgres", "gateway", "provider"}, shops.Names()...)
}

func TestACheckoutOverThePublicAddress(t *testing.T) {
	o, token := buy(t, "first")
	if o.Status != api.OrderStatusConfirmed {
		t.Errorf("the order is %s %s", o.Status, o.Reason)
	}
	if again, _ := buy(t, "first"); again.Id != o.Id {
		t.Errorf("the same key made another order: %s, %s", again.Id, o.Id)
	}
	if token != strings.TrimSpace(token) || strings.Count(token, ".") != 2 {
		t.Errorf("feira token printed %q", token)
	}
	verified(t)
}

// Every login opens its own database, and no other one. The server's own are closed, too.
func TestNoLoginOpensAnothersDatabase(t *testing.T) {
	names := append([]string{"provider"}, shops.Names()...)
	for _, login := range names {
		dsn, err := shop.address(login)
		if err != nil {
			t.Fatal(err)
		}
		for _, database := range append([]string{"postgres", "template1"}, names...) {
			cfg, err := pgx.ParseConfig(dsn)
			if err != nil {
				t.Fatal(err)
			}
			cfg.Database = database
			conn, err := pgx.ConnectConfig(t.Context(), cfg)
			if err == nil {
				_ = conn.Close(t.Context())
			}
			if own := login == database; own != (err == nil) {
				t.Errorf("%s connects to %s: %v", login, database, err)
			} else if !own && !strings.Contains(err.Error(), "42501") {
				t.Errorf("%s is kept out of %s by something else: %v", login, database, err)
			}
		}
	}
}

// A service finds its own secrets only, as nobody but itself; and nothing but the documented ports is open here.
func TestContainersAreClosed(t *testing.T) {
	all, err := shop.containers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		h := c.HostConfig
		if !slices.Contains(h.SecurityOpt, "no-new-privileges:true") || !slices.Contains(h.CapDrop, "ALL") || h.Memory == 0 || h.NanoCpus == 0 || h.PidsLimit == 0 {
			t.Errorf("%s has privileges or no limits: %+v", c.Name, h)
		}
		if h.LogConfig.Config["max-size"] == "" {
			t.Errorf("%s may fill the disk with its log", c.Name)
		}
		service := c.Config.Labels["com.docker.compose.service"]
		feira := !slices.Contains([]string{"kafka", "postgres"}, service)
		if feira && !h.ReadonlyRootfs {
			t.Errorf("%s may write to its image", c.Name)
		}
		if feira && c.Config.User != "65532:65532" && service != "setup" {
			t.Errorf("%s runs as %q", c.Name, c.Config.User)
		}
		for _, m := range c.Mounts {
			secrets, ok := strings.CutPrefix(m.Name, project+"_secrets-")
			if ok && slices.Contains(shops.Names(), service) && secrets != service {
				t.Errorf("%s sees the secrets of %s", c.Name, secrets)
			}
		}
		for port, hosts := range c.NetworkSettings.Ports {
			for _, host := range hosts {
				if !net.ParseIP(host.HostIP).IsLoopback() {
					t.Errorf("%s publishes %s on %s", c.Name, port, host.HostIP)
				}
			}
		}
	}
}

// Every profile is a valid file, the files of this repository that its containers read are there, and of the services
// only payments reaches the payment provider.
func TestEveryProfileIsComplete(t *testing.T) {
	var file struct {
		Services map[string]struct {
			Volumes  []struct{ Type, Source string }
			Networks map[string]any
		}
	}
	if err := json.Unmarshal([]byte(shop.must(t, "--profile", "*", "config", "--format", "json")), &file); err != nil {
		t.Fatal(err)
	}
	for _, service := range []string{"load", "feira", "console", "prometheus", "grafana", "collector", "tempo"} {
		if _, ok := file.Services[service]; !ok {
			t.Errorf("no profile has %s", service)
		}
	}
	for name, service := range file.Services {
		_, reaches := service.Networks["bank"]
		if may := slices.Contains([]string{"payments", "provider", "postgres", "prometheus", "collector"}, name); reaches != may {
			t.Errorf("%s reaches the payment provider: %t", name, reaches)
		}
		for _, v := range service.Volumes {
			if _, err := os.Stat(v.Source); v.Type == "bind" && err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Steps that are done again change nothing: no container is made anew, and old tokens hold.
func TestASecondUpChangesNothing(t *testing.T) {
	_, token := buy(t, "before the second up")
	before := began(t)
	shop.must(t, "up", "--wait")
	if after := began(t); !slices.Equal(before, after) {
		t.Errorf("containers were started again:\n%v\n%v", before, after)
	}
	for step, said := range map[string]string{"setup": "all secrets are there", "databases": "all databases are there"} {
		if log := shop.must(t, "logs", "--no-log-prefix", "--tail", "1", step); !strings.Contains(log, said) {
			t.Errorf("%s said %q", step, log)
		}
	}
	if o, _ := buyWith(t, token, "after the second up"); o.Status != api.OrderStatusConfirmed {
		t.Errorf("with the old token the order is %s", o.Status)
	}
}

// began says when each container that runs all the time was started.
func began(t *testing.T) (list []string) {
	t.Helper()
	all, err := shop.containers(t.Context(), services()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		list = append(list, c.Name+" "+c.State.StartedAt.Format(time.RFC3339Nano))
	}
	slices.Sort(list)
	return list
}
