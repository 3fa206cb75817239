package replay_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/examples/judges/scenario"
	"github.com/joinery-sdk/joinery/examples/plan"
)

// quota is a CapacityQuota as this judge reads it, without code of the planner: by its own decoding and the selectors of apimachinery.
type quota struct {
	name     string
	selector labels.Selector
	left     map[corev1.ResourceName]resource.Quantity // negative where it is exceeded
}

// count takes a node off what is left, if its labels match.
func (q *quota) count(node map[string]string, capacity corev1.ResourceList) (counts bool) {
	if !q.selector.Matches(labels.Set(node)) {
		return false
	}
	for name, left := range q.left {
		used := capacity[name]
		if name == "nodes" {
			used = resource.MustParse("1")
		}
		left.Sub(used)
		q.left[name] = left
		counts = counts || !used.IsZero()
	}
	return counts
}

// quotasOf reads the quotas of a scenario and counts what is there: nodes, with what their claims promise until they are initialized, and claims
// whose nodes have not joined.
func quotasOf(s scenario.Scenario) ([]quota, error) {
	var out []quota
	for _, object := range s.Quotas {
		var read struct {
			metav1.ObjectMeta `json:"metadata"`
			Spec              struct {
				Selector *metav1.LabelSelector `json:"selector"`
				Limits   struct {
					Resources corev1.ResourceList `json:"resources"`
				} `json:"limits"`
			} `json:"spec"`
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &read); err != nil {
			return nil, err
		}
		selector, err := metav1.LabelSelectorAsSelector(read.Spec.Selector)
		if read.Spec.Selector == nil {
			selector = labels.Everything()
		}
		if err == nil && len(read.Spec.Limits.Resources) == 0 {
			err = fmt.Errorf("quota %s limits nothing", read.Name)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, quota{read.Name, selector, read.Spec.Limits.Resources})
	}
	promised := map[string]*karpv1.NodeClaim{} // by node
	for _, c := range s.NodeClaims {
		promised[cmp.Or(c.Status.NodeName, c.Name)] = c
	}
	for _, n := range s.Nodes {
		has, capacity := map[string]string{}, corev1.ResourceList{}
		if c := promised[n.Name]; c != nil {
			delete(promised, n.Name)
			if n.Labels[karpv1.NodeInitializedLabelKey] != "true" {
				maps.Copy(has, labelsOf(c))
				maps.Copy(capacity, c.Status.Capacity)
			}
		}
		maps.Copy(has, n.Labels)
		for name, q := range n.Status.Capacity {
			if !q.IsZero() {
				capacity[name] = q
			}
		}
		for i := range out {
			out[i].count(has, capacity)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(promised)) {
		for i := range out {
			out[i].count(labelsOf(promised[name]), promised[name].Status.Capacity)
		}
	}
	return out, nil
}

// labelsOf are the labels that a claim promises.
func labelsOf(c *karpv1.NodeClaim) map[string]string {
	out := map[string]string{}
	for _, r := range c.Spec.Requirements {
		if r.Operator == corev1.NodeSelectorOpIn && len(r.Values) == 1 {
			out[r.Key] = r.Values[0]
		}
	}
	maps.Copy(out, c.Labels)
	return out
}

// exceeded are the quotas that a new node exceeds, after it is counted.
func exceeded(quotas []quota, n *corev1.Node) (out []string) {
	for i := range quotas {
		q := &quotas[i]
		before := maps.Clone(q.left)
		if !q.count(n.Labels, n.Status.Capacity) {
			continue
		}
		for name, left := range q.left {
			if was := before[name]; left.Sign() < 0 && left.Cmp(was) < 0 {
				out = append(out, fmt.Sprintf("%s: %s %s", q.name, left.String(), name))
			}
		}
	}
	return out
}

// limitedBy draws a scenario with quotas.
func limitedBy(seed uint64) scenario.Scenario {
	return scenario.Generate(seed, scenario.Options{Pods: 5 + int(seed*37%96), Limits: seed%4 == 0, Quotas: true, Changing: seed%2 == 0, NoVolumes: true})
}

// judgeQuotas is what a plan does against quotas: what it exceeds, and pods that it leaves out though one node more, which every limit and quota
// allows, would hold them.
func judgeQuotas(ctx context.Context, s scenario.Scenario, p *plan.Plan) (over []string, missing []missed, err error) {
	quotas, err := quotasOf(s)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range p.NewNodes() {
		over = append(over, exceeded(quotas, n.Node())...)
	}
	allowed := func(n *corev1.Node) bool {
		copies := slices.Clone(quotas)
		for i := range copies {
			copies[i].left = maps.Clone(copies[i].left)
		}
		return len(exceeded(copies, n)) == 0
	}
	for _, more := range anotherOf(p, allowed) {
		if suits(p, more) {
			found, err := onThePlan(ctx, s, p, more)
			if err != nil {
				return over, missing, err
			}
			missing = append(missing, found...)
		}
	}
	return over, missing, nil
}

// No plan exceeds a CapacityQuota that its new nodes' labels match, and none leaves out what they allow.
func TestQuotasHoldAndAreUsed(t *testing.T) {
	n := *scenarios
	over, missing, errs, named, unplaced, bought := make([][]string, n), make([][]missed, n), make([]error, n), make([]int, n), make([]int, n), make([]int, n)
	inParallel(n, func(i int) {
		s := limitedBy(*from + uint64(i))
		p, err := planned(t.Context(), s)
		if err != nil {
			errs[i] = err
			return
		}
		bought[i] = len(p.NewNodes())
		for _, u := range p.Unplaced() {
			unplaced[i]++
			for _, r := range u.Reasons() {
				if r.Quota != "" {
					named[i]++
					break
				}
			}
		}
		over[i], missing[i], errs[i] = judgeQuotas(t.Context(), s, p)
	})
	total := map[string]int{}
	for i := range n {
		require.NoError(t, errs[i], "seed %d", *from+uint64(i))
		require.Empty(t, over[i], "seed %d", *from+uint64(i))
		for _, m := range missing[i] {
			t.Logf("seed %d: %s", *from+uint64(i), m)
			total["missed"]++
		}
		total["named"] += named[i]
		total["unplaced"] += unplaced[i]
		total["bought"] += bought[i]
	}
	fmt.Printf("%d scenarios with quotas: %d nodes bought, %d classes left out, %d of them with a quota among the reasons, %d missed\n",
		n, total["bought"], total["unplaced"], total["named"], total["missed"])
	require.Zero(t, total["missed"])
	require.Positive(t, total["named"])
}
