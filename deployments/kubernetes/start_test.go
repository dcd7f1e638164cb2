package kubernetes

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestFeiraTakesWhatTheManifestsSay runs each container's command with its arguments and variables. Nothing can be
// reached from here, so each fails; what counts is that it fails at that, and not at a flag or a value.
func TestFeiraTakesWhatTheManifestsSay(t *testing.T) {
	t.Parallel()
	for overlay, dir := range overlays {
		c, _ := decode(t, build(t, dir))
		for _, p := range c.pods {
			if p.feira() && p.component() != "gateway" {
				t.Run(overlay+"/"+p.owner, func(t *testing.T) {
					t.Parallel()
					if finding := starts(t, c, p); finding != "" {
						t.Error(finding)
					}
				})
			}
		}
	}
}

// starts says what feira refuses of a container, or nothing.
func starts(t *testing.T, c cluster, p pod) (finding string) {
	t.Helper()
	want := "connection refused" // the database
	if p.component() == "service" {
		want = "read key set" // the last thing before the database
	}
	said := feira(t).try(p.Spec.Containers[0].Args, variables(t, c, p))
	if !strings.Contains(said, want) {
		return fmt.Sprintf("%s: feira should have got as far as %q, but said: %s", p.owner, want, said)
	}
	return ""
}

// variables are a container's, as the kubelet would set them, on a machine where nothing listens.
func variables(t *testing.T, c cluster, p pod) (env []string) {
	t.Helper()
	k, files := p.Spec.Containers[0], t.TempDir()
	set := func(name, value string) {
		switch {
		case name == "FEIRA_LISTEN":
			value = "127.0.0.1:0"
		case name == "FEIRA_KAFKA":
			value = "127.0.0.1:1"
		case name == "FEIRA_STRICT":
			value = "false" // else it asks Kafka first, for long
		case name == "FEIRA_POSTGRES_SERVER":
			value = strings.Replace(value, "@postgres:5432", "@127.0.0.1:1", 1)
		case strings.HasPrefix(value, "/"):
			value = mounted(t, c, p, files, value)
		}
		env = append(env, name+"="+value)
	}
	for _, from := range k.EnvFrom {
		if from.ConfigMapRef != nil {
			m, _ := named[*corev1.ConfigMap](c, from.ConfigMapRef.Name)
			for name, value := range m.Data {
				set(name, value)
			}
		}
		if from.SecretRef != nil {
			for _, s := range append(feira(t).services(t), "provider") {
				set("FEIRA_POSTGRES_"+strings.ToUpper(s), "postgres://"+s+":x@127.0.0.1:1/"+s)
			}
		}
	}
	for _, e := range k.Env {
		switch {
		case e.ValueFrom == nil:
			set(e.Name, e.Value)
		case e.ValueFrom.FieldRef != nil:
			set(e.Name, "pod-0")
		case e.ValueFrom.SecretKeyRef.Optional != nil && *e.ValueFrom.SecretKeyRef.Optional:
		case strings.HasPrefix(e.Name, "FEIRA_POSTGRES_"):
			set(e.Name, "postgres://u:x@127.0.0.1:1/d")
		default:
			set(e.Name, "a-secret-of-more-than-thirty-two-characters")
		}
	}
	return env
}

// mounted moves a file that a variable names into a folder of the test: with the content that its ConfigMap has, if it is
// one of the manifests, else with another, except for the key set. A path where nothing is mounted stays what it is.
func mounted(t *testing.T, c cluster, p pod, files, path string) string {
	t.Helper()
	for _, m := range p.Spec.Containers[0].VolumeMounts {
		if !strings.HasPrefix(path, m.MountPath+"/") {
			continue
		}
		file := filepath.Base(path)
		path = filepath.Join(files, file)
		switch content, ours := entry(c, p, m.Name, file); {
		case ours:
			write(t, path, []byte(content))
		case strings.HasSuffix(path, ".crt"):
			write(t, path, certificate(t))
		case !strings.HasSuffix(path, ".json"):
			write(t, path, []byte("x\n"))
		}
		return path
	}
	return path
}

// entry is a file of a volume that one of the manifests' ConfigMaps fills.
func entry(c cluster, p pod, volume, file string) (content string, ours bool) {
	for _, v := range p.Spec.Volumes {
		if v.Name != volume || v.ConfigMap == nil {
			continue
		}
		if m, there := named[*corev1.ConfigMap](c, v.ConfigMap.Name); there {
			content, ours = m.Data[file]
		}
	}
	return content, ours
}

// TestThresholdsAreThoseOfTheService: fraud begins with what it was tried with; a cluster may then choose its own.
func TestThresholdsAreThoseOfTheService(t *testing.T) {
	t.Parallel()
	built, err := os.ReadFile(filepath.Join(root, "services/fraud/thresholds.json"))
	if err != nil {
		t.Fatal(err)
	}
	deployed, err := os.ReadFile("base/fraud/thresholds.json")
	if err != nil || string(deployed) != string(built) {
		t.Errorf("base/fraud/thresholds.json is not services/fraud/thresholds.json (%v); copy it", err)
	}
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func certificate(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	authority := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, &authority, &authority, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}

// TestSetupMakesTheSecretsOfDevelopment runs the README's recipe, as far as no cluster is needed.
func TestSetupMakesTheSecretsOfDevelopment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if said := feira(t).try([]string{"setup", "--dir", dir, "--server", "postgres:5432"}, nil); !strings.Contains(said, "feira did its work") {
		t.Fatal(said)
	}
	made := func(secret string) string {
		raw, err := os.ReadFile(filepath.Join(dir, strings.TrimPrefix(secret, "feira-"), "feira.env"))
		if err != nil {
			t.Errorf("no secret %s: %v", secret, err)
		}
		return "\n" + string(raw)
	}
	c, _ := decode(t, build(t, overlays["development"]))
	for _, p := range c.pods {
		for _, e := range p.Spec.Containers[0].EnvFrom {
			if e.SecretRef != nil {
				made(e.SecretRef.Name)
			}
		}
		for _, e := range p.Spec.Containers[0].Env {
			if e.ValueFrom == nil || e.ValueFrom.SecretKeyRef == nil || e.ValueFrom.SecretKeyRef.Optional != nil {
				continue
			}
			if from := e.ValueFrom.SecretKeyRef; !strings.Contains(made(from.Name), "\n"+from.Key+"=") {
				t.Errorf("%s: secret %s has no %s", p.owner, from.Name, from.Key)
			}
		}
	}
	for _, file := range []string{"postgres/password", "tools/jwks.json", "tools/token.pem"} {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			t.Error(err)
		}
	}
}
