package ruletest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
)

// NodePool builds a pool that may buy nodes. It is a value: every method returns a new one. The
// zero value has no name, and planning rejects it.
type NodePool struct {
	name   string
	weight *int
	only   []corev1.NodeSelectorRequirement
	taints []corev1.Taint
	labels map[string]string
	limits map[string]string
	err    error
}

// Pool returns a NodePool (karpenter.sh/v1) that may buy everything.
func Pool(name string) NodePool { return NodePool{name: name} }

// Only restricts what the pool may buy, in the text form of package requirements:
// "karpenter.sh/capacity-type=spot, karpenter.k8s.aws/instance-category in (c,m)".
func (p NodePool) Only(labels string) NodePool {
	list, err := expressions(labels)
	if err != nil {
		p.err = errors.Join(p.err, fmt.Errorf("ruletest: pool %q: %w", p.name, err))
	}
	p.only = append(slices.Clone(p.only), list...)
	return p
}

// Taint adds a taint to the pool's nodes: "dedicated=batch:NoSchedule".
func (p NodePool) Taint(taint string) NodePool {
	p.taints = append(slices.Clone(p.taints), taintOf(taint))
	return p
}

// Label adds a label to the pool's nodes.
func (p NodePool) Label(key, value string) NodePool {
	p.labels = with(p.labels, key, value)
	return p
}

// Weight orders pools, from 1 to 100: pods go to the pool with the greatest weight that can hold
// them.
func (p NodePool) Weight(weight int) NodePool {
	p.weight = &weight
	return p
}

// Limit limits the sum over the pool's nodes: Limit("cpu", "100"), Limit("nodes", "3").
func (p NodePool) Limit(resource, quantity string) NodePool {
	p.limits = with(p.limits, resource, quantity)
	return p
}

func (p NodePool) manifest() (json.RawMessage, bool, error) { //nolint:unparam // an object of a kind with several answers
	if p.err != nil {
		return nil, false, p.err
	}
	type object map[string]any
	if p.only == nil {
		p.only = []corev1.NodeSelectorRequirement{}
	}
	spec := object{"template": object{
		"metadata": object{"labels": p.labels},
		"spec": object{
			"requirements": p.only, "taints": p.taints,
			"nodeClassRef": object{"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
		},
	}}
	if p.weight != nil {
		spec["weight"] = p.weight
	}
	if p.limits != nil {
		spec["limits"] = p.limits
	}
	text, err := json.Marshal(object{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": object{"name": p.name}, "spec": spec})
	return text, false, err
}

// Node builds an existing node. It is a value: every method returns a new one. The zero value has
// no name, and planning rejects it.
type Node struct {
	name   string
	labels map[string]string
	taints []corev1.Taint
	room   corev1.ResourceList
	err    error
}

// ExistingNode returns a ready node with the given allocatable resources: names and quantities
// alternate. Without "pods" there are 110.
func ExistingNode(name string, allocatable ...string) Node {
	n := Node{name: name, labels: map[string]string{corev1.LabelHostname: name}}
	n.room, n.err = quantities(allocatable)
	if n.err != nil {
		n.err = fmt.Errorf("ruletest: node %q: %w", name, n.err)
	}
	if _, ok := n.room[corev1.ResourcePods]; !ok {
		pods, _ := quantities([]string{"pods", "110"})
		maps.Copy(n.room, pods)
	}
	return n
}

// Label adds a label to the node.
func (n Node) Label(key, value string) Node {
	n.labels = with(n.labels, key, value)
	return n
}

// Taint adds a taint to the node: "dedicated=batch:NoSchedule".
func (n Node) Taint(taint string) Node {
	n.taints = append(slices.Clone(n.taints), taintOf(taint))
	return n
}

func (n Node) manifest() (json.RawMessage, bool, error) { //nolint:unparam // an object of a kind with several answers
	if n.err != nil {
		return nil, false, n.err
	}
	text, err := json.Marshal(&corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: n.labels},
		Spec:       corev1.NodeSpec{Taints: n.taints},
		Status: corev1.NodeStatus{
			Capacity: n.room, Allocatable: n.room,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	})
	return text, false, err
}

// InstanceType builds a type for pools to buy, in place of EC2's types. It is a value: every method
// returns a new one. The zero value has no name, and planning rejects it.
type InstanceType struct {
	name   string
	room   corev1.ResourceList
	labels []corev1.NodeSelectorRequirement
	arch   string
	offers []map[string]any
	err    error
}

// Type returns an amd64 machine with Linux and the given resources for pods: names and quantities
// alternate. Without "pods" there are 110.
func Type(name string, allocatable ...string) InstanceType {
	t := InstanceType{name: name, arch: "amd64"}
	t.room, t.err = quantities(allocatable)
	if t.err != nil {
		t.err = fmt.Errorf("ruletest: type %q: %w", name, t.err)
	}
	return t
}

// Label adds a label to the type; "kubernetes.io/arch" is its architecture.
func (t InstanceType) Label(key, value string) InstanceType {
	if key == corev1.LabelArchStable {
		t.arch = value
		return t
	}
	others := slices.DeleteFunc(slices.Clone(t.labels), func(r corev1.NodeSelectorRequirement) bool { return r.Key == key })
	t.labels = append(others, labelled(key, value))
	return t
}

// Offer sells the type in a zone, as "on-demand", "spot" or "reserved", at a price in dollars an
// hour.
func (t InstanceType) Offer(zone, capacityType string, price float64) InstanceType {
	wrong := func(format string, args ...any) {
		t.err = errors.Join(t.err, fmt.Errorf("ruletest: type %q: "+format, append([]any{t.name}, args...)...))
	}
	if zone == "" {
		wrong("an offer needs a zone")
	}
	if !(price >= 0) || math.IsInf(price, 1) {
		wrong("price %v: want dollars an hour, 0 or more", price)
		price = 0
	}
	if kinds := []string{instancetypes.CapacityTypeOnDemand, instancetypes.CapacityTypeSpot, instancetypes.CapacityTypeReserved}; !slices.Contains(kinds, capacityType) {
		wrong("capacity type %q: want one of %s%s", capacityType, strings.Join(kinds, ", "), hint(capacityType, kinds))
	}
	t.offers = append(slices.Clone(t.offers), map[string]any{
		"Price": price, "Available": true, "Requirements": []corev1.NodeSelectorRequirement{
			labelled(corev1.LabelTopologyZone, zone), labelled("karpenter.sh/capacity-type", capacityType),
		},
	})
	return t
}

func labelled(key, value string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}
}

func (t InstanceType) manifest() (json.RawMessage, bool, error) { //nolint:unparam // an object of a kind with several answers
	if t.err != nil {
		return nil, true, t.err
	}
	text, err := json.Marshal(map[string]any{
		"name": t.name, "architecture": t.arch, "operatingSystems": []string{"linux"}, "resources": t.room, "requirements": t.labels, "offerings": t.offers,
	})
	return text, true, err
}

func taintOf(text string) corev1.Taint {
	key, value, effect := splitTaint(strings.TrimSpace(text))
	return corev1.Taint{Key: key, Value: value, Effect: effect}
}

func with(m map[string]string, key, value string) map[string]string {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]string{}
	}
	out[key] = value
	return out
}
