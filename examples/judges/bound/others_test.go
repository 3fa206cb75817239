package bound_test

import (
	"fmt"
	"hash/fnv"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// other is another way to plan the same pods.
type other struct {
	name     string
	snapshot scheduling.Snapshot
	options  *plan.Options
	// chosen says that it keeps the weights and the preferences. It does not where something heavier than the rest is taken away: then pods go
	// where weights do not want them.
	chosen bool
}

// others are ways to plan the snapshot that take something away, also one instance type at a time, and some that tie each workload to an
// arbitrary zone.
func others(s scheduling.Snapshot, types []string, pins int) []other {
	soft := &plan.Options{Scheduling: &scheduling.Options{IgnorePreferences: true}}
	level := withPools(s, func(p *scheduling.Pool) { p.Weight = 0 })
	out := []other{
		{"the placed pods only", s, nil, true},
		{"no preferences", s, soft, false},
		{"no weights", level, nil, false},
		{"neither", level, soft, false},
	}
	for i := range s.Pools {
		name := s.Pools[i].Name
		lightest := !slices.ContainsFunc(s.Pools, func(p scheduling.Pool) bool { return p.Weight < s.Pools[i].Weight })
		for _, base := range []other{{"", s, nil, lightest}, {", neither weights nor preferences", level, soft, false}} {
			without := base.snapshot
			without.Pools = slices.DeleteFunc(slices.Clone(base.snapshot.Pools), func(p scheduling.Pool) bool { return p.Name == name })
			out = append(out, other{"without pool " + name + base.name, without, base.options, base.chosen})
		}
	}
	weighted := slices.ContainsFunc(s.Pools, func(p scheduling.Pool) bool { return p.Weight != s.Pools[0].Weight })
	for _, key := range []string{corev1.LabelTopologyZone, instancetypes.LabelCapacityType} {
		for _, v := range offered(s, key) {
			is := func(x string) bool { return x == v }
			isNot := func(x string) bool { return x != v }
			out = append(out,
				other{fmt.Sprintf("nothing bought in %s", v), selling(s, key, isNot), nil, !weighted},
				other{fmt.Sprintf("nothing bought in %s, neither", v), selling(level, key, isNot), soft, false},
				other{fmt.Sprintf("all bought in %s, neither", v), selling(level, key, is), soft, false})
		}
	}
	for _, name := range types {
		without := withOfferings(s, func(t *instancetypes.InstanceType, _ *instancetypes.Offering) bool { return t.Name != name })
		out = append(out, other{"without type " + name, without, nil, !weighted})
	}
	zones := offered(s, corev1.LabelTopologyZone)
	for k := range pins {
		options := &plan.Options{Scheduling: &scheduling.Options{IgnorePreferences: true, Constraints: []scheduling.Constraint{pinned{zones, k}}}}
		out = append(out, other{fmt.Sprintf("workloads tied to zones, draw %d", k), level, options, false})
	}
	return out
}

// domains are the values, by key, that the problem's nodes for sale have of the labels over which pending pods have hard spreads: to them a
// domain counts because it is for sale.
func domains(p *scheduling.Problem) map[string][]string {
	out := map[string][]string{}
	for _, c := range p.Classes {
		for _, x := range c.Template.Spec.TopologySpreadConstraints {
			if x.WhenUnsatisfiable == corev1.DoNotSchedule {
				out[x.TopologyKey] = nil
			}
		}
	}
	for i := range p.Shapes {
		for j := range p.Shapes[i].Offerings {
			labels, err := p.NodeLabels(i, j)
			for key, values := range out {
				if v, ok := labels.Get(key).Single(); err == nil && ok {
					out[key] = append(values, v)
				}
			}
		}
	}
	for key, values := range out {
		slices.Sort(values)
		out[key] = slices.Compact(values)
	}
	return out
}

func withPools(s scheduling.Snapshot, change func(*scheduling.Pool)) scheduling.Snapshot {
	s.Pools = slices.Clone(s.Pools)
	for i := range s.Pools {
		change(&s.Pools[i])
	}
	return s
}

// selling leaves the offerings whose label, if it has one value, is kept.
func selling(s scheduling.Snapshot, key string, keep func(string) bool) scheduling.Snapshot {
	return withOfferings(s, func(_ *instancetypes.InstanceType, o *instancetypes.Offering) bool {
		v, ok := o.Requirements.Get(key).Single()
		return !ok || keep(v)
	})
}

// withOfferings is the snapshot with copies of all offerings that change returns true for.
func withOfferings(s scheduling.Snapshot, change func(*instancetypes.InstanceType, *instancetypes.Offering) bool) scheduling.Snapshot {
	return withPools(s, func(p *scheduling.Pool) {
		p.Types = slices.Clone(p.Types)
		for i := range p.Types {
			t := &p.Types[i]
			kept := make([]instancetypes.Offering, 0, len(t.Offerings))
			for _, o := range t.Offerings {
				if change(t, &o) {
					kept = append(kept, o)
				}
			}
			t.Offerings = kept
		}
	})
}

// offered are the values of a label of the offerings, sorted.
func offered(s scheduling.Snapshot, key string) []string {
	var out []string
	for _, p := range s.Pools {
		for _, t := range p.Types {
			for _, o := range t.Offerings {
				if v, ok := o.Requirements.Get(key).Single(); ok {
					out = append(out, v)
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// zonePrices gives every zone prices of its own: on-demand 0.8 to 1.25 times the list, spot 0.25 to 0.7 of it, and three tenths of the spot
// offerings are not for sale.
func zonePrices(s scheduling.Snapshot, seed uint64) scheduling.Snapshot {
	return withOfferings(s, func(t *instancetypes.InstanceType, o *instancetypes.Offering) bool {
		zone, _ := o.Requirements.Get(corev1.LabelTopologyZone).Single()
		capacity, _ := o.Requirements.Get(instancetypes.LabelCapacityType).Single()
		part := float64(hashed(seed, t.Name, zone, capacity)%1000) / 1000
		if capacity != instancetypes.CapacityTypeSpot {
			o.Price *= 0.8 + 0.45*part
			return true
		}
		o.Price *= 0.25 + 0.45*part
		return hashed(seed, "sold", t.Name, zone)%10 >= 3
	})
}

// pinned ties workloads to arbitrary zones, except where a hard spread over zones or what the pod asks forbids it.
type pinned struct {
	zones []string
	draw  int
}

func (p pinned) Narrow(pod *corev1.Pod, required requirements.Alternatives) (requirements.Alternatives, *scheduling.Reason) {
	spread := slices.ContainsFunc(pod.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		return c.TopologyKey == corev1.LabelTopologyZone && c.WhenUnsatisfiable == corev1.DoNotSchedule
	})
	k := hashed(p.draw, pod.Namespace, pod.Labels["app"]) % uint64(len(p.zones)+1)
	if spread || k == uint64(len(p.zones)) {
		return required, nil
	}
	in := required.Intersect(requirements.AnyOf(requirements.MustOf(requirements.In(corev1.LabelTopologyZone, p.zones[k]))))
	if in.IsImpossible() {
		return required, nil
	}
	return in, nil
}

func hashed(parts ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, parts...)
	x := h.Sum64()
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	return x ^ x>>33
}
