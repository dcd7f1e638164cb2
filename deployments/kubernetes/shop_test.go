package kubernetes

import (
	"fmt"
	"net"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// complete: every service of the shop has all its parts, and nothing else says it is one.
func complete(c cluster, shop []string) (findings []string) {
	for _, s := range shop {
		if _, ok := named[*appsv1.StatefulSet](c, s); !ok {
			findings = append(findings, fmt.Sprintf("the service %s has no StatefulSet: it needs a folder in base", s))
		}
		if _, ok := named[*batchv1.Job](c, "migrate-"+s); !ok {
			findings = append(findings, fmt.Sprintf("the service %s has no Job migrate-%s", s, s))
		}
	}
	for _, p := range c.pods {
		own := p.Labels["app.kubernetes.io/name"]
		switch p.component() {
		case "service", "migrate":
			if !slices.Contains(shop, own) {
				findings = append(findings, fmt.Sprintf("%s: the shop has no service %q", p.owner, own))
			}
			if args := p.Spec.Containers[0].Args; len(args) < 2 || args[1] != own {
				findings = append(findings, fmt.Sprintf("%s: is named %q and runs %q", p.owner, own, args))
			}
		case "gateway", "topics", "databases", "provider", "kafka", "postgres":
		default:
			findings = append(findings, fmt.Sprintf("%s: unknown component %q", p.owner, p.component()))
		}
	}
	return findings
}

// environment: variables are those that feira's command has, and say what the manifest says elsewhere.
func environment(c cluster, f *program) (findings []string) {
	for _, p := range c.pods {
		if !p.feira() {
			continue
		}
		k := p.Spec.Containers[0]
		command := slices.Clone(k.Args)
		if command[0] == "migrate" {
			command = slices.DeleteFunc(command, func(a string) bool { return strings.HasPrefix(a, "-") })
		}
		for _, e := range k.Env {
			if !f.knows(command, e.Name) {
				findings = append(findings, fmt.Sprintf("%s: feira %s knows no %s", p.owner, strings.Join(command, " "), e.Name))
			}
		}
		for _, e := range k.EnvFrom {
			if e.ConfigMapRef == nil {
				continue
			}
			m, _ := named[*corev1.ConfigMap](c, e.ConfigMapRef.Name)
			if m == nil {
				continue // said by references
			}
			for key := range m.Data {
				if !f.knows([]string{"run"}, key) && !f.knows([]string{"migrate"}, key) {
					findings = append(findings, fmt.Sprintf("%s: feira knows no %s", name(m), key))
				}
			}
		}
		findings = append(findings, listens(p)...)
	}
	return findings
}

func value(k corev1.Container, env string) (e corev1.EnvVar) {
	for _, e := range k.Env {
		if e.Name == env {
			return e
		}
	}
	return e
}

// listens: the port that is declared is the one that feira listens on, on all addresses; members are named after pods.
func listens(p pod) (findings []string) {
	k := p.Spec.Containers[0]
	if len(k.Ports) == 0 {
		return nil
	}
	if want := net.JoinHostPort("0.0.0.0", fmt.Sprint(k.Ports[0].ContainerPort)); value(k, "FEIRA_LISTEN").Value != want {
		findings = append(findings, fmt.Sprintf("%s: FEIRA_LISTEN must be %s, as the port it declares", p.owner, want))
	}
	if p.component() != "service" {
		return findings
	}
	member := value(k, "FEIRA_MEMBER").ValueFrom
	if !strings.HasPrefix(p.owner, "StatefulSet/") || member == nil || member.FieldRef == nil || member.FieldRef.FieldPath != "metadata.name" {
		findings = append(findings, p.owner+": FEIRA_MEMBER must be the name of a StatefulSet's pod: stable, and never of two at a time")
	}
	if value(k, "FEIRA_BEHIND_GATEWAY").Value != "true" {
		findings = append(findings, p.owner+": is behind the gateway and does not say so")
	}
	return findings
}

// upstreams: the gateway passes requests on to each service with a part in the API, by a Service that is there.
func upstreams(c cluster, api []string) (findings []string) {
	for _, p := range c.pods {
		if p.component() != "gateway" {
			continue
		}
		var found []string
		for pair := range strings.SplitSeq(value(p.Spec.Containers[0], "FEIRA_UPSTREAMS").Value, ",") {
			service, address, _ := strings.Cut(pair, "=")
			found = append(found, service)
			if !leads(c, service, address) {
				findings = append(findings, fmt.Sprintf("%s: upstream %s leads to no port of the Service of that name", p.owner, pair))
			}
		}
		slices.Sort(found)
		want := slices.Sorted(slices.Values(api))
		if !slices.Equal(found, want) {
			findings = append(findings, fmt.Sprintf("%s: upstreams are %v, the API has %v", p.owner, found, want))
		}
	}
	return findings
}

func leads(c cluster, service, address string) bool {
	s, ok := named[*corev1.Service](c, service)
	if !ok {
		return false
	}
	return slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool {
		return address == net.JoinHostPort(service, fmt.Sprint(p.Port))
	})
}

// settings are the ConfigMaps whose entries are variables of some container.
func settings(c cluster) (list []*corev1.ConfigMap) {
	for _, m := range all[*corev1.ConfigMap](c) {
		if slices.ContainsFunc(c.pods, func(p pod) bool {
			return slices.ContainsFunc(p.Spec.Containers[0].EnvFrom, func(e corev1.EnvFromSource) bool {
				return e.ConfigMapRef != nil && e.ConfigMapRef.Name == m.Name
			})
		}) {
			list = append(list, m)
		}
	}
	return list
}

// safe: where real orders are, Kafka is encrypted, knows who writes, and is refused where it can lose events.
func safe(c cluster) (findings []string) {
	want := map[string]string{"FEIRA_KAFKA_TLS": "true", "FEIRA_KAFKA_SASL": "scram-sha-512", "FEIRA_STRICT": "true"}
	for _, m := range settings(c) {
		for env, value := range want {
			if m.Data[env] != value {
				findings = append(findings, fmt.Sprintf("%s: %s must be %q", name(m), env, value))
			}
		}
	}
	for _, p := range c.pods {
		for _, e := range p.Spec.Containers[0].Env {
			if from := e.ValueFrom; from != nil && from.SecretKeyRef != nil && from.SecretKeyRef.Optional != nil && *from.SecretKeyRef.Optional {
				findings = append(findings, fmt.Sprintf("%s: %s may be missing", p.owner, e.Name))
			}
		}
	}
	return findings
}
