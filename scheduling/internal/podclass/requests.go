package podclass

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Totals caches what is computed of pods by their containers' resources, such as their requests: clusters have many classes of pods, but few
// sizes. The zero value is ready to use. It is not safe for concurrent use.
type Totals[T any] struct {
	known map[string]T
	print fingerprint // reused
}

// Of is the value for pods of the same resources as p, which compute gives for the first of them. The scope is what else it depends on.
func (t *Totals[T]) Of(p *corev1.Pod, compute func() T, scope ...string) T {
	f := &t.print
	f.buf = f.buf[:0]
	for _, s := range scope {
		f.text(s)
	}
	f.exactContainers(p.Spec.Containers)
	f.exactContainers(p.Spec.InitContainers)
	f.exact(p.Spec.Overhead)
	if r := p.Spec.Resources; r != nil {
		f.exact(r.Requests)
		f.exact(r.Limits)
	}
	if v, ok := t.known[string(f.buf)]; ok {
		return v
	}
	v := compute()
	if t.known == nil {
		t.known = map[string]T{}
	}
	t.known[string(f.buf)] = v
	return v
}

func (f *fingerprint) exactContainers(cs []corev1.Container) {
	f.number(int64(len(cs)))
	for i := range cs {
		if policy := cs[i].RestartPolicy; policy != nil {
			f.text(string(*policy))
		}
		f.text("|")
		f.exact(cs[i].Resources.Requests)
		f.exact(cs[i].Resources.Limits)
	}
}

// exact appends the exact quantities: their sum is rounded, not each of them.
func (f *fingerprint) exact(l corev1.ResourceList) {
	var few [8]corev1.ResourceName
	for _, name := range f.sortedNames(l, few[:0]) {
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
}
