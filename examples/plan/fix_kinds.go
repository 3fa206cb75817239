package plan

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/internal/selector"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/requirements/kube"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/capacityquota"
)

// change is one change that might give refused pods a place. It edits pods or something that all
// pods share, such as a pool.
type change struct {
	// of is the corresponding fix, without its texts, price and pods.
	of   Fix
	text string
	// others are the pods to change if they are not the refused ones; nil otherwise.
	others *scheduling.Class
	// prepare, if set, computes the actual change, one of what pods share, for the pods that wait in a
	// snapshot after a plan, or for a plan of the whole snapshot if there is none.
	prepare func(s scheduling.Snapshot, after *Plan) (change, bool)
}

// FixKind is the kind of change that a fix makes.
type FixKind string

// The kinds of fixes.
const (
	// TolerateTaints lets the pods tolerate the taints of Pool.
	TolerateTaints FixKind = "TolerateTaints"
	// AllowType lets Pool buy the type Value: its requirements have to allow the values of Allow, too.
	AllowType FixKind = "AllowType"
	// LabelPool gives Pool the label Key with Value.
	LabelPool FixKind = "LabelPool"
	// RaiseLimit sets the limit of Pool for the resource Key to Value.
	RaiseLimit FixKind = "RaiseLimit"
	// RaiseSetting sets the Setting of the plan that limits the nodes of each pool, such as
	// [Objective.MostNodes], to Value.
	RaiseSetting FixKind = "RaiseSetting"
	// RaiseQuota sets the limit of the CapacityQuota Quota for the resource Key to Value.
	RaiseQuota FixKind = "RaiseQuota"
	// RequestLess lowers the requests and limits of the pods to Requests, which the type Value has.
	RequestLess FixKind = "RequestLess"
	// DropSelector removes the label Key, under each of its names, from the node selector and the
	// required node affinity of the pods. A term that becomes empty goes, too: it would match no
	// node.
	DropSelector FixKind = "DropSelector"
	// PreferOnly makes a required constraint over the topology Key a preferred one, see Constraint.
	PreferOnly FixKind = "PreferOnly"
)

// PodConstraint is a list of constraints about other pods, by the name of its field in Kubernetes.
type PodConstraint string

// The constraints that PreferOnly relaxes. A spread gets whenUnsatisfiable: ScheduleAnyway and
// loses minDomains, which only a required one may have. A term moves from the required to the
// preferred ones, with a weight.
const (
	TopologySpread  PodConstraint = "topologySpreadConstraints"
	PodAffinity     PodConstraint = "podAffinity"
	PodAntiAffinity PodConstraint = "podAntiAffinity"
)

func nameOf(p *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(p.Namespace, corev1.NamespaceDefault), Name: p.Name}
}

// changesPods reports whether it is a change of pods, not of what they share.
func (k FixKind) changesPods() bool {
	return k == TolerateTaints || k == RequestLess || k == DropSelector || k == PreferOnly
}

func joined(texts []string) string {
	if n := len(texts); n > 1 {
		return strings.Join(texts[:n-1], ", ") + " and " + texts[n-1]
	}
	return strings.Join(texts, "")
}

// needs is what a refused class may need: the ids of its changes, and its reasons in one text.
type needs struct {
	why     string
	changes map[string]bool
}

// needsOf computes the needs of a class once, because each change of each class is compared with
// those of all others.
func (t *trials) needsOf(u scheduling.Unplaced) needs {
	out, ok := t.needs[u.Class]
	if !ok {
		reasons := u.Reasons()
		out = needs{textOf(reasons), map[string]bool{}}
		for _, c := range t.p.changes(u.Class, reasons) {
			out.changes[c.id()] = true
		}
		t.needs[u.Class] = out
	}
	return out
}

func textOf(reasons []scheduling.Reason) string {
	var text strings.Builder
	for _, r := range reasons {
		text.WriteString(r.String() + "\n")
	}
	return text.String()
}

func (p *Plan) changes(class int, reasons []scheduling.Reason) []change {
	var out []change
	c, crowded := p.Problem.Classes[class], false
	reasons = slices.Clone(reasons)
	slices.SortStableFunc(reasons, func(a, b scheduling.Reason) int { return cmp.Compare(b.Stage.Depth(), a.Stage.Depth()) })
	for _, r := range reasons {
		crowded = crowded || r.Stage == scheduling.StageTopology
		k := slices.IndexFunc(p.Problem.Pools, func(room scheduling.PoolState) bool { return room.Name == r.Pool })
		if k < 0 {
			continue
		}
		pool := &p.Problem.Pools[k]
		switch r.Stage {
		case scheduling.StageTaint:
			out = append(out, tolerate(pool))
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
			} else if r.Nearest != nil {
				for _, key := range r.Nearest.PodKeys {
					out = append(out, suit(c, pool, key)...)
				}
			}
		case scheduling.StageOffering:
			out = append(out, suit(c, pool, r.Key)...)
			if r.Key == "" { // what the pod requires may leave it only what is sold out
				for _, key := range selected(&c.Template.Spec) {
					out = append(out, drop(pool, key))
				}
			}
		case scheduling.StagePod, scheduling.StageTopology, scheduling.StageGroup:
			// No change to volumes is offered. Constraints between pods are handled below.
		case scheduling.StageLimit:
			if r.Quota != "" {
				out = append(out, change{of: Fix{Kind: RaiseQuota, Quota: r.Quota, Key: r.Resource}, prepare: func(s scheduling.Snapshot, after *Plan) (change, bool) { return raiseQuota(p, s, after, r) }})
			} else {
				out = append(out, change{of: Fix{Kind: RaiseLimit, Pool: pool.Name, Key: r.Resource}, prepare: func(s scheduling.Snapshot, after *Plan) (change, bool) { return raise(p, s, after, pool, r) }})
			}
		}
	}
	if crowded {
		out = append(out, p.relaxations(class)...)
	}
	return out
}

// relaxations returns changes that turn one required constraint about other pods into a preferred
// one. First come the refused pods' own constraints. If they have none in the way, it uses those of
// workloads that keep away from them, and names a pod of each.
func (p *Plan) relaxations(class int) []change {
	c := p.Problem.Classes[class]
	out, seen := softer(c), map[string]bool{WorkloadOf(c.Pods[0]): true}
	for i, other := range p.Problem.Classes {
		workload := WorkloadOf(other.Pods[0])
		if i == class || seen[workload] {
			continue
		}
		for k, t := range antiTerms(other.Template) {
			if selects(t, other.Template.Namespace, c.Template) {
				away := preferAnti(other, k, other.Name()+"'s ")
				away.others, seen[workload] = other, true
				out = append(out, away)
			}
		}
	}
	return out
}

// softer returns one change for every hard constraint about other pods.
func softer(c *scheduling.Class) []change {
	var out []change
	for i, sp := range c.Template.Spec.TopologySpreadConstraints {
		if sp.WhenUnsatisfiable == corev1.ScheduleAnyway {
			continue
		}
		out = append(out, change{
			of:   Fix{Kind: PreferOnly, Key: sp.TopologyKey, Constraint: TopologySpread, Index: i},
			text: fmt.Sprintf("would fit if its spread over %s were ScheduleAnyway", sp.TopologyKey),
		})
	}
	for i := range antiTerms(c.Template) {
		out = append(out, preferAnti(c, i, "its "))
	}
	if a := c.Template.Spec.Affinity; a != nil && a.PodAffinity != nil {
		for i, t := range a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			out = append(out, change{
				of:   Fix{Kind: PreferOnly, Key: t.TopologyKey, Constraint: PodAffinity, Index: i},
				text: fmt.Sprintf("would fit if its affinity to %s by %s were preferred", selector.TextOf(t.LabelSelector), t.TopologyKey),
			})
		}
	}
	return out
}

func preferAnti(c *scheduling.Class, i int, whose string) change {
	to, terms := "", antiTerms(c.Template)
	key := terms[i].TopologyKey
	if slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool {
		return t.TopologyKey == key && !equality.Semantic.DeepEqual(t, terms[i])
	}) {
		to = "to " + selector.TextOf(terms[i].LabelSelector) + " "
	}
	return change{
		of:   Fix{Kind: PreferOnly, Key: key, Constraint: PodAntiAffinity, Index: i},
		text: fmt.Sprintf("would fit if %santi-affinity %sby %s were preferred", whose, to, key),
	}
}

func antiTerms(pod *corev1.Pod) []corev1.PodAffinityTerm {
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		return a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

// selects reports whether a term of a pod in the namespace selects the other pod. It ignores
// namespace selectors: a change is tried before it is offered, so a missed match does no harm.
func selects(t corev1.PodAffinityTerm, namespace string, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(t.LabelSelector)
	if err != nil || !selector.Matches(labels.Set(pod.Labels)) {
		return false
	}
	return len(t.Namespaces) == 0 && namespace == pod.Namespace || slices.Contains(t.Namespaces, pod.Namespace)
}

// suit makes pool and pods agree on the label in the pool's reason. The pool gets the label, if
// users set it and the pool lacks it, or the pods stop requiring it. Keys with a space are not
// labels: they stand for the name of a node or for features of kubelets.
func suit(c *scheduling.Class, pool *scheduling.PoolState, key string) []change {
	if key == "" || strings.Contains(key, " ") {
		return nil
	}
	var out []change
	for set := range c.Required.All() {
		if values, ok := set.Get(key).Values(); ok && len(values) > 0 && set.Has(key) && ownLabel(key) && !pool.Set.Has(key) {
			out = append(out, change{
				of:   Fix{Kind: LabelPool, Pool: pool.Name, Key: key, Value: values[0]},
				text: fmt.Sprintf("would fit if pool %q had the label %s=%s", pool.Name, key, values[0]),
			})
		}
	}
	return append(out, drop(pool, key))
}

func drop(pool *scheduling.PoolState, key string) change {
	return change{of: Fix{Kind: DropSelector, Pool: pool.Name, Key: key}, text: fmt.Sprintf("would fit if it did not require %s", key)}
}

// selected returns the keys of the labels that the pod's node selector and its required node affinity
// ask for, each under the name that [Fix.Key] uses, sorted.
func selected(pod *corev1.PodSpec) []string {
	asked, _ := kube.FromPod(pod) // a pod that cannot be read has other reasons
	var keys []string
	for key := range asked.Required.Keys().All() {
		if !strings.Contains(key, " ") { // a key with a space is no label
			keys = append(keys, requirements.AgentAliases().Key(key))
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// ownLabel reports whether users set the label themselves, so that a pool may set it. It is false
// for labels that agents on nodes, clouds or drivers set: a pool that claimed such a label would be
// wrong for most of its nodes.
func ownLabel(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	agents := []string{
		"kubernetes.io", "k8s.io", "k8s.aws", "karpenter.sh", "amazonaws.com", "azure.com", "gke.io", "google.com", "alibabacloud.com", "oraclecloud.com", "nvidia.com",
	}
	return !ok || requirements.AgentAliases().Key(key) == key && !strings.HasPrefix(domain, "topology.") && !strings.Contains(domain, "csi.") &&
		!slices.ContainsFunc(agents, func(theirs string) bool { return domain == theirs || strings.HasSuffix(domain, "."+theirs) })
}

func tolerate(pool *scheduling.PoolState) change {
	var texts []string
	for _, t := range pool.Taints {
		texts = append(texts, t.ToString())
	}
	return change{
		of:   Fix{Kind: TolerateTaints, Pool: pool.Name},
		text: fmt.Sprintf("would fit if it tolerated %s of pool %q", joined(texts), pool.Name),
	}
}

// widen lets the pool buy a type that its requirements exclude, by adding the type's values to
// them.
func widen(pool *scheduling.PoolState, name string) (change, bool) {
	at := slices.IndexFunc(pool.Types, func(t instancetypes.InstanceType) bool { return t.Name == name })
	if at < 0 {
		return change{}, false
	}
	var texts []string
	allow := map[string][]string{}
	for r := range pool.Requirements.All() {
		have := pool.Types[at].Requirements
		if have.Has(r.Key()) && !have.Get(r.Key()).Overlaps(r) {
			values, ok := have.Get(r.Key()).Values()
			if !ok {
				return change{}, false
			}
			texts, allow[r.Key()] = append(texts, fmt.Sprintf("%s %s", r.Key(), joined(values))), values
		}
	}
	if len(texts) == 0 {
		return change{}, false
	}
	allowed, like := joined(texts), ""
	if !strings.Contains(allowed, name) {
		like = fmt.Sprintf(" (as %s has)", name)
	}
	return change{
		of:   Fix{Kind: AllowType, Pool: pool.Name, Value: name, Allow: allow},
		text: fmt.Sprintf("would fit if pool %q allowed %s%s", pool.Name, allowed, like),
	}, true
}

// shrink lowers the requests to what the nearest type has, unless one would become zero.
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
		of:   Fix{Kind: RequestLess, Pool: r.Pool, Value: r.Nearest.Type, Requests: lower},
		text: fmt.Sprintf("would fit if it requested no more than %s, as %s has", joined(texts), r.Nearest.Type),
	}, true
}

// raise plans without the limit that was in the way and sets it to what that plan needs beside what
// the plan before it bought, if there is one. For a pool with minValues, the limit is too large to
// bind instead, so that what minValues need is chosen with regard to it.
func raise(p *Plan, s scheduling.Snapshot, after *Plan, pool *scheduling.PoolState, r scheduling.Reason) (change, bool) {
	name := corev1.ResourceName(r.Resource)
	unlimited := editPool(s, pool.Name, func(pool *scheduling.Pool) {
		pool.Limits = maps.Clone(pool.Limits)
		if delete(pool.Limits, name); len(pool.MinValues) > 0 && pool.Limits != nil {
			pool.Limits[name] = *resource.NewQuantity(1e15, resource.DecimalSI)
		}
		if name == "nodes" && pool.MaxNodes > 0 {
			pool.MaxNodes = 1e9
		}
	})
	free, err := Unproved(context.Background(), unlimited, &p.options)
	if err != nil {
		return change{}, false
	}
	limit, limited := pool.Limits[name]
	most := resources.Capacity(name, limit)
	capped := name == "nodes" && pool.MaxNodes > 0
	if capped && (!limited || pool.MaxNodes < most) {
		most = pool.MaxNodes
	}
	need := most - left(pool, name) + bought(after, pool, name) + bought(free, pool, name)
	of := Fix{Kind: RaiseLimit, Pool: pool.Name, Key: r.Resource, Value: resources.Humane(name, need)}
	var texts []string
	if limited && resources.Capacity(name, limit) < need {
		texts = append(texts, fmt.Sprintf("pool %q had a limit of %s", pool.Name, amount(name, need)))
	}
	if capped && pool.MaxNodes < need {
		if of.Setting = pool.MaxNodesBy; len(texts) == 0 {
			of.Kind = RaiseSetting
		}
		texts = append(texts, fmt.Sprintf("%s were %s", pool.MaxNodesBy, of.Value))
	}
	return change{of: of, text: "would fit if " + joined(texts)}, len(texts) > 0
}

// amount is a quantity of a resource in words.
func amount(name corev1.ResourceName, n int64) string {
	if name == "nodes" && n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%s %s", resources.Humane(name, n), name)
}

// bought returns what the nodes that a plan buys for a pool count against a limit at most, whichever
// types that minValues need they become.
func bought(p *Plan, pool *scheduling.PoolState, name corev1.ResourceName) int64 {
	sum := int64(0)
	if p == nil {
		return sum
	}
	needed := p.Instance.Needed(p.Packing.Layout)
	for _, n := range p.Result.NewNodes() {
		switch {
		case n.Pool.Name != pool.Name:
		case name == "nodes":
			sum++
		default:
			most := resources.Capacity(name, n.InstanceType.Capacity[name])
			if n.Bin >= 0 {
				for _, c := range needed[n.Bin] {
					most = max(most, resources.Capacity(name, p.Problem.InstanceType(c.Type).Capacity[name]))
				}
			}
			sum += most
		}
	}
	return sum
}

// left returns what the existing nodes leave of a limit.
func left(pool *scheduling.PoolState, name corev1.ResourceName) int64 {
	if name == "nodes" {
		return int64(pool.NodesLeft)
	}
	return pool.Left[slices.Index(pool.Limited, name)]
}

// raiseQuota plans without the limit of the quota that was in the way and sets it to what that plan
// needs.
func raiseQuota(p *Plan, s scheduling.Snapshot, after *Plan, r scheduling.Reason) (change, bool) {
	name := corev1.ResourceName(r.Resource)
	free, err := Unproved(context.Background(), editQuota(s, r.Quota, func(l corev1.ResourceList) { delete(l, name) }), &p.options)
	at := slices.IndexFunc(p.Problem.Budgets, func(b capacityquota.Budget) bool { return b.Quota == r.Quota && b.Resource == name })
	of := slices.IndexFunc(s.Quotas, func(q capacityquota.Quota) bool { return q.Name == r.Quota })
	if err != nil || at < 0 || of < 0 {
		return change{}, false
	}
	b := &p.Problem.Budgets[at]
	need := b.Max - b.Left + b.Over + counted(after, &s.Quotas[of], name) + counted(free, &s.Quotas[of], name)
	return change{
		of:   Fix{Kind: RaiseQuota, Quota: r.Quota, Key: r.Resource, Value: resources.Humane(name, need)},
		text: fmt.Sprintf("would fit if quota %q had a limit of %s", r.Quota, amount(name, need)),
	}, true
}

// counted returns what the nodes that a plan buys count towards a quota.
func counted(p *Plan, q *capacityquota.Quota, name corev1.ResourceName) int64 {
	sum := int64(0)
	if p == nil {
		return sum
	}
	for _, n := range p.Result.NewNodes() {
		if node := n.Node(); q.Matches(node.Labels) {
			sum += capacityquota.Amount(name, node.Status.Capacity)
		}
	}
	return sum
}

// id identifies a change, whatever pods it is made to.
func (c change) id() string {
	f := &c.of
	return fmt.Sprintf("%q", []string{string(f.Kind), f.Pool, f.Quota, f.Key, f.Value, f.Setting, string(f.Constraint), strconv.Itoa(f.Index), c.text})
}
