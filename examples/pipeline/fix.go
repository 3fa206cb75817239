package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// change is one thing that might make refused pods fit.
type change struct {
	text  string
	apply func(scheduling.Snapshot) scheduling.Snapshot
}

// fixBudget bounds the work of looking for fixes, in pods planned again, so that explaining a large plan stays quick
// and the answer does not depend on the machine.
const fixBudget = 200_000

// Fix looks for one change that gives the refused pods of a class a place, and says it in words. The change is offered
// only after the whole snapshot was planned again with it: the class is placed, and no pod that had a place lost it.
func (p *Packed) Fix(class int, reasons []scheduling.Reason) (string, bool) {
	s := p.Problem.Snapshot()
	_, draft := packings(p.packing)
	for _, c := range p.changes(class, reasons) {
		if p.spent += len(s.Pods) + 1; p.spent > fixBudget {
			return "", false
		}
		after, err := runFor(c.apply(s), p.options, &draft, p.beyond)
		if err != nil || !p.helps(class, after) {
			continue
		}
		if after, err = runFor(c.apply(s), p.options, p.packing, p.beyond); err == nil && p.helps(class, after) {
			return c.text + p.dearer(after), true
		}
	}
	return "", false
}

// dearer is what the later plan adds to the price, in words.
func (p *Packed) dearer(after *Packed) string {
	if more := after.Cost() - p.Cost(); more > 0 {
		return fmt.Sprintf(", for $%.4g/h more", more.Dollars())
	}
	return ""
}

// helps reports whether the later plan places all pods of the class and everything that was placed before.
func (p *Packed) helps(class int, after *Packed) bool {
	placed := make(map[string]bool, len(after.Result.Order))
	for _, pod := range after.Result.Order {
		placed[pod.Namespace+"/"+pod.Name] = true
	}
	for _, pod := range p.Result.Order {
		if !placed[pod.Namespace+"/"+pod.Name] {
			return false
		}
	}
	for _, pod := range p.Problem.Classes[class].Pods {
		if !placed[pod.Namespace+"/"+pod.Name] {
			return false
		}
	}
	return true
}

func (p *Packed) changes(class int, reasons []scheduling.Reason) []change {
	var out []change
	c := p.Problem.Classes[class]
	crowded := false
	for _, r := range reasons {
		crowded = crowded || r.Stage == scheduling.StageTopology
		k := slices.IndexFunc(p.Problem.Pools, func(room scheduling.PoolRoom) bool { return room.Name == r.Pool })
		if k < 0 {
			continue
		}
		pool := &p.Problem.Pools[k]
		switch r.Stage {
		case scheduling.StageTaint:
			out = append(out, tolerate(c, pool))
		case scheduling.StageRequirement, scheduling.StageResource:
			if r.Nearest != nil && r.Nearest.ShutOutBy != "" {
				if w, ok := widen(pool, r.Nearest.Type); ok {
					out = append(out, w)
				}
			}
			if r.Stage == scheduling.StageResource && r.Nearest != nil && r.Nearest.Short != nil && r.Nearest.ShutOutBy == "" {
				if w, ok := shrink(c, r); ok {
					out = append(out, w)
				}
			}
			if r.Stage == scheduling.StageRequirement {
				out = append(out, suit(c, pool, r.Key)...)
			}
		case scheduling.StageOffering:
			out = append(out, suit(c, pool, r.Key)...)
		case scheduling.StagePod, scheduling.StageTopology:
			// What volumes stand in the way with is not ours to change; other pods are seen to below.
		case scheduling.StageLimit:
			if c, ok := raise(p, pool, r); ok {
				out = append(out, c)
			}
		}
	}
	if crowded {
		out = append(out, p.relaxations(class)...)
	}
	return out
}

// edit replaces the pods of a class by edited copies.
func edit(s scheduling.Snapshot, class *scheduling.Class, how func(*corev1.Pod)) scheduling.Snapshot {
	members := make(map[*corev1.Pod]bool, len(class.Pods))
	for _, pod := range class.Pods {
		members[pod] = true
	}
	pods := slices.Clone(s.Pods)
	for i, pod := range pods {
		if members[pod] {
			pods[i] = pod.DeepCopy()
			how(pods[i])
		}
	}
	s.Pods = pods
	return s
}

func tolerate(c *scheduling.Class, pool *scheduling.PoolRoom) change {
	var texts []string
	var add []corev1.Toleration
	for _, t := range pool.Taints {
		add = append(add, corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpEqual, Value: t.Value, Effect: t.Effect})
		texts = append(texts, t.ToString())
	}
	return change{
		fmt.Sprintf("would fit if it tolerated %s of pool %q", joined(texts), pool.Name),
		func(s scheduling.Snapshot) scheduling.Snapshot {
			return edit(s, c, func(pod *corev1.Pod) { pod.Spec.Tolerations = append(pod.Spec.Tolerations, add...) })
		},
	}
}

// widen lets the pool buy a type that it shuts out, by adding the type's values to its requirements.
func widen(pool *scheduling.PoolRoom, name string) (change, bool) {
	at := slices.IndexFunc(pool.Types, func(t instancetypes.InstanceType) bool { return t.Name == name })
	if at < 0 {
		return change{}, false
	}
	var b requirements.Builder
	var texts []string
	for r := range pool.Requirements.All() {
		have := pool.Types[at].Requirements
		if have.Has(r.Key()) && !have.Get(r.Key()).Overlaps(r) {
			values, ok := have.Get(r.Key()).Values()
			if !ok {
				return change{}, false
			}
			texts = append(texts, fmt.Sprintf("%s %s", r.Key(), joined(values)))
			r = r.Union(have.Get(r.Key()))
		}
		b.Add(r)
	}
	set, err := b.Set()
	if err != nil || len(texts) == 0 {
		return change{}, false
	}
	return change{
		fmt.Sprintf("would fit if pool %q allowed %s (as %s has)", pool.Name, joined(texts), name),
		func(s scheduling.Snapshot) scheduling.Snapshot {
			return editPool(s, pool, func(p *scheduling.Pool) { p.Requirements = set })
		},
	}, true
}

func editPool(s scheduling.Snapshot, pool *scheduling.PoolRoom, how func(*scheduling.Pool)) scheduling.Snapshot {
	s.Pools = slices.Clone(s.Pools)
	for i := range s.Pools {
		if s.Pools[i].Name == pool.Name && s.Pools[i].Kind == pool.Kind {
			how(&s.Pools[i])
		}
	}
	return s
}

// raise plans without the limit that was in the way, and sets it to what that plan needs.
func raise(p *Packed, pool *scheduling.PoolRoom, r scheduling.Reason) (change, bool) {
	name := corev1.ResourceName(r.Resource)
	unlimited := maps.Clone(pool.Limits)
	delete(unlimited, name)
	with := func(limits corev1.ResourceList) func(scheduling.Snapshot) scheduling.Snapshot {
		return func(s scheduling.Snapshot) scheduling.Snapshot {
			return editPool(s, pool, func(pool *scheduling.Pool) { pool.Limits = limits })
		}
	}
	_, draft := packings(p.packing)
	free, err := runFor(with(unlimited)(p.Problem.Snapshot()), p.options, &draft, p.beyond)
	if err != nil {
		return change{}, false
	}
	need := resources.Capacity(name, pool.Limits[name]) - left(pool, name)
	for _, b := range free.Result.Bins {
		shape := &free.Problem.Shapes[b.Shape]
		if free.Problem.Pools[shape.Pool].Name != pool.Name {
			continue
		}
		if name == "nodes" {
			need++
		} else {
			need += resources.Capacity(name, free.Problem.InstanceType(b.Shape).Capacity[name])
		}
	}
	limits := maps.Clone(pool.Limits)
	limits[name] = resources.Quantity(name, need)
	text := fmt.Sprintf("would fit if pool %q had a limit of %s %s", pool.Name, resources.Humane(name, need), name)
	return change{text, with(limits)}, true
}

// left is what the existing nodes leave of a limit.
func left(pool *scheduling.PoolRoom, name corev1.ResourceName) int64 {
	if name == "nodes" {
		return int64(pool.NodesLeft)
	}
	return pool.Left[slices.Index(pool.Limited, name)]
}

// shrink lowers the requests to what the nearest type has, unless that is nothing at all.
func shrink(c *scheduling.Class, r scheduling.Reason) (change, bool) {
	var texts []string
	lower := corev1.ResourceList{}
	for _, key := range slices.Sorted(maps.Keys(r.Nearest.Short)) {
		name := corev1.ResourceName(key)
		q := c.Requests[name]
		most := resources.Request(name, q) - r.Nearest.Short[key]
		if most <= 0 {
			return change{}, false
		}
		lower[name] = resources.Quantity(name, most)
		texts = append(texts, fmt.Sprintf("%s %s", resources.Humane(name, most), name))
	}
	return change{
		fmt.Sprintf("would fit if it asked no more than %s, as %s has", joined(texts), r.Nearest.Type),
		func(s scheduling.Snapshot) scheduling.Snapshot {
			return edit(s, c, func(pod *corev1.Pod) {
				if len(pod.Spec.Containers) != 1 || len(pod.Spec.InitContainers) > 0 {
					return // which container should shrink is not ours to say
				}
				res := &pod.Spec.Containers[0].Resources
				for name, q := range lower {
					if _, ok := res.Requests[name]; ok {
						res.Requests[name] = q
					}
					if _, ok := res.Limits[name]; ok {
						res.Limits[name] = q
					}
				}
			})
		},
	}, true
}

func joined(texts []string) string {
	if n := len(texts); n > 1 {
		return strings.Join(texts[:n-1], ", ") + " and " + texts[n-1]
	}
	return strings.Join(texts, "")
}

// Cost is the price of the nodes that hold pods.
func (p *Packed) Cost() binpack.Price {
	var sum binpack.Price
	for _, b := range p.Result.Bins {
		bin := p.Plan.Bins[b.Bin]
		sum += p.Instance.Problem().Types[bin.Type].Offerings[bin.Offering].Price
	}
	return sum
}

// Explain says why the pods of a class found no place; see [scheduling.State.Explain].
func (p *Packed) Explain(class int) []scheduling.Reason { return p.state.Explain(class) }

// GivenUp says which preferences a placed pod went without; see [scheduling.State.GivenUp].
func (p *Packed) GivenUp(pod *corev1.Pod) (gone, kept []scheduling.Preference) {
	return p.state.GivenUp(pod)
}
