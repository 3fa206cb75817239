package karpenter

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// store answers the reads of Karpenter from memory. It stands in for the informer cache that
// Karpenter reads from in a cluster, and like that hands out deep copies; a fake client would add a
// round trip through JSON to every read and so make the reference look slow. Writing panics on the
// nil that is embedded.
type store struct {
	client.Client
	objects map[reflect.Type]map[types.NamespacedName]client.Object
	lists   map[reflect.Type][]client.Object // by namespace and name
	byNode  map[string][]client.Object       // pods
}

func newStore() *store {
	return &store{
		objects: map[reflect.Type]map[types.NamespacedName]client.Object{},
		lists:   map[reflect.Type][]client.Object{},
		byNode:  map[string][]client.Object{},
	}
}

func addAll[T client.Object](s *store, list []T) {
	for _, o := range list {
		t := reflect.TypeOf(o)
		key := types.NamespacedName{Name: o.GetName()}
		if namespaced(o) {
			key = nameOf(o)
		}
		if s.objects[t] == nil {
			s.objects[t] = map[types.NamespacedName]client.Object{}
		}
		s.objects[t][key] = o
		s.lists[t] = append(s.lists[t], o)
		if p, ok := any(o).(*corev1.Pod); ok {
			s.byNode[p.Spec.NodeName] = append(s.byNode[p.Spec.NodeName], o)
		}
	}
}

// sort gives lists an order that does not depend on that of the input.
func (s *store) sort() {
	byName := func(a, b client.Object) int { return compareNames(nameOf(a), nameOf(b)) }
	for _, list := range s.lists {
		slices.SortFunc(list, byName)
	}
	for _, list := range s.byNode {
		slices.SortFunc(list, byName)
	}
}

func namespaced(o client.Object) bool {
	switch o.(type) {
	case *corev1.Node, *corev1.Namespace, *corev1.PersistentVolume, *storagev1.StorageClass, *storagev1.CSINode,
		*karpv1.NodePool, *karpv1.NodeClaim:
		return false
	}
	return true
}

// Get copies the object of that name into out. The namespace of a key is ignored for what has none,
// as caches do.
func (s *store) Get(_ context.Context, key client.ObjectKey, out client.Object, _ ...client.GetOption) error {
	t := reflect.TypeOf(out)
	if !namespaced(out) {
		key.Namespace = ""
	}
	have, ok := s.objects[t][key]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: t.Elem().Name()}, key.String())
	}
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(have.DeepCopyObject()).Elem())
	return nil
}

// List copies the objects that match into out. It knows namespaces, label selectors and the field
// spec.nodeName of pods.
func (s *store) List(_ context.Context, out client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	items := reflect.ValueOf(out).Elem().FieldByName("Items")
	t := items.Type().Elem()
	candidates := s.lists[reflect.PointerTo(t)]
	if o.FieldSelector != nil && !o.FieldSelector.Empty() {
		node, ok := o.FieldSelector.RequiresExactMatch("spec.nodeName")
		if t != reflect.TypeFor[corev1.Pod]() || !ok || len(o.FieldSelector.Requirements()) != 1 {
			return fmt.Errorf("karpenter: list of %s by field %q is not supported", t.Name(), o.FieldSelector)
		}
		candidates = s.byNode[node]
	}
	found := reflect.MakeSlice(items.Type(), 0, 0)
	for _, c := range candidates {
		if o.Namespace != "" && o.Namespace != nameOf(c).Namespace {
			continue
		}
		if o.LabelSelector != nil && !o.LabelSelector.Matches(labelsOf{c.GetLabels()}) {
			continue
		}
		found = reflect.Append(found, reflect.ValueOf(c.DeepCopyObject()).Elem())
	}
	items.Set(found)
	return nil
}

// labelsOf reads labels without the conversion to labels.Set that would allocate for each
// candidate.
type labelsOf struct{ m map[string]string }

// Has reports whether the label is there.
func (l labelsOf) Has(key string) bool { _, ok := l.m[key]; return ok }

// Get returns the label's value or "".
func (l labelsOf) Get(key string) string { return l.m[key] }

// Lookup returns the label's value and whether it is there.
func (l labelsOf) Lookup(key string) (string, bool) { v, ok := l.m[key]; return v, ok }

var _ client.Reader = (*store)(nil)
