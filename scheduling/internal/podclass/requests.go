package podclass

import corev1 "k8s.io/api/core/v1"

// Totals caches what is computed from the resources of pods' containers, such as their requests.
// Clusters have many classes of pods, but few sizes. The zero value is ready to use. It is not safe
// for concurrent use.
type Totals[T any] struct {
	known map[string]T
	print fingerprint // reused
}

// Of returns the value for pods with the same resources as p, which compute returns for the first
// of them. scope is what else the value depends on.
func (t *Totals[T]) Of(p *corev1.Pod, compute func() T, scope ...string) T {
	f := &t.print
	f.buf, f.exact = f.buf[:0], true // their sum is rounded, not each quantity
	for _, s := range scope {
		f.text(s)
	}
	f.resources(&p.Spec)
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
