package podclass

import (
	"encoding/binary"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

// RatioAnnotation divides pods over the values of a node label by fixed shares; see scheduling.Snapshot.
const RatioAnnotation = "joinery-sdk.dev/ratio"

// fingerprint encodes all of a pod that bears on placement: pods with equal fingerprints are of one class.
type fingerprint struct {
	buf    []byte
	labels labelUse
	keys   []string // reused
}

func (f *fingerprint) of(p *corev1.Pod) []byte {
	f.buf = f.buf[:0]
	f.text(p.Namespace)
	f.selected(p.Labels)
	f.text(p.Annotations[RatioAnnotation])
	s := &p.Spec
	f.containers(s.Containers)
	f.containers(s.InitContainers)
	f.list(s.Overhead)
	if s.Resources != nil {
		f.list(s.Resources.Requests)
		f.list(s.Resources.Limits)
	}
	f.mapping(s.NodeSelector)
	f.number(int64(len(s.Tolerations)))
	for i := range s.Tolerations {
		t := &s.Tolerations[i]
		f.text(t.Key)
		f.text(string(t.Operator))
		f.text(t.Value)
		f.text(string(t.Effect))
	}
	f.affinity(s.Affinity)
	f.number(int64(len(s.TopologySpreadConstraints)))
	for i := range s.TopologySpreadConstraints {
		f.spread(&s.TopologySpreadConstraints[i])
	}
	f.number(int64(len(s.Volumes)))
	for i := range s.Volumes {
		v := &s.Volumes[i]
		switch {
		case v.PersistentVolumeClaim != nil:
			f.text("claim")
			f.text(v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			f.text("ephemeral")
			f.text(p.Name) // its claim is named after the pod
			f.json(v.Ephemeral)
		}
	}
	f.optional(s.Priority)
	f.text(s.PriorityClassName)
	f.text(textOf(s.RuntimeClassName)) // the empty name is none
	if s.HostNetwork {
		f.text("host")
	}
	return f.buf
}

func (f *fingerprint) text(s string) {
	f.buf = binary.AppendUvarint(f.buf, uint64(len(s)))
	f.buf = append(f.buf, s...)
}

func (f *fingerprint) number(n int64) { f.buf = binary.AppendVarint(f.buf, n) }

func (f *fingerprint) containers(cs []corev1.Container) {
	f.number(int64(len(cs)))
	for i := range cs {
		c := &cs[i]
		f.list(c.Resources.Requests)
		f.list(c.Resources.Limits)
		if c.RestartPolicy != nil {
			f.text(string(*c.RestartPolicy))
		}
		for j := range c.Ports {
			if p := &c.Ports[j]; p.HostPort != 0 || p.ContainerPort != 0 {
				f.number(int64(p.HostPort))
				f.number(int64(p.ContainerPort))
				f.text(p.HostIP)
				f.text(string(p.Protocol))
			}
		}
		f.text("|")
	}
}

func (f *fingerprint) list(l corev1.ResourceList) {
	var few [8]corev1.ResourceName
	for _, name := range f.sortedNames(l, few[:0]) {
		f.text(string(name))
		f.number(resources.Request(name, l[name]))
	}
}

// sortedNames appends the number of resources, and returns their names in order, in the memory of names.
func (f *fingerprint) sortedNames(l corev1.ResourceList, names []corev1.ResourceName) []corev1.ResourceName {
	f.number(int64(len(l)))
	for name := range l {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (f *fingerprint) mapping(m map[string]string) {
	f.number(int64(len(m)))
	f.keys = f.keys[:0]
	for k := range m {
		f.keys = append(f.keys, k)
	}
	f.sorted(m)
}

func (f *fingerprint) selected(m map[string]string) {
	f.keys = f.keys[:0]
	for k := range m {
		if f.labels[k] {
			f.keys = append(f.keys, k)
		}
	}
	f.sorted(m)
}

// sorted appends the entries with the keys that were collected.
func (f *fingerprint) sorted(m map[string]string) {
	slices.Sort(f.keys)
	for _, k := range f.keys {
		f.text(k)
		f.text(m[k])
	}
}

// json appends fields that few pods have.
func (f *fingerprint) json(v any) {
	text, err := json.Marshal(v)
	if err != nil { // these types always marshal
		panic(err)
	}
	f.buf = append(f.buf, text...)
}

func (f *fingerprint) spread(t *corev1.TopologySpreadConstraint) {
	f.number(int64(t.MaxSkew))
	f.text(t.TopologyKey)
	f.text(string(t.WhenUnsatisfiable))
	f.selector(t.LabelSelector)
	f.optional(t.MinDomains)
	f.text(string(textOf(t.NodeAffinityPolicy)))
	f.text(string(textOf(t.NodeTaintsPolicy)))
	f.texts(t.MatchLabelKeys)
}

func (f *fingerprint) optional(n *int32) {
	if n == nil {
		f.number(0)
		return
	}
	f.number(1)
	f.number(int64(*n))
}

// textOf is the text that a field has, empty for none.
func textOf[T ~string](field *T) T {
	if field == nil {
		return ""
	}
	return *field
}

func (f *fingerprint) texts(list []string) {
	f.number(int64(len(list)))
	for _, s := range list {
		f.text(s)
	}
}

func (f *fingerprint) selector(s *metav1.LabelSelector) {
	if s == nil {
		f.number(-1)
		return
	}
	f.mapping(s.MatchLabels)
	f.number(int64(len(s.MatchExpressions)))
	for i := range s.MatchExpressions {
		f.text(s.MatchExpressions[i].Key)
		f.text(string(s.MatchExpressions[i].Operator))
		f.texts(s.MatchExpressions[i].Values)
	}
}

func (f *fingerprint) affinity(a *corev1.Affinity) {
	if a == nil {
		f.text("-")
		return
	}
	if a.NodeAffinity != nil {
		f.json(a.NodeAffinity)
	}
	f.podTerms(a.PodAffinity)
	f.text("|")
	f.podTerms((*corev1.PodAffinity)(a.PodAntiAffinity)) // it has the same fields
}

func (f *fingerprint) podTerms(a *corev1.PodAffinity) {
	if a == nil {
		return
	}
	hard, soft := a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution
	term := func(t *corev1.PodAffinityTerm) {
		f.text(t.TopologyKey)
		f.selector(t.LabelSelector)
		f.selector(t.NamespaceSelector)
		f.texts(t.Namespaces)
		f.texts(t.MatchLabelKeys)
		f.texts(t.MismatchLabelKeys)
	}
	f.number(int64(len(hard)))
	for i := range hard {
		term(&hard[i])
	}
	f.number(int64(len(soft)))
	for i := range soft {
		f.number(int64(soft[i].Weight))
		term(&soft[i].PodAffinityTerm)
	}
}
