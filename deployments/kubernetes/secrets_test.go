package kubernetes

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// elsewhere lists the ConfigMaps that are made beside the manifests: public keys and certificates.
var elsewhere = []string{"feira-jwks", "feira-ca"}

var (
	// secretName tells variables whose value is a secret; those that end in _FILE only say where it is.
	secretName = regexp.MustCompile(`(?i)(PASSWORD|PASSWD|SECRET|TOKEN|CREDENTIAL|_KEY|DSN)$|^FEIRA_POSTGRES(_[A-Z]+)?$`)
	// notSecret are names that only look like it.
	notSecret = []string{"FEIRA_POSTGRES_SERVER"}
	// secretValue finds a password in an address, and keys.
	secretValue = regexp.MustCompile(`://[^/@\s]*:[^/@\s]+@|PRIVATE KEY|eyJ[A-Za-z0-9_-]{10,}\.`)
)

// literals: no secret is written down, in any object.
func literals(c cluster, text string) (findings []string) {
	if found := secretValue.FindString(text); found != "" {
		findings = append(findings, fmt.Sprintf("a secret is written down: %.12s…", found))
	}
	for _, s := range all[*corev1.Secret](c) {
		findings = append(findings, name(s)+": secrets are made beside the manifests, not in them")
	}
	for _, m := range all[*corev1.ConfigMap](c) {
		for key, value := range m.Data {
			if isSecret(key, value) {
				findings = append(findings, fmt.Sprintf("%s: %s is a secret", name(m), key))
			}
		}
	}
	for _, p := range c.pods {
		for _, e := range p.Spec.Containers[0].Env {
			if e.ValueFrom == nil && isSecret(e.Name, e.Value) {
				findings = append(findings, fmt.Sprintf("%s: %s is a secret, and must come from one", p.owner, e.Name))
			}
		}
	}
	return findings
}

// isSecret says whether a variable's value must not be written down. A path is none.
func isSecret(name, value string) bool {
	return secretName.MatchString(name) && !slices.Contains(notSecret, name) && !strings.HasPrefix(value, "/")
}

// references: settings are there, and every pod sees its own secret only.
func references(c cluster) (findings []string) {
	for _, p := range c.pods {
		for _, m := range configMaps(p) {
			if _, ok := named[*corev1.ConfigMap](c, m); !ok && !slices.Contains(elsewhere, m) {
				findings = append(findings, fmt.Sprintf("%s: there is no ConfigMap %q", p.owner, m))
			}
		}
		own := []string{"feira-" + p.Labels["app.kubernetes.io/name"]}
		if p.component() == "databases" {
			own = []string{"feira-postgres", "feira-tools"} // makes everybody's database
		}
		for _, s := range secrets(p) {
			if !slices.Contains(own, s) {
				findings = append(findings, fmt.Sprintf("%s: sees secret %q; its own is %q", p.owner, s, own))
			}
		}
		for _, e := range p.Spec.Containers[0].Env {
			if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil && e.ValueFrom.SecretKeyRef.Key != e.Name {
				findings = append(findings, fmt.Sprintf("%s: %s comes from the key %q of its secret", p.owner, e.Name, e.ValueFrom.SecretKeyRef.Key))
			}
		}
		findings = append(findings, mounts(p)...)
	}
	return findings
}

func configMaps(p pod) (names []string) {
	for _, v := range p.Spec.Volumes {
		if v.ConfigMap != nil {
			names = append(names, v.ConfigMap.Name)
		}
	}
	for _, e := range p.Spec.Containers[0].EnvFrom {
		if e.ConfigMapRef != nil {
			names = append(names, e.ConfigMapRef.Name)
		}
	}
	return names
}

func secrets(p pod) (names []string) {
	for _, v := range p.Spec.Volumes {
		if v.Secret != nil {
			names = append(names, v.Secret.SecretName)
		}
	}
	k := p.Spec.Containers[0]
	for _, e := range k.EnvFrom {
		if e.SecretRef != nil {
			names = append(names, e.SecretRef.Name)
		}
	}
	for _, e := range k.Env {
		if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
			names = append(names, e.ValueFrom.SecretKeyRef.Name)
		}
	}
	return names
}

// mounts: each volume is mounted, each mount has a volume, and files that variables name are in one.
func mounts(p pod) (findings []string) {
	k := p.Spec.Containers[0]
	mounted := map[string]bool{}
	for _, m := range k.VolumeMounts {
		mounted[m.Name] = true
	}
	for _, v := range p.Spec.Volumes {
		if !mounted[v.Name] {
			findings = append(findings, fmt.Sprintf("%s: volume %q is not mounted", p.owner, v.Name))
		}
		delete(mounted, v.Name)
	}
	for m := range mounted {
		if !strings.HasPrefix(p.owner, "StatefulSet/") || m != "data" { // that one comes from a claim's template
			findings = append(findings, fmt.Sprintf("%s: there is no volume %q to mount", p.owner, m))
		}
	}
	return findings
}
