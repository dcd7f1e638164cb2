//go:build e2e

package compose

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A click goes in at the public address, through Kafka, and is counted in the database of analytics: the gateway, the
// service's network, its login and its topic are all as they must be.
func TestClicksAreCounted(t *testing.T) {
	token := strings.TrimSpace(shop.feira(t, "token", "--sub=ana"))
	const clicks = 20
	for range clicks {
		body := fmt.Sprintf(`{"id_usuario": 42, "acao": "compose", "timestamp": %d}`, time.Now().Unix())
		if status, answer := call(t, token, http.MethodPost, "/v1/clicks", body); status != http.StatusAccepted {
			t.Fatalf("%d %s", status, answer)
		}
	}
	eventually(t, "every click to be counted", func() (bool, string) {
		status, answer := call(t, token, http.MethodGet, "/v1/analytics/clicks?acao=compose", "")
		var page struct{ Total int }
		if err := json.Unmarshal([]byte(answer), &page); err != nil || status != http.StatusOK {
			return false, fmt.Sprint(status, answer, err)
		}
		if page.Total > clicks {
			t.Fatalf("%d clicks were sent, and %d are counted", clicks, page.Total)
		}
		return page.Total == clicks, answer
	})
}

// call asks the shop's public address.
func call(t *testing.T, token, method, path, body string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, shop.shop+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(raw)
}
