package ruletest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/internal/strictjson"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/requirements/kube"
)

// Workload builds a pod, or pods from one template. It is a value: every method returns a new one.
// The zero value is a pod without a name, and planning rejects it.
type Workload struct {
	kind            string
	namespace, name string
	replicas        int32
	labels          map[string]string
	spec            corev1.PodSpec
	err             error
}

// Pod returns one pending pod, "namespace/name"; the default namespace is "default". It has the
// label app=name.
func Pod(name string) Workload { return workload("Pod", name, 1) }

// Deployment returns pods name-0, name-1 and so on, all with the label app=name.
func Deployment(name string, replicas int) Workload { return workload("Deployment", name, replicas) }

// DaemonSet returns a pod on every node that it tolerates and selects. It takes capacity, but rules
// do not cover its pods.
func DaemonSet(name string) Workload { return workload("DaemonSet", name, 1) }

func workload(kind, name string, replicas int) Workload {
	namespace, short, ok := strings.Cut(name, "/")
	if !ok {
		namespace, short = metav1.NamespaceDefault, name
	}
	w := Workload{
		kind: kind, namespace: namespace, name: short, replicas: number(replicas), labels: map[string]string{"app": short},
		spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "main"}}},
	}
	return w.edit(func(*Workload) error {
		if replicas < 0 {
			return fmt.Errorf("replicas %d: want 0 or more", replicas)
		}
		return nil
	})
}

// number is n, or the nearest number that manifests can hold. Planning rejects those out of range.
func number(n int) int32 { return int32(min(max(n, math.MinInt32), math.MaxInt32)) }

// edit returns a copy of the workload, changed by the function.
func (w Workload) edit(how func(*Workload) error) Workload {
	w.labels = maps.Clone(w.labels)
	w.spec = *w.spec.DeepCopy()
	if err := how(&w); err != nil {
		w.err = errors.Join(w.err, fmt.Errorf("ruletest: %s %s/%s: %w", w.kind, w.namespace, w.name, err))
	}
	return w
}

// Requests sets the requests of each pod: names and quantities alternate, "cpu", "500m", "memory",
// "1Gi".
func (w Workload) Requests(list ...string) Workload {
	return w.edit(func(w *Workload) error {
		add, err := quantities(list)
		if len(w.spec.Containers) == 0 {
			return errors.Join(err, errors.New("no container is left to set requests of"))
		}
		res := &w.spec.Containers[0].Resources
		if res.Requests == nil {
			res.Requests = corev1.ResourceList{}
		}
		maps.Copy(res.Requests, add)
		for name, q := range add { // an extended resource needs an equal limit
			if strings.Contains(string(name), "/") {
				if res.Limits == nil {
					res.Limits = corev1.ResourceList{}
				}
				res.Limits[name] = q
			}
		}
		return err
	})
}

// Label adds a label to the pods.
func (w Workload) Label(key, value string) Workload {
	return w.edit(func(w *Workload) error {
		if w.labels == nil {
			w.labels = map[string]string{}
		}
		w.labels[key] = value
		return nil
	})
}

// On makes pods require nodes with labels, in the text form of package requirements:
// "kubernetes.io/arch=arm64, karpenter.k8s.aws/instance-cpu>4".
func (w Workload) On(labels string) Workload {
	return w.edit(func(w *Workload) error {
		list, err := expressions(labels)
		affinity := nodeAffinity(&w.spec)
		if affinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
			affinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}
		}
		terms := affinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		for i := range terms {
			terms[i].MatchExpressions = append(terms[i].MatchExpressions, list...)
		}
		return err
	})
}

// Prefers makes pods prefer nodes with labels, with a weight of 1 to 100.
func (w Workload) Prefers(weight int, labels string) Workload {
	return w.edit(func(w *Workload) error {
		list, err := expressions(labels)
		affinity := nodeAffinity(&w.spec)
		affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: number(weight), Preference: corev1.NodeSelectorTerm{MatchExpressions: list}})
		return err
	})
}

// Tolerates allows pods on nodes with a taint, written as in kubectl: "dedicated=batch:NoSchedule",
// "gpu:NoSchedule", "gpu". "" is every taint.
func (w Workload) Tolerates(taint string) Workload {
	return w.edit(func(w *Workload) error {
		key, value, effect := splitTaint(taint)
		t := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect}
		if value != "" {
			t.Operator, t.Value = corev1.TolerationOpEqual, value
		}
		w.spec.Tolerations = append(w.spec.Tolerations, t)
		return nil
	})
}

// Spreads makes pods spread evenly over a label key ("zone", "node" or any key), with at most the
// given skew.
func (w Workload) Spreads(by string, skew int) Workload {
	return w.edit(func(w *Workload) error {
		w.spec.TopologySpreadConstraints = append(w.spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: number(skew), TopologyKey: topologyKey(by), WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: w.own(),
		})
		return nil
	})
}

// Apart keeps pods of this workload away from each other by a label key ("node", "zone" or any
// key).
func (w Workload) Apart(by string) Workload {
	return w.edit(func(w *Workload) error {
		affinity := affinityOf(&w.spec)
		if affinity.PodAntiAffinity == nil {
			affinity.PodAntiAffinity = &corev1.PodAntiAffinity{}
		}
		list := &affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		*list = append(*list, corev1.PodAffinityTerm{TopologyKey: topologyKey(by), LabelSelector: w.own()})
		return nil
	})
}

// Near makes pods require to be near pods of their namespace with the given label, "app=cache", by
// a label key.
func (w Workload) Near(by, label string) Workload {
	return w.edit(func(w *Workload) error {
		selector, err := metav1.ParseToLabelSelector(label)
		affinity := affinityOf(&w.spec)
		if affinity.PodAffinity == nil {
			affinity.PodAffinity = &corev1.PodAffinity{}
		}
		list := &affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		*list = append(*list, corev1.PodAffinityTerm{TopologyKey: topologyKey(by), LabelSelector: selector})
		return err
	})
}

// RunningOn makes a pod run already, on the node of that name.
func (w Workload) RunningOn(node string) Workload {
	return w.edit(func(w *Workload) error {
		if w.kind != "Pod" {
			return fmt.Errorf("only a Pod can run already, on %q", node)
		}
		if node == "" {
			return errors.New("RunningOn needs the name of a node")
		}
		w.spec.NodeName = node
		return nil
	})
}

// Edit changes the spec in ways that the other methods do not offer. The function gets a copy; its
// first container has the requests.
func (w Workload) Edit(how func(*corev1.PodSpec)) Workload {
	return w.edit(func(w *Workload) error {
		if how == nil {
			return errors.New("Edit needs a function")
		}
		how(&w.spec)
		return nil
	})
}

func (w *Workload) own() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": w.name}}
}

func (w Workload) manifest() (json.RawMessage, bool, error) { //nolint:unparam // an object of a kind with several answers
	if w.err != nil {
		return nil, false, w.err
	}
	meta := metav1.ObjectMeta{Namespace: w.namespace, Name: w.name}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: w.labels}, Spec: w.spec}
	var object any
	switch w.kind {
	case "Deployment":
		object = &appsv1.Deployment{
			TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: w.kind}, ObjectMeta: meta,
			Spec: appsv1.DeploymentSpec{Replicas: &w.replicas, Selector: w.own(), Template: template},
		}
	case "DaemonSet":
		object = &appsv1.DaemonSet{
			TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: w.kind}, ObjectMeta: meta,
			Spec: appsv1.DaemonSetSpec{Selector: w.own(), Template: template},
		}
	default:
		meta.Labels = w.labels
		object = &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: meta, Spec: w.spec}
	}
	text, err := json.Marshal(object)
	return text, false, err
}

func affinityOf(spec *corev1.PodSpec) *corev1.Affinity {
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	return spec.Affinity
}

func nodeAffinity(spec *corev1.PodSpec) *corev1.NodeAffinity {
	affinity := affinityOf(spec)
	if affinity.NodeAffinity == nil {
		affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	return affinity.NodeAffinity
}

// expressions returns a set of requirements as manifests write it.
func expressions(text string) ([]corev1.NodeSelectorRequirement, error) {
	set, err := requirements.Parse(text)
	if err != nil {
		return nil, err
	}
	list, ok := kube.Expressions(set)
	if !ok {
		return nil, fmt.Errorf("%q: it cannot be written as a list of operators", text)
	}
	return list, nil
}

// quantities reads names and quantities that alternate.
func quantities(list []string) (corev1.ResourceList, error) {
	out := corev1.ResourceList{}
	if len(list)%2 != 0 {
		return out, fmt.Errorf("%q: want names and quantities in turn", list)
	}
	var errs []error
	for pair := range slices.Chunk(list, 2) {
		q, err := strictjson.ParseQuantity(pair[1])
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %q: %w", pair[0], pair[1], err))
			continue
		}
		name := corev1.ResourceName(pair[0])
		if first, twice := out[name]; twice {
			errs = append(errs, fmt.Errorf("%s is given twice, as %s and as %s", name, first.String(), pair[1]))
			continue
		}
		out[name] = q
	}
	return out, errors.Join(errs...)
}

func splitTaint(text string) (key, value string, effect corev1.TaintEffect) {
	rest, last, _ := strings.Cut(text, ":")
	key, value, _ = strings.Cut(rest, "=")
	return key, value, corev1.TaintEffect(last)
}

// topologyKey returns the label key that manifests have for a short name. For a node it is
// kubernetes.io/hostname, because constraints of pods cannot name what is no label.
func topologyKey(name string) string {
	switch name {
	case "node":
		return corev1.LabelHostname
	case "zone":
		return corev1.LabelTopologyZone
	}
	return name
}

// placeKey returns what tells places apart by a short name or a label key. Nodes are told apart by
// their names, because nothing stops two nodes from having the same label.
func placeKey(by string) string {
	if by == "node" {
		return requirements.NodeNameKey
	}
	return topologyKey(by)
}
