package kubernetes

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// stopTime is how long feira takes at most: 10 s for requests in flight (shared/web), 10 s for services (cmd/feira).
const stopTime = 20

// restricted: what the API server refuses in the namespace, by its own rules, and what else a pod needs no right to.
func restricted(c cluster) (findings []string) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return []string{err.Error()}
	}
	for _, ns := range all[*corev1.Namespace](c) {
		if ns.Labels[api.EnforceLevelLabel] != string(api.LevelRestricted) {
			findings = append(findings, name(ns)+": must enforce the pod security level restricted")
		}
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for _, p := range c.pods {
		for _, r := range evaluator.EvaluatePod(level, &p.ObjectMeta, &p.Spec) {
			if !r.Allowed {
				findings = append(findings, fmt.Sprintf("%s: not restricted: %s (%s)", p.owner, r.ForbiddenReason, r.ForbiddenDetail))
			}
		}
		findings = append(findings, identity(c, p)...)
		for _, k := range p.Spec.Containers {
			findings = append(findings, container(p, k)...)
		}
	}
	return findings
}

// identity: pods have no token for the Kubernetes API, and feira's have an account that no other has.
func identity(c cluster, p pod) (findings []string) {
	if p.Spec.AutomountServiceAccountToken == nil || *p.Spec.AutomountServiceAccountToken {
		findings = append(findings, p.owner+": mounts a token for the Kubernetes API")
	}
	if p.Spec.EnableServiceLinks == nil || *p.Spec.EnableServiceLinks {
		findings = append(findings, p.owner+": gets variables named after Services")
	}
	if !p.feira() {
		return findings
	}
	if own := p.Labels["app.kubernetes.io/name"]; p.Spec.ServiceAccountName != own {
		findings = append(findings, fmt.Sprintf("%s: runs as %q, not as %q", p.owner, p.Spec.ServiceAccountName, own))
	}
	if _, ok := named[*corev1.ServiceAccount](c, p.Spec.ServiceAccountName); !ok {
		findings = append(findings, fmt.Sprintf("%s: there is no ServiceAccount %q", p.owner, p.Spec.ServiceAccountName))
	}
	return findings
}

// feira says whether it is feira's program that runs in the pod.
func (p pod) feira() bool { return p.Spec.Containers[0].Name == "feira" }

var tag = regexp.MustCompile(`^[^:@]+(:[0-9]+/[^:@]+)?(:[\w.-]+|@sha256:[0-9a-f]{64})$`)

func container(p pod, k corev1.Container) (findings []string) {
	if s := k.SecurityContext; s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
		findings = append(findings, p.owner+": its root file system can be written")
	}
	for _, r := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		request, limit := k.Resources.Requests[r], k.Resources.Limits[r]
		if request.IsZero() || limit.IsZero() || request.Cmp(limit) > 0 {
			findings = append(findings, fmt.Sprintf("%s: needs a request for %s and a limit of at least that", p.owner, r))
		}
	}
	if !tag.MatchString(k.Image) || strings.HasSuffix(k.Image, ":latest") {
		findings = append(findings, fmt.Sprintf("%s: image %q does not say which one: it needs a tag other than latest, or a digest", p.owner, k.Image))
	}
	return findings
}

// probes: what stays says when it is ready, and is not restarted because something else is away.
func probes(c cluster, serves func(path string) bool) (findings []string) {
	for _, p := range c.pods {
		k := p.Spec.Containers[0]
		list := map[string]*corev1.Probe{"startup": k.StartupProbe, "liveness": k.LivenessProbe, "readiness": k.ReadinessProbe}
		for kind, probe := range list {
			switch {
			case probe == nil && p.runs():
				findings = append(findings, fmt.Sprintf("%s: has no %s probe", p.owner, kind))
			case probe == nil || !p.feira():
			case probe.HTTPGet == nil:
				findings = append(findings, fmt.Sprintf("%s: its %s probe does not ask over HTTP", p.owner, kind))
			default:
				findings = append(findings, httpProbe(p, kind, probe.HTTPGet, serves)...)
			}
		}
		findings = append(findings, ending(p, k)...)
	}
	slices.Sort(findings) // the probes come in no order
	return findings
}

func httpProbe(p pod, kind string, get *corev1.HTTPGetAction, serves func(string) bool) (findings []string) {
	if get.Port.Type == intstr.Int || !p.has(get.Port.StrVal) {
		findings = append(findings, fmt.Sprintf("%s: its %s probe asks port %s, which no container names", p.owner, kind, get.Port.String()))
	}
	want := "/livez"
	if kind == "readiness" {
		want = "/readyz"
	}
	if get.Path != want {
		findings = append(findings, fmt.Sprintf("%s: its %s probe asks %s, not %s", p.owner, kind, get.Path, want))
	}
	if !serves(get.Path) {
		findings = append(findings, fmt.Sprintf("%s: feira does not answer %s", p.owner, get.Path))
	}
	return findings
}

func (p pod) has(port string) bool { _, ok := p.port(port); return ok }

// ending: requests come until the pod is known to be gone, and then it must have the time to stop.
func ending(p pod, k corev1.Container) (findings []string) {
	if !p.runs() || p.component() == "provider" {
		return nil
	}
	if k.Lifecycle == nil || k.Lifecycle.PreStop == nil || k.Lifecycle.PreStop.Sleep == nil {
		return []string{p.owner + ": stops while requests are still sent to it: it needs a preStop sleep"}
	}
	pause := k.Lifecycle.PreStop.Sleep.Seconds
	if grace := p.Spec.TerminationGracePeriodSeconds; grace == nil || *grace <= pause+stopTime {
		findings = append(findings, fmt.Sprintf("%s: terminationGracePeriodSeconds must be above %d", p.owner, pause+stopTime))
	}
	return findings
}
