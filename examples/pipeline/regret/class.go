package regret

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
)

// classes finds pods that are equal except for their names and nodes.
type classes struct {
	known   map[*corev1.Pod]int
	byText  map[string]int
	members []*corev1.Pod // one pod of each class
	texts   []string      // of each class
}

func newClasses() *classes {
	return &classes{known: map[*corev1.Pod]int{}, byText: map[string]int{}}
}

// of returns the class of a pod, by its namespace, labels, annotations and specification.
func (k *classes) of(p *corev1.Pod) int {
	if c, ok := k.known[p]; ok {
		return c
	}
	spec := p.Spec
	spec.NodeName, spec.Hostname = "", ""
	text, err := json.Marshal(struct {
		Namespace           string
		Labels, Annotations map[string]string
		Spec                corev1.PodSpec
	}{p.Namespace, p.Labels, p.Annotations, spec})
	if err != nil { // impossible for an object that was read; a class of its own
		text = []byte(p.Namespace + "/" + p.Name)
	}
	c, ok := k.byText[string(text)]
	if !ok {
		c = len(k.members)
		k.byText[string(text)] = c
		k.members, k.texts = append(k.members, p), append(k.texts, string(text))
	}
	k.known[p] = c
	return c
}
