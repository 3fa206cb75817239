package podclass

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Totals caches what is computed of pods by their containers' resources, such as their requests: clusters have many classes of pods, but few
// sizes. The zero value is ready to use. It is not safe for concurrent use.
type Totals[T any] struct {
	known map[string]T
	buf   []byte
	names []corev1.ResourceName
}

// Of is the value for pods of the same resources as p, which compute gives for the first of them. The scope is what else it depends on.
func (t *Totals[T]) Of(p *corev1.Pod, compute func() T, scope ...string) T {
	f := fingerprint{buf: t.buf[:0]}
	for _, s := range scope {
		f.text(s)
	}
	t.buf = f.buf
	t.containers(p.Spec.Containers)
	t.containers(p.Spec.InitContainers)
	t.list(p.Spec.Overhead)
	if r := p.Spec.Resources; r != nil {
		t.list(r.Requests)
		t.list(r.Limits)
	}
	if v, ok := t.known[string(t.buf)]; ok {
		return v
	}
	key, v := string(t.buf), compute()
	if t.known == nil {
		t.known = map[string]T{}
	}
	t.known[key] = v
	return v
}

func (t *Totals[T]) containers(cs []corev1.Container) {
	f := fingerprint{buf: t.buf}
	f.number(int64(len(cs)))
	for i := range cs {
		if policy := cs[i].RestartPolicy; policy != nil {
			f.text(string(*policy))
		}
		t.buf = append(f.buf, '|')
		t.list(cs[i].Resources.Requests)
		t.list(cs[i].Resources.Limits)
		f.buf = t.buf
	}
	t.buf = f.buf
}

// list appends the exact quantities: their sum is rounded, not each of them.
func (t *Totals[T]) list(l corev1.ResourceList) {
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
