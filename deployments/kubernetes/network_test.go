package kubernetes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// roads lists who may speak to whom by the network policies, as "orders → kafka:9092". An end outside of the namespace is
// named as the policy names it. A pod that no policy covers may speak to anybody, which is a road too.
func roads(c cluster) []string {
	found := map[string]bool{}
	for _, from := range c.pods {
		for _, to := range c.pods {
			for _, port := range ports(to) {
				if from.owner != to.owner && c.lets(from, to, port, networkingv1.PolicyTypeEgress) && c.lets(to, from, port, networkingv1.PolicyTypeIngress) {
					found[fmt.Sprintf("%s → %s:%d", place(from), place(to), port.number)] = true
				}
			}
		}
		for _, way := range []networkingv1.PolicyType{networkingv1.PolicyTypeEgress, networkingv1.PolicyTypeIngress} {
			for _, road := range c.abroad(from, way) {
				found[road] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// place is a pod's short name: the service's, with the component where that is something else.
func place(p pod) string {
	name, component := p.Labels["app.kubernetes.io/name"], p.component()
	if component == "service" || component == name {
		return name
	}
	return component + "-" + name
}

type namedPort struct {
	name   string
	number int32
}

func ports(p pod) (list []namedPort) {
	for _, k := range p.Spec.Containers {
		for _, port := range k.Ports {
			list = append(list, namedPort{port.Name, port.ContainerPort})
		}
	}
	return list
}

// rule is an ingress or egress rule: both have the same parts.
type rule struct {
	peers []networkingv1.NetworkPolicyPeer
	ports []networkingv1.NetworkPolicyPort
}

// rules are those of a direction that bind a pod; bound says whether any policy does.
func (c cluster) rules(p pod, way networkingv1.PolicyType) (rules []rule, bound bool) {
	for _, n := range all[*networkingv1.NetworkPolicy](c) {
		if !slices.Contains(n.Spec.PolicyTypes, way) || !matches(&n.Spec.PodSelector, p.Labels) {
			continue
		}
		bound = true
		if way == networkingv1.PolicyTypeEgress {
			for _, r := range n.Spec.Egress {
				rules = append(rules, rule{r.To, r.Ports})
			}
			continue
		}
		for _, r := range n.Spec.Ingress {
			rules = append(rules, rule{r.From, r.Ports})
		}
	}
	return rules, bound
}

// lets says whether the policies of one pod admit the other, in one direction. The port is always the server's.
func (c cluster) lets(p, other pod, port namedPort, way networkingv1.PolicyType) bool {
	rules, bound := c.rules(p, way)
	return !bound || slices.ContainsFunc(rules, func(r rule) bool {
		return r.admits(port) && (len(r.peers) == 0 || slices.ContainsFunc(r.peers, func(peer networkingv1.NetworkPolicyPeer) bool {
			return peer.IPBlock == nil && peer.NamespaceSelector == nil && matches(peer.PodSelector, other.Labels)
		}))
	})
}

func (r rule) admits(port namedPort) bool {
	return len(r.ports) == 0 || slices.ContainsFunc(r.ports, func(p networkingv1.NetworkPolicyPort) bool {
		return p.Port == nil || p.Port.StrVal != "" && p.Port.StrVal == port.name || p.Port.StrVal == "" && p.Port.IntVal == port.number
	})
}

// abroad lists a pod's roads out of the namespace, or into it.
func (c cluster) abroad(p pod, way networkingv1.PolicyType) (list []string) {
	rules, bound := c.rules(p, way)
	if !bound {
		return []string{fmt.Sprintf("%s: no policy for %s", place(p), way)}
	}
	for _, r := range rules {
		peers := []string{"anybody"}
		if len(r.peers) > 0 {
			peers = foreigners(r.peers)
		}
		for _, peer := range peers {
			for _, port := range r.written(p, way) {
				if way == networkingv1.PolicyTypeEgress {
					list = append(list, fmt.Sprintf("%s → %s:%s", place(p), peer, port))
				} else {
					list = append(list, fmt.Sprintf("%s → %s:%s", peer, place(p), port))
				}
			}
		}
	}
	return list
}

// foreigners names the peers that are not in the namespace.
func foreigners(peers []networkingv1.NetworkPolicyPeer) (list []string) {
	for _, peer := range peers {
		switch {
		case peer.IPBlock != nil:
			list = append(list, peer.IPBlock.CIDR)
		case peer.NamespaceSelector != nil:
			name := peer.NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"]
			if name == "" {
				name = "namespaces " + metav1.FormatLabelSelector(peer.NamespaceSelector)
			}
			if peer.PodSelector != nil {
				name += "/" + strings.Join(slices.Sorted(maps.Values(peer.PodSelector.MatchLabels)), ",")
			}
			list = append(list, name)
		}
	}
	return list
}

// written are a rule's ports as numbers where the pod is the server, else as they are written.
func (r rule) written(p pod, way networkingv1.PolicyType) (list []string) {
	if len(r.ports) == 0 {
		return []string{"any"}
	}
	for _, port := range r.ports {
		text := "any"
		if port.Port != nil {
			text = port.Port.String()
		}
		if number, ok := p.port(text); ok && way == networkingv1.PolicyTypeIngress {
			text = fmt.Sprint(number)
		}
		list = append(list, text)
	}
	return list
}

// network compares the roads with those that there should be.
func network(c cluster, want []string) (findings []string) {
	got := roads(c)
	for _, r := range got {
		if !slices.Contains(want, r) {
			findings = append(findings, "network: open, and should not be: "+r)
		}
	}
	for _, r := range want {
		if !slices.Contains(got, r) {
			findings = append(findings, "network: closed, and should not be: "+r)
		}
	}
	for _, n := range all[*networkingv1.NetworkPolicy](c) {
		if len(n.Spec.PodSelector.MatchLabels)+len(n.Spec.PodSelector.MatchExpressions) > 0 && len(c.selected(&n.Spec.PodSelector)) == 0 {
			findings = append(findings, name(n)+": binds no pod")
		}
	}
	return findings
}
