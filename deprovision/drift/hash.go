package drift

import (
	"encoding/binary"
	"hash/fnv"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// HashVersion is the version of the hash that [Hash] computes.
const HashVersion = "v3"

// Hash returns the value that Karpenter writes into the annotation karpenter.sh/nodepool-hash of a
// pool and of the nodes that it buys, in version [HashVersion]. It covers the labels, annotations,
// taints, startup taints, node class, termination grace period and expiry of the template, in any
// order within their lists. Requirements are compared separately. The result is false if the hash
// is not known: for nil, for pools of older API versions, and for taints with the field timeAdded.
//
// The value is a structural hash, format 2, based on FNV-1 with 64 bits over bytes:
//
//   - The hash of a struct starts as the hash of its type's name. Each field that is not empty is
//     then combined with it by exclusive-or, and the result is hashed again.
//   - The hash of a map is the exclusive-or of its entries, hashed again.
//   - The hash of a list is the exclusive-or of its elements.
func Hash(p *nodepool.NodePool) (string, bool) {
	if p == nil || p.APIVersion != nodepool.V1 {
		return "", false
	}
	spec := newStructural("NodeClaimTemplateSpec")
	for _, t := range []struct {
		field string
		list  []corev1.Taint
	}{{"Taints", p.Taints}, {"StartupTaints", p.StartupTaints}} {
		if len(t.list) == 0 {
			continue
		}
		var all uint64
		for _, taint := range t.list {
			if taint.TimeAdded != nil {
				return "", false
			}
			one := newStructural("Taint")
			one.text("Key", taint.Key)
			one.text("Value", taint.Value)
			one.text("Effect", string(taint.Effect))
			all ^= uint64(one)
		}
		spec.field(t.field, all)
	}
	if !p.NodeClass.IsZero() {
		ref := newStructural("NodeClassReference")
		ref.text("Kind", p.NodeClass.Kind)
		ref.text("Name", p.NodeClass.Name)
		ref.text("Group", p.NodeClass.Group)
		spec.field("NodeClassRef", uint64(ref))
	}
	if d := p.TerminationGracePeriod; d != nil {
		period := newStructural("Duration")
		if *d != 0 {
			period.field("Duration", words(uint64(*d)))
		}
		spec.field("TerminationGracePeriod", uint64(period))
	}
	if d := p.Disruption.ExpireAfter; d != nil {
		expiry := newStructural("NillableDuration")
		expiry.field("Duration", words(uint64(*d)))
		spec.field("ExpireAfter", uint64(expiry))
	}
	template := newStructural("NodeClaimTemplate")
	if len(p.Labels)+len(p.Annotations) > 0 {
		meta := newStructural("ObjectMeta")
		meta.dictionary("Labels", p.Labels)
		meta.dictionary("Annotations", p.Annotations)
		template.field("ObjectMeta", uint64(meta))
	}
	template.field("Spec", uint64(spec)) // never empty, because it has requirements
	return strconv.FormatUint(uint64(template), 10), true
}

// structural is the hash of a struct with the fields added so far, in the order of the type.
type structural uint64

func newStructural(name string) structural { return structural(written(name)) }

func (s *structural) field(name string, value uint64) {
	*s = structural(words(uint64(*s) ^ words(written(name), value)))
}

func (s *structural) text(name, value string) {
	if value != "" {
		s.field(name, written(value))
	}
}

func (s *structural) dictionary(name string, m map[string]string) {
	if len(m) == 0 {
		return
	}
	var all uint64
	for k, v := range m { // in any order, because exclusive-or has none
		all ^= words(written(k), written(v))
	}
	s.field(name, words(all))
}

func written(text string) uint64 {
	h := fnv.New64()
	h.Write([]byte(text))
	return h.Sum64()
}

func words(list ...uint64) uint64 {
	h := fnv.New64()
	for _, w := range list {
		h.Write(binary.LittleEndian.AppendUint64(nil, w))
	}
	return h.Sum64()
}
