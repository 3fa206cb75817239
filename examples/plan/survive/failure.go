// Package survive rehearses failures of a cluster: the loss of any one zone, spot pool,
// reservation, node or instance family. It says which pods would wait for new nodes and which would
// have no place at all. If pods would wait, it finds the cheapest headroom with which none does,
// and a lower bound of its cost.
package survive

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// Kind is the kind of thing that fails as a whole.
type Kind string

// The kinds of failures.
const (
	Zone        Kind = "zone"
	SpotPool    Kind = "spot-pool" // the spot capacity of an instance type in a zone
	Reservation Kind = "reservation"
	Node        Kind = "node"
	Family      Kind = "instance-family"
)

// Kinds returns all kinds of failures.
func Kinds() []Kind { return []Kind{Zone, SpotPool, Reservation, Node, Family} }

// ParseKinds reads kinds separated by commas, such as "zone,node". The error names an unknown kind
// and what may have been meant.
func ParseKinds(text string) ([]Kind, error) {
	var out []Kind
	known := make([]string, 0, len(Kinds()))
	for _, k := range Kinds() {
		known = append(known, string(k))
	}
	for word := range strings.SplitSeq(text, ",") {
		k := Kind(strings.TrimSpace(word))
		if !slices.Contains(Kinds(), k) {
			hint := ""
			if near, ok := requirements.Nearest(string(k), known); ok {
				hint = fmt.Sprintf(" (did you mean %q?)", near)
			}
			return nil, fmt.Errorf("%q: want some of %s%s", k, strings.Join(known, ", "), hint)
		}
		if !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out, nil
}

// Failure is the loss of one thing, such as a zone, with all nodes in it. What is lost is not for
// sale, unless it is a node.
type Failure struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
}

// String returns for example "zone us-east-1a".
func (f Failure) String() string { return string(f.Kind) + " " + f.Name }

// familyLabel is the label of a family. A type without it belongs to the family that its name
// begins with.
const familyLabel = "karpenter.k8s.aws/instance-family"

// domainOf returns the thing of this kind that contains a node with these labels, or an empty
// string.
func (k Kind) domainOf(label func(key string) string) string {
	switch k {
	case Zone:
		return label(corev1.LabelTopologyZone)
	case SpotPool:
		if label(instancetypes.LabelCapacityType) != instancetypes.CapacityTypeSpot {
			return ""
		}
		return label(corev1.LabelInstanceTypeStable) + " in " + label(corev1.LabelTopologyZone)
	case Reservation:
		return label(instancetypes.LabelReservationID)
	case Node:
		return label(corev1.LabelHostname)
	case Family:
		family, _, _ := strings.Cut(label(corev1.LabelInstanceTypeStable), ".")
		return cmp.Or(label(familyLabel), family)
	}
	return ""
}

func labelsOf(n *corev1.Node) func(string) string {
	return func(key string) string {
		if key == corev1.LabelHostname {
			return n.Name // a node fails alone, whatever hostname it has
		}
		return n.Labels[key]
	}
}

func offered(t *instancetypes.InstanceType, o *instancetypes.Offering) func(string) string {
	return func(key string) string {
		for _, set := range []requirements.Set{o.Requirements, t.Requirements} {
			if value, ok := set.Get(key).Single(); ok && set.Has(key) {
				return value
			}
		}
		return ""
	}
}

// strikes reports whether a node with these labels is lost.
func (f Failure) strikes(label func(string) string) bool { return f.Kind.domainOf(label) == f.Name }

// failures returns the failures of the kinds that affect a node, in a total order.
func failures(s *scheduling.Snapshot, kinds []Kind) []Failure {
	var out []Failure
	for _, k := range kinds {
		var names []string
		for _, n := range s.Nodes {
			if name := k.domainOf(labelsOf(n)); name != "" {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			out = append(out, Failure{k, name})
		}
	}
	return out
}

// sold returns the domains of the kind in which pools can buy nodes. whole says that no node can be
// bought outside all of them.
func sold(s *scheduling.Snapshot, k Kind) (names []string, whole bool) {
	seen := map[string]bool{}
	whole = k != Node
	for i := range s.Pools {
		p := &s.Pools[i]
		set := p.Requirements
		for j := range p.Types {
			t := &p.Types[j]
			if !t.Requirements.Overlaps(set) {
				continue
			}
			for x := range t.Offerings {
				o := &t.Offerings[x]
				if !o.Available || !o.Requirements.Overlaps(set) {
					continue
				}
				name := k.domainOf(offered(t, o))
				if whole = whole && name != ""; name != "" && !seen[name] {
					seen[name] = true
					names = append(names, name)
				}
			}
		}
	}
	slices.Sort(names)
	return names, whole
}

// after returns the cluster after the failure: its nodes are gone, their pods wait, and what failed
// is not for sale. Pods that belong to their node are gone. displaced are the pods that wait.
func (f Failure) after(s scheduling.Snapshot) (out scheduling.Snapshot, displaced []*corev1.Pod) {
	gone := map[string]bool{}
	out = s
	out.Nodes, out.Pods, out.NodeClaims = nil, nil, nil
	for _, n := range s.Nodes {
		if f.strikes(labelsOf(n)) {
			gone[n.Name], gone[n.Spec.ProviderID] = true, true
		} else {
			out.Nodes = append(out.Nodes, n)
		}
	}
	delete(gone, "")
	for i := range s.NodeClaims {
		if c := &s.NodeClaims[i]; !gone[cmp.Or(c.NodeName, c.Name)] && !gone[c.ProviderID] && !f.strikes(func(key string) string { return c.Labels[key] }) {
			out.NodeClaims = append(out.NodeClaims, *c)
		}
	}
	for _, p := range s.Pods {
		switch {
		case !gone[p.Spec.NodeName]:
			out.Pods = append(out.Pods, p)
		case eviction.Reschedulable(p):
			q := *p
			q.Spec.NodeName, q.DeletionTimestamp = "", nil
			q.Status = corev1.PodStatus{Phase: corev1.PodPending}
			displaced = append(displaced, &q)
		}
	}
	out.Pods = append(out.Pods, displaced...)
	if f.Kind != Node {
		out.Pools = f.unsold(s.Pools)
	}
	return out, displaced
}

// unsold returns the pools without what failed.
func (f Failure) unsold(pools []scheduling.Pool) []scheduling.Pool {
	out := slices.Clone(pools)
	done := map[*instancetypes.InstanceType][]instancetypes.InstanceType{} // pools may share their types
	for i := range out {
		types := out[i].Types
		if len(types) == 0 {
			continue
		}
		left, known := done[&types[0]]
		if !known || len(left) != len(types) {
			left = slices.Clone(types)
			for k := range left {
				t := &left[k]
				lost := func(o instancetypes.Offering) bool { return f.strikes(offered(t, &o)) }
				if !slices.ContainsFunc(t.Offerings, lost) {
					continue
				}
				t.Offerings = slices.Clone(t.Offerings)
				for j := range t.Offerings {
					t.Offerings[j].Available = t.Offerings[j].Available && !lost(t.Offerings[j])
				}
			}
			done[&types[0]] = left
		}
		out[i].Types = left
	}
	return out
}
