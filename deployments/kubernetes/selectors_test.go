package kubernetes

import (
	"fmt"
	"strings"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// workloads: a selector must mean the workload's own pods, and nobody else's.
func workloads(c cluster) (findings []string) {
	for _, p := range c.pods {
		if p.selector == nil {
			continue // a Job gets its selector from the API server
		}
		for _, other := range c.selected(p.selector) {
			if other.owner != p.owner {
				findings = append(findings, fmt.Sprintf("%s: its selector also means the pods of %s", p.owner, other.owner))
			}
		}
		if !matches(p.selector, p.Labels) {
			findings = append(findings, p.owner+": its selector does not mean its own pods")
		}
		for _, s := range p.Spec.TopologySpreadConstraints {
			if !matches(s.LabelSelector, p.Labels) {
				findings = append(findings, p.owner+": a spread constraint does not count its own pods")
			}
		}
	}
	for _, s := range all[*appsv1.StatefulSet](c) {
		if _, ok := named[*corev1.Service](c, s.Spec.ServiceName); !ok {
			findings = append(findings, fmt.Sprintf("%s: there is no Service %q for serviceName", name(s), s.Spec.ServiceName))
		}
	}
	return findings
}

// services: each must lead to one workload, to ports that its pods have.
func services(c cluster) (findings []string) {
	for _, s := range all[*corev1.Service](c) {
		pods := c.selected(&metav1.LabelSelector{MatchLabels: s.Spec.Selector})
		if len(pods) != 1 {
			findings = append(findings, fmt.Sprintf("%s: its selector means the pods of %d workloads, not of one", name(s), len(pods)))
			continue
		}
		for _, port := range s.Spec.Ports {
			if _, ok := pods[0].port(port.TargetPort.StrVal); !ok {
				findings = append(findings, fmt.Sprintf("%s: %s has no port named %q", name(s), pods[0].owner, port.TargetPort.String()))
			}
		}
	}
	return findings
}

// ingresses: they must lead to ports of Services, encrypted, and never to metrics or health.
func ingresses(c cluster) (findings []string) {
	for _, i := range all[*networkingv1.Ingress](c) {
		for _, r := range i.Spec.Rules {
			if !encrypted(i, r.Host) {
				findings = append(findings, fmt.Sprintf("%s: host %q has no TLS", name(i), r.Host))
			}
			for _, p := range r.HTTP.Paths {
				findings = append(findings, ingressPath(c, i, p)...)
			}
		}
	}
	return findings
}

func encrypted(i *networkingv1.Ingress, host string) bool {
	for _, t := range i.Spec.TLS {
		for _, h := range t.Hosts {
			if h == host && t.SecretName != "" {
				return true
			}
		}
	}
	return false
}

func ingressPath(c cluster, i *networkingv1.Ingress, p networkingv1.HTTPIngressPath) (findings []string) {
	for _, private := range []string{"/metrics", "/livez", "/readyz"} {
		if p.Path == private || *p.PathType != networkingv1.PathTypeExact && strings.HasPrefix(private+"/", strings.TrimSuffix(p.Path, "/")+"/") {
			findings = append(findings, fmt.Sprintf("%s: path %s makes %s public", name(i), p.Path, private))
		}
	}
	to := p.Backend.Service
	s, ok := named[*corev1.Service](c, to.Name)
	if !ok {
		return append(findings, fmt.Sprintf("%s: there is no Service %q", name(i), to.Name))
	}
	for _, port := range s.Spec.Ports {
		if port.Name == to.Port.Name {
			return findings
		}
	}
	return append(findings, fmt.Sprintf("%s: %s has no port named %q", name(i), name(s), to.Port.Name))
}

// budgets: each workload of feira's that stays has one budget, which lets a node be drained.
func budgets(c cluster) (findings []string) {
	count := map[string]int{}
	for _, b := range all[*policyv1.PodDisruptionBudget](c) {
		pods := c.selected(b.Spec.Selector)
		if len(pods) != 1 {
			findings = append(findings, fmt.Sprintf("%s: its selector means the pods of %d workloads, not of one", name(b), len(pods)))
		}
		for _, p := range pods {
			count[p.owner]++
		}
		if b.Spec.MaxUnavailable == nil || *b.Spec.MaxUnavailable != intstr.FromInt32(1) {
			findings = append(findings, name(b)+": maxUnavailable must be 1: less blocks a drain, more stops a service")
		}
	}
	for _, p := range c.pods {
		if (p.component() == "service" || p.component() == "gateway") && count[p.owner] != 1 {
			findings = append(findings, fmt.Sprintf("%s: has %d disruption budgets, not one", p.owner, count[p.owner]))
		}
	}
	return findings
}

// scaling: an autoscaler has a target that leaves the number of replicas to it, and never makes more members than a topic
// has partitions.
func scaling(c cluster, partitions int32) (findings []string) {
	for _, h := range all[*autoscalingv2.HorizontalPodAutoscaler](c) {
		ref := h.Spec.ScaleTargetRef
		target := ref.Kind + "/" + ref.Name
		var replicas *int32
		var found bool
		switch ref.Kind {
		case "StatefulSet":
			var s *appsv1.StatefulSet
			if s, found = named[*appsv1.StatefulSet](c, ref.Name); found {
				replicas = s.Spec.Replicas
			}
			if h.Spec.MaxReplicas > partitions {
				findings = append(findings, fmt.Sprintf("%s: maxReplicas %d, but a topic has %d partitions: the rest would be idle", name(h), h.Spec.MaxReplicas, partitions))
			}
		case "Deployment":
			var d *appsv1.Deployment
			if d, found = named[*appsv1.Deployment](c, ref.Name); found {
				replicas = d.Spec.Replicas
			}
		}
		switch {
		case !found || ref.APIVersion != "apps/v1":
			findings = append(findings, fmt.Sprintf("%s: there is no %s of %s", name(h), target, ref.APIVersion))
		case replicas != nil:
			findings = append(findings, fmt.Sprintf("%s: %s sets replicas itself, so each apply undoes the autoscaler", name(h), target))
		case h.Spec.MinReplicas == nil || *h.Spec.MinReplicas < 2 || *h.Spec.MinReplicas > h.Spec.MaxReplicas:
			findings = append(findings, name(h)+": minReplicas must be at least 2 and at most maxReplicas")
		}
	}
	return findings
}

// monitors: what is scraped must be there.
func monitors(c cluster) (findings []string) {
	for _, m := range all[*monitoringv1.PodMonitor](c) {
		pods := c.selected(&m.Spec.Selector)
		if len(pods) == 0 {
			findings = append(findings, name(m)+": its selector means no pods")
		}
		for _, p := range pods {
			for _, e := range m.Spec.PodMetricsEndpoints {
				if _, ok := p.port(*e.Port); !ok {
					findings = append(findings, fmt.Sprintf("%s: %s has no port named %q", name(m), p.owner, *e.Port))
				}
				if e.Path != "/metrics" {
					findings = append(findings, fmt.Sprintf("%s: metrics are at /metrics, not %q", name(m), e.Path))
				}
			}
		}
		for _, e := range m.Spec.PodMetricsEndpoints {
			findings = append(findings, labelled(m, e)...)
		}
		for _, p := range c.pods {
			if p.runs() && p.component() != "provider" && !matches(&m.Spec.Selector, p.Labels) {
				findings = append(findings, fmt.Sprintf("%s: %s is not scraped", name(m), p.owner))
			}
		}
	}
	return findings
}

// labelled: the alerts go by the labels job and process.
func labelled(m *monitoringv1.PodMonitor, e monitoringv1.PodMetricsEndpoint) (findings []string) {
	set := map[string]string{}
	for _, r := range e.RelabelConfigs {
		if r.Replacement != nil {
			set[r.TargetLabel] = *r.Replacement
		}
		for _, source := range r.SourceLabels {
			set[r.TargetLabel] = string(source)
		}
	}
	for label, want := range map[string]string{"job": "feira", "process": "__meta_kubernetes_pod_label_app_kubernetes_io_name"} {
		if set[label] != want {
			findings = append(findings, fmt.Sprintf("%s: label %s must be %s, for the alerts", name(m), label, want))
		}
	}
	return findings
}
