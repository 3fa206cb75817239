package podclass

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

// Totals caches [resources.OfPod] of pending pods by their containers' requests: clusters have many classes of pods, but few sizes. The zero
// value is ready to use. It is not safe for concurrent use.
type Totals struct {
	known map[string]corev1.ResourceList
	buf   []byte
	names []corev1.ResourceName
}

// Requests is [resources.OfPod] of a pending pod. It is shared and must not be modified.
func (t *Totals) Requests(p *corev1.Pod) corev1.ResourceList {
	t.buf = t.buf[:0]
	t.containers(p.Spec.Containers)
	t.containers(p.Spec.InitContainers)
	t.list(p.Spec.Overhead)
	if r := p.Spec.Resources; r != nil {
		t.list(r.Requests)
		t.list(r.Limits)
	}
	if list, ok := t.known[string(t.buf)]; ok {
		return list
	}
	list := resources.OfPod(p, false)
	if t.known == nil {
		t.known = map[string]corev1.ResourceList{}
	}
	t.known[string(t.buf)] = list
	return list
}

func (t *Totals) containers(cs []corev1.Container) {
	f := fingerprint{buf: t.buf}
	f.number(int64(len(cs)))
	for i := range cs {
		if policy := cs[i].RestartPolicy; policy != nil {
			f.text(string(*policy))
		}
		t.buf = append(f.buf, '|')
		t.list(cs[i].Resources.Requests)
		f.buf = t.buf
	}
	t.buf = f.buf
}

// list appends the exact quantities: their sum is rounded, not each of them.
func (t *Totals) list(l corev1.ResourceList) {
	t.names = t.names[:0]
	for name := range l {
		t.names = append(t.names, name)
	}
	slices.Sort(t.names)
	f := fingerprint{buf: t.buf}
	f.number(int64(len(t.names)))
	for _, name := range t.names {
		f.text(string(name))
		q := l[name]
		f.text(string(q.Format))
		milli := q.MilliValue()
		if n, ok := q.AsInt64(); ok {
			f.buf = append(f.buf, 'n')
			f.number(n)
		} else if resource.NewMilliQuantity(milli, q.Format).Cmp(q) == 0 {
			f.buf = append(f.buf, 'm')
			f.number(milli)
		} else {
			f.buf = append(f.buf, 't')
			f.text(q.String())
		}
	}
	t.buf = f.buf
}
