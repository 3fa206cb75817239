// Package drift says how a node differs from what its pool would buy now.
package drift

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Subject is a node and what it is compared with. The zero value has not drifted.
type Subject struct {
	// Labels and Annotations are those of the node or of its claim.
	Labels, Annotations map[string]string
	// Age is the age of the node.
	Age time.Duration
	// Pool is the pool that bought the node. nil means that nothing is compared with a pool.
	Pool *nodepool.NodePool
	// Types are all types of the pool's cloud. nil means that nothing is compared with them.
	Types []instancetypes.InstanceType
	// Image is the image of the node, and Images are those that new nodes get. They are compared
	// only if both are set.
	Image  string
	Images []string
}

// VoluntaryDisruption is the annotation that requests the replacement of a node; its value is
// "drifted".
const VoluntaryDisruption = "karpenter.sh/voluntary-disruption"

// hashes returns the annotations that are compared between pool and node, and those with the hash
// version, newest first.
func hashes() [][2]string {
	return [][2]string{
		{"karpenter.sh/nodepool-hash", "karpenter.sh/nodepool-hash-version"},
		{"karpenter.sh/provisioner-hash", "karpenter.sh/provisioner-hash-version"},
	}
}

// Reasons returns the ways in which the node has drifted, in Karpenter's order, or none. It looks
// at each offering of the node's type once.
//
// Hashes are compared only if they have the same version. If a pool lacks the annotation, as in a
// manifest that was never applied, its hash is computed here ([Hash]). [Unknown] returns what could
// not be compared. A missing type counts only for nodes older than an hour, because it takes a
// while until new offerings are listed.
func Reasons(s Subject) []string {
	var out []string
	if s.Annotations[VoluntaryDisruption] == "drifted" {
		out = append(out, "annotation "+VoluntaryDisruption+"=drifted")
	}
	if s.Pool == nil {
		return out
	}
	for _, h := range hashes() {
		mine := nodeHash(s, h)
		if mine.value == "" {
			continue
		}
		if theirs := poolHash(s, h); theirs.value != "" && mine.version == theirs.version && mine != theirs {
			out = append(out, fmt.Sprintf("the settings of pool %s have changed (hash %s, now %s)", s.Pool.Name, mine.value, theirs.value))
		}
	}
	out = append(out, requirementsDrifted(s)...)
	if s.Types != nil && s.Age > time.Hour {
		if why := typeGone(s); why != "" {
			out = append(out, why)
		}
	}
	if s.Image != "" && len(s.Images) > 0 && !slices.Contains(s.Images, s.Image) {
		out = append(out, fmt.Sprintf("image %s is not one that new nodes get now", s.Image))
	}
	return out
}

// Unknown returns what could not be compared, and why: the two hashes have different versions, or
// only the node has a hash and that of the pool cannot be computed here ([Hash]). This is not
// drift.
func Unknown(s Subject) []string {
	if s.Pool == nil {
		return nil
	}
	var out []string
	for _, h := range hashes() {
		mine, theirs := nodeHash(s, h), poolHash(s, h)
		switch {
		case mine.value == "":
		case theirs.value == "":
			out = append(out, fmt.Sprintf("it is not known whether the settings of pool %s have changed: it has no annotation %s", s.Pool.Name, h[0]))
		case mine.version != theirs.version:
			out = append(out, fmt.Sprintf("it is not known whether the settings of pool %s have changed: the node's hash has version %q, the pool's has %q", s.Pool.Name, mine.version, theirs.version))
		}
	}
	return out
}

// hashed is a hash and its version. An empty value means that there is no hash.
type hashed struct{ value, version string }

func nodeHash(s Subject, annotation [2]string) hashed {
	return hashed{s.Annotations[annotation[0]], s.Annotations[annotation[1]]}
}

func poolHash(s Subject, annotation [2]string) hashed {
	if value, ok := s.Pool.Metadata.Annotations[annotation[0]]; ok {
		return hashed{value, s.Pool.Metadata.Annotations[annotation[1]]}
	}
	if annotation == hashes()[0] {
		if value, ok := Hash(s.Pool); ok {
			return hashed{value, HashVersion}
		}
	}
	return hashed{}
}

// requirementsDrifted compares the labels with the pool's requirements. A missing label counts as
// absent.
func requirementsDrifted(s Subject) []string {
	aliases := requirements.KubernetesAliases().And(requirements.AgentAliases())
	labels := aliases.Labels(s.Labels)
	node := requirements.FromLabels(labels)
	asked, err := aliases.Set(s.Pool.Requirements)
	if err != nil {
		return nil
	}
	var out []string
	for r := range asked.All() {
		// Keys that only a provider sets may be missing on nodes that an older version of it
		// bought.
		if _, known := labels[r.Key()]; !known && !r.AllowsAbsent() && !requirements.KeysOf(corev1.LabelTopologyZone,
			corev1.LabelArchStable, corev1.LabelInstanceTypeStable, instancetypes.LabelCapacityType).Contains(r.Key()) && instancetypes.WellKnown().Contains(r.Key()) {
			continue
		}
		if !r.Overlaps(node.Get(r.Key())) || (!node.Has(r.Key()) && !r.AllowsAbsent()) {
			out = append(out, fmt.Sprintf("pool %s requires %s, but the node has %s", s.Pool.Name, r, value(labels, r.Key())))
		}
	}
	return out
}

func value(labels map[string]string, key string) string {
	if v, ok := labels[key]; ok {
		return fmt.Sprintf("%q", v)
	}
	return "no such label"
}

// typeGone looks for an offering, available or not, that matches the node.
func typeGone(s Subject) string {
	labels := requirements.KubernetesAliases().Labels(s.Labels)
	name := labels[corev1.LabelInstanceTypeStable]
	if name == "" {
		return ""
	}
	for i := range s.Types {
		if s.Types[i].Name != name {
			continue
		}
		for _, o := range s.Types[i].Offerings {
			zone, capacity := o.Requirements.Get(corev1.LabelTopologyZone), o.CapacityType()
			want := labels[instancetypes.LabelCapacityType]
			if z, ok := labels[corev1.LabelTopologyZone]; ok && !zone.Contains(z) {
				continue
			}
			if want == "" || capacity == want || want == "reserved" && capacity == "on-demand" {
				return ""
			}
		}
		return fmt.Sprintf("type %s is no longer offered in zone %s as %s", name, labels[corev1.LabelTopologyZone], labels[instancetypes.LabelCapacityType])
	}
	return fmt.Sprintf("type %s does not exist any more", name)
}
