package kubernetes

import (
	"slices"
	"testing"
)

// overlays are what there is to apply, and production with traces.
var overlays = map[string]string{
	"development": "overlays/development",
	"production":  "overlays/production",
	"traced":      "testdata/traced",
}

// check holds a rendered overlay to everything that can be known of it without a cluster.
func check(t *testing.T, overlay, text string) (findings []string) {
	t.Helper()
	f := feira(t)
	shop, api := f.services(t), withAPI(t)
	c, findings := decode(t, text)
	for _, found := range [][]string{
		workloads(c), services(c), ingresses(c), budgets(c), scaling(c, partitions(t)), monitors(c),
		restricted(c), probes(c, f.serves), literals(c, text), references(c),
		complete(c, shop), environment(c, f), upstreams(c, api), network(c, wanted(overlay, shop, api)),
	} {
		findings = append(findings, found...)
	}
	if overlay == "development" {
		return findings
	}
	return append(findings, safe(c)...)
}

func TestManifests(t *testing.T) {
	t.Parallel()
	for overlay, dir := range overlays {
		t.Run(overlay, func(t *testing.T) {
			t.Parallel()
			for _, finding := range check(t, overlay, build(t, dir)) {
				t.Error(finding)
			}
		})
	}
}

// wanted is who may speak to whom, and nobody else.
func wanted(overlay string, shop, api []string) []string {
	kafka, postgres, provider := "192.0.2.0/26:9093", "192.0.2.64/26:5432", "192.0.2.128/26:443"
	var list []string
	clients := []string{"gateway", "topics"}
	if overlay == "development" {
		kafka, postgres, provider = "kafka:9092", "postgres:5432", "provider:8081"
		clients = append(clients, "kafka", "postgres", "provider", "databases")
		list = append(list, "provider → "+postgres, "databases → "+postgres)
	}
	for _, s := range shop {
		clients = append(clients, s, "migrate-"+s)
		list = append(list, s+" → "+kafka, s+" → "+postgres, "migrate-"+s+" → "+postgres, "monitoring/prometheus → "+s+":8081")
		if slices.Contains(api, s) {
			list = append(list, "gateway → "+s+":8081")
		}
	}
	for _, client := range clients {
		list = append(list, client+" → kube-system/kube-dns:53")
	}
	if overlay == "traced" {
		for _, s := range slices.Concat(shop, []string{"gateway"}) {
			list = append(list, s+" → monitoring/otel-collector:4318")
		}
	}
	return append(list, "topics → "+kafka, "payments → "+provider,
		"ingress-nginx → gateway:8080", "monitoring/prometheus → gateway:8080")
}
