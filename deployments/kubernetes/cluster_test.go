package kubernetes

import (
	"fmt"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// build renders a kustomization, as kubectl kustomize does.
func build(t *testing.T, dir string) string {
	t.Helper()
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy // as kubectl
	objects, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatalf("kustomize %s: %v", dir, err)
	}
	text, err := objects.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// object is anything in a cluster.
type object interface {
	runtime.Object
	metav1.Object
}

// cluster is what an overlay would make of an empty one.
type cluster struct {
	objects []object
	pods    []pod
}

// pod is what a workload makes pods from.
type pod struct {
	owner    string // StatefulSet/orders
	selector *metav1.LabelSelector
	corev1.PodTemplateSpec
}

// decode reads a rendered overlay as the API server would with fieldValidation=Strict. What it cannot read it returns as
// findings.
func decode(t *testing.T, text string) (c cluster, findings []string) {
	t.Helper()
	decoder := strict(t)
	seen := map[string]bool{}
	for doc := range strings.SplitSeq(text, "\n---\n") {
		decoded, _, err := decoder.Decode([]byte(doc), nil, nil)
		if err != nil {
			findings = append(findings, fmt.Sprintf("cannot be decoded: %v\n%.200s", err, doc))
			continue
		}
		o, ok := decoded.(object)
		if !ok {
			findings = append(findings, fmt.Sprintf("is no object: %T", decoded))
			continue
		}
		id := name(o)
		if seen[id] {
			findings = append(findings, id+": is there twice")
		}
		seen[id] = true
		c.objects = append(c.objects, o)
		if p, ok := podOf(o); ok {
			c.pods = append(c.pods, p)
		}
	}
	return c, findings
}

// strict is a decoder that takes no field and no kind it does not know.
func strict(t *testing.T) runtime.Decoder {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, policyv1.AddToScheme, autoscalingv2.AddToScheme,
		networkingv1.AddToScheme, monitoringv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}

func podOf(o object) (pod, bool) {
	switch w := o.(type) {
	case *appsv1.StatefulSet:
		return pod{name(o), w.Spec.Selector, w.Spec.Template}, true
	case *appsv1.Deployment:
		return pod{name(o), w.Spec.Selector, w.Spec.Template}, true
	case *batchv1.Job:
		return pod{name(o), nil, w.Spec.Template}, true
	default:
		return pod{}, false
	}
}

// name is kind and name, such as Service/orders.
func name(o object) string { return o.GetObjectKind().GroupVersionKind().Kind + "/" + o.GetName() }

// all lists the objects of a type.
func all[T object](c cluster) (list []T) {
	for _, o := range c.objects {
		if o, ok := o.(T); ok {
			list = append(list, o)
		}
	}
	return list
}

// named finds an object of a type.
func named[T object](c cluster, name string) (found T, ok bool) {
	for _, o := range all[T](c) {
		if o.GetName() == name {
			return o, true
		}
	}
	return found, false
}

// selected lists the pods that a selector means; nil means none.
func (c cluster) selected(s *metav1.LabelSelector) (pods []pod) {
	for _, p := range c.pods {
		if matches(s, p.Labels) {
			pods = append(pods, p)
		}
	}
	return pods
}

func matches(s *metav1.LabelSelector, set map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(labels.Set(set))
}

// port finds a declared port of a pod by its name.
func (p pod) port(name string) (number int32, ok bool) {
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			if port.Name == name {
				return port.ContainerPort, true
			}
		}
	}
	return 0, false
}

// runs says whether the pod is one of feira's own processes that stay: services, gateway, provider.
func (p pod) runs() bool { return p.Labels["feira.shop/step"] == "run" }

func (p pod) component() string { return p.Labels["app.kubernetes.io/component"] }
