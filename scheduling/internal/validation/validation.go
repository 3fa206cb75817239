// Package validation collects what is wrong with the objects of a snapshot.
package validation

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Fault is what is wrong with an object.
type Fault struct {
	What string // the kind and name of the object, or its list and position if it has no name
	Err  error
}

// Faults are the faults so far. The zero value has none.
type Faults []Fault

// Add adds a fault.
func (f *Faults) Add(what, format string, args ...any) {
	*f = append(*f, Fault{what, fmt.Errorf(format, args...)})
}

// Taints reports unknown effects.
func (f *Faults) Taints(what string, list []corev1.Taint) {
	for _, t := range list {
		switch t.Effect {
		case corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule:
		default:
			f.Add(what, "taint %s has the effect %q, want NoSchedule, NoExecute or PreferNoSchedule", t.Key, t.Effect)
		}
	}
}

// Amounts reports amounts below zero.
func (f *Faults) Amounts(what string, list corev1.ResourceList) {
	for _, name := range resources.Names(list) {
		if q := list[name]; q.Sign() < 0 {
			f.Add(what, "%s is %s, must not be negative", name, q.String())
		}
	}
}

// Spelling reports names of resources that are misspelt, according to wrong, and so would limit
// nothing.
func (f *Faults) Spelling(what string, limits corev1.ResourceList, wrong func(corev1.ResourceName) string) {
	for _, name := range resources.Names(limits) {
		if text := wrong(name); text != "" {
			f.Add(what, "limit of %s: %s", name, text)
		}
	}
}

// Count reports a number below zero.
func (f *Faults) Count(what, field string, n int64) {
	if n < 0 {
		f.Add(what, "%s is %d, must not be negative", field, n)
	}
}

// Names finds objects without a name, and objects that share a name.
type Names struct {
	kind, list string
	seen       map[[2]string]bool
}

// NamesOf returns the names of a list of so many objects.
func NamesOf(kind, list string, count int) Names {
	return Names{kind, list, make(map[[2]string]bool, count)}
}

// Check looks at a name, which must be unique within scope: a namespace, or "" for the cluster.
func (n *Names) Check(f *Faults, i int, scope, name string) {
	switch at := [2]string{scope, name}; {
	case name == "":
		f.Add(fmt.Sprintf("%s[%d]", n.list, i), "has no name")
	case n.seen[at]:
		f.Add(n.kind+" "+strings.TrimPrefix(scope+"/"+name, "/"), "is listed more than once; names are unique in a cluster")
	default:
		n.seen[at] = true
	}
}

// List reports objects of a list that are nil, without a name, or named like another. If more is not
// nil, it is called for each object that is not nil. field is the name of the list in the snapshot.
func List[P interface {
	comparable
	metav1.Object
}](f *Faults, kind, list, field string, all []P, more func(P)) {
	names := NamesOf(kind, list, len(all))
	var missing P
	for i, x := range all {
		if x == missing {
			f.Add(fmt.Sprintf("%s[%d]", field, i), "is nil; leave it out")
			continue
		}
		scope := x.GetNamespace()
		if kind == "pod" {
			scope = cmp.Or(scope, corev1.NamespaceDefault)
		}
		names.Check(f, i, scope, x.GetName())
		if more != nil {
			more(x)
		}
	}
}

// Pool reports what a manifest of the pool could not say. A missing name is reported with the names.
func (f *Faults) Pool(pool *nodepool.NodePool) {
	joined, _ := pool.Validate().(interface{ Unwrap() []error })
	if joined == nil {
		return
	}
	for _, err := range joined.Unwrap() {
		var fault *nodepool.FieldError
		if errors.As(err, &fault) && (pool.Name != "" || fault.Path != "metadata.name") {
			f.Add("pool "+pool.Name, "%s: %s", fault.Path, fault.Detail)
		}
	}
}

// ClassLabel reports a type with another value of the label that names the node class of the pool.
// Karpenter never buys such a type. A pool that requires the label itself has no conflict.
func (f *Faults) ClassLabel(pool *nodepool.NodePool, key string, types []instancetypes.InstanceType) {
	if key == "" || pool.NodeRequirements().Has(key) {
		return
	}
	class := requirements.In(key, pool.NodeClass.Name)
	conflicts := func(s requirements.Set) bool { return s.Has(key) && s.Get(key).Intersect(class).IsImpossible() }
	for i := range types {
		t, set := &types[i], types[i].Requirements
		if k := slices.IndexFunc(t.Offerings, func(o instancetypes.Offering) bool { return conflicts(o.Requirements) }); k >= 0 {
			set = t.Offerings[k].Requirements
		}
		if conflicts(set) {
			f.Add("pool "+pool.Name, "instance type %s requires %s, but the pool's nodes have the label %s=%s, which names their node class; "+
				"rename the label of the type, or use another kind or group for the node class", t.Name, set.Get(key), key, pool.NodeClass.Name)
			return
		}
	}
}
