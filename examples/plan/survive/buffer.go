package survive

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling/buffer"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Buffer is a CapacityBuffer of autoscaling.x-k8s.io/v1beta1 and its PodTemplate, ready to be
// applied. One pod of the template fills one spare node, so an autoscaler that keeps capacity for
// it keeps that node.
type Buffer struct {
	Template corev1.PodTemplate
	Object   buffer.Buffer
}

// Buffers returns the spares as objects of a namespace: one for each pool, type, zone, capacity
// type and reservation. If the pool has minValues, the pods allow as many types, or places, as
// these demand, and each pod wants a node of its own. Pods request the resources that every node
// has. They request an extended resource only if pods of the cluster do, because nodes do not
// always advertise the others, such as branch interfaces.
func (h *Headroom) Buffers(namespace string) []Buffer {
	var out []Buffer
	at, wanted := map[string]int{}, map[corev1.ResourceName]bool{}
	if len(h.Spares) > 0 {
		wanted = requested(h.final.snapshot.Pods)
	}
	for i := range h.Spares {
		s := &h.Spares[i]
		name := strings.ToLower(strings.NewReplacer(".", "-", "_", "-", "/", "-").Replace(fmt.Sprintf("headroom-%s-%s-%s-%s", s.Pool, s.InstanceType, s.Zone, s.CapacityType)))
		if id := s.node.Labels[instancetypes.LabelReservationID]; id != "" {
			name += "-" + strings.ToLower(id)
		}
		k, known := at[name]
		if !known {
			k = len(out)
			at[name] = k
			out = append(out, Buffer{
				Template: s.template(namespace, name, wanted),
				Object:   buffer.Buffer{Namespace: namespace, Name: name, Strategy: buffer.ActiveCapacity, Template: name, Replicas: new(int32)},
			})
		}
		*out[k].Object.Replicas++
	}
	slices.SortFunc(out, func(a, b Buffer) int { return cmp.Compare(a.Object.Name, b.Object.Name) })
	return out
}

// requested returns the names of all resources that containers of the pods request.
func requested(pods []*corev1.Pod) map[corev1.ResourceName]bool {
	out := map[corev1.ResourceName]bool{}
	for _, p := range pods {
		for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
			for i := range list {
				for name := range list[i].Resources.Requests {
					out[name] = true
				}
				for name := range list[i].Resources.Limits { // a limit alone is a request, too
					out[name] = true
				}
			}
		}
	}
	return out
}

// template returns a pod that fills the spare, with the extended resources that are wanted. It is
// never started, so its image need not exist.
func (s *Spare) template(namespace, name string, wanted map[corev1.ResourceName]bool) corev1.PodTemplate {
	list, exact := corev1.ResourceList{}, corev1.ResourceList{}
	for _, resource := range slices.Sorted(maps.Keys(s.free)) {
		q := s.free[resource]
		switch {
		case resource == corev1.ResourcePods || q.Sign() <= 0 || strings.HasPrefix(string(resource), corev1.ResourceHugePagesPrefix) || strings.HasPrefix(string(resource), corev1.ResourceAttachableVolumesPrefix):
		case strings.Contains(string(resource), "/"): // such a resource may not be requested without a limit
			if wanted[resource] {
				list[resource], exact[resource] = q, q
			}
		default:
			list[resource] = q
		}
	}
	selector, choice := map[string]string{}, []corev1.NodeSelectorRequirement(nil)
	for _, key := range append([]string{nodepool.LabelKey, corev1.LabelInstanceTypeStable}, placeKeys...) {
		switch values := s.values(key); len(values) {
		case 0:
		case 1:
			selector[key] = values[0]
		default:
			choice = append(choice, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values})
		}
	}
	t := corev1.PodTemplate{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PodTemplate"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
	}
	t.Template.Labels = map[string]string{"joinery-sdk.dev/headroom": "true"}
	t.Template.Spec = corev1.PodSpec{
		NodeSelector: selector,
		Containers:   []corev1.Container{{Name: "room", Image: "example.com/never-started", Resources: corev1.ResourceRequirements{Requests: list, Limits: exact}}},
	}
	if len(choice) > 0 {
		t.Template.Spec.Affinity = &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: choice}}}},
			// The largest of the types may have room for two.
			PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: t.Template.Labels}},
			}},
		}
	}
	for _, taint := range s.taints {
		t.Template.Spec.Tolerations = append(t.Template.Spec.Tolerations, corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpEqual, Value: taint.Value, Effect: taint.Effect})
	}
	return t
}

// values returns the values of a label with which the spare may be bought.
func (s *Spare) values(key string) []string {
	var out []string
	for _, w := range append([]Spare{*s}, s.ways...) {
		if v := w.node.Labels[key]; v != "" {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
