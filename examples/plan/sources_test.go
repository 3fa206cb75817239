package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/constraint"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// drawn is a cluster in which the constraints of the caller are about its last pod, which has the
// lowest priority.
type drawn struct {
	snapshot    scheduling.Snapshot
	last        *corev1.Pod
	constraints []scheduling.Constraint
}

func drawConstrained(r *rand.Rand) drawn {
	size := func(cpu int) corev1.ResourceList {
		return corev1.ResourceList{"cpu": *resource.NewQuantity(int64(cpu), resource.DecimalSI), "memory": resource.MustParse("64Gi")}
	}
	pick := func(values ...string) string { return values[r.IntN(len(values))] }
	value := map[string]func() string{
		"lic":                           func() string { return pick("a", "b", "c") },
		corev1.LabelTopologyZone:        func() string { return pick("z1", "z2", "z3") },
		instancetypes.LabelCapacityType: func() string { return pick("spot", "on-demand") },
	}
	keys := []string{"lic", corev1.LabelTopologyZone, instancetypes.LabelCapacityType}
	var types []instancetypes.InstanceType
	for i := range 1 + r.IntN(4) {
		labels := map[string]string{}
		if r.IntN(3) > 0 {
			labels["lic"] = pick("a", "b")
		}
		t := instancetypes.New(fmt.Sprint("t", i), labels, size(2<<r.IntN(3)))
		for _, zone := range []string{"z1", "z2"} {
			for _, capacity := range []string{"spot", "on-demand"} {
				if o := instancetypes.Offer(zone, capacity, 0.1+float64(r.IntN(5))/10); r.IntN(3) > 0 {
					if r.IntN(4) == 0 {
						o = o.Stock("", r.IntN(2))
					}
					t.Offerings = append(t.Offerings, o)
				}
			}
		}
		types = append(types, t)
	}
	var d drawn
	for i := range 1 + r.IntN(2) {
		p := nodepool.New(fmt.Sprint("p", i))
		switch r.IntN(4) {
		case 0:
			p.Limits = size(2 << r.IntN(3))
		case 1:
			p.Requirements = requirements.MustOf(requirements.In(keys[2], pick("spot", "on-demand")))
		}
		d.snapshot.Pools = append(d.snapshot.Pools, scheduling.Pool{NodePool: p, Types: types})
	}
	for i := range r.IntN(3) {
		if t := types[r.IntN(len(types))]; len(t.Offerings) > 0 {
			d.snapshot.Nodes = append(d.snapshot.Nodes, t.Node(fmt.Sprint("n", i), t.Offerings[r.IntN(len(t.Offerings))], nil))
		}
	}
	for i := range 1 + r.IntN(3) {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: fmt.Sprint("pod-", i), Labels: map[string]string{"app": "x"}}}
		p.Spec.Containers = []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: size(1 + r.IntN(6))}}}
		p.Spec.Containers[0].Resources.Requests["memory"] = resource.MustParse("1Gi")
		p.Spec.Priority = new(int32(100 - 10*i))
		if r.IntN(3) == 0 {
			key := keys[r.IntN(3)]
			p.Spec.NodeSelector = map[string]string{key: value[key]()}
		}
		if r.IntN(3) == 0 {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelTopologyZone, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
			}}}}
		}
		d.snapshot.Pods, d.last = append(d.snapshot.Pods, p), p
	}
	for i := range 1 + r.IntN(3) {
		set := requirements.Set{}
		for set.IsAnything() || r.IntN(3) == 0 {
			key := keys[r.IntN(3)]
			one := requirements.In(key, value[key](), value[key]())
			if r.IntN(4) == 0 {
				one = one.Complement()
			}
			if next, err := set.Intersect(requirements.MustOf(one)); err == nil {
				set = next
			}
		}
		about := func(p *corev1.Pod) bool { return p.Name == d.last.Name }
		c := constraint.Require(about, set)
		if r.IntN(2) == 0 { // one that narrows the argument itself
			c = constraint.Func(func(p *corev1.Pod, required requirements.Alternatives) (requirements.Alternatives, *scheduling.Reason) {
				if !about(p) {
					return required, nil
				}
				return required.Intersect(requirements.AnyOf(set)), nil
			})
		}
		d.constraints = append(d.constraints, constraint.Named(fmt.Sprint("rule ", i), c))
	}
	return d
}

// refusal returns the reasons why the last pod is unplaced under some constraints; nil if it has a
// place.
func (d *drawn) refusal(t *testing.T, constraints []scheduling.Constraint) []scheduling.Reason {
	made, err := plan.Make(t.Context(), d.snapshot, &plan.Options{Scheduling: &scheduling.Options{Constraints: constraints}})
	require.NoError(t, err)
	for _, u := range made.Unplaced() {
		if slices.ContainsFunc(u.Pods, func(p *corev1.Pod) bool { return p.Name == d.last.Name }) {
			return u.Reasons()
		}
	}
	return nil
}

// Where a pod would have a place without a constraint of the caller, or another cause would keep it
// from one, the refusal names the constraint. Many constraints change nothing, and are not named.
func TestReasonsNameConstraints(t *testing.T) {
	cause := func(reasons []scheduling.Reason) string {
		var out []string
		for _, r := range reasons {
			out = append(out, fmt.Sprint(r.Pool, r.Stage, r.Key, r.Resource))
		}
		return strings.Join(out, "|")
	}
	refused, placed, other, spared := 0, 0, 0, 0
	draws := 3000
	if testing.Short() {
		draws = 600
	}
	for i := range draws {
		d := drawConstrained(rand.New(rand.NewPCG(uint64(i), 7)))
		reasons := d.refusal(t, d.constraints)
		if reasons == nil {
			continue
		}
		refused++
		var text strings.Builder
		for _, r := range reasons {
			text.WriteString(r.String() + "\n")
		}
		var names []bool
		for k := range d.constraints {
			name := fmt.Sprintf("constraint \"rule %d\"", k)
			names = append(names, strings.Contains(text.String(), name))
			without := d.refusal(t, slices.Delete(slices.Clone(d.constraints), k, k+1))
			if without != nil && cause(without) == cause(reasons) {
				if !names[k] {
					spared++
				}
				continue
			}
			if without == nil {
				placed++
			} else {
				other++
			}
			assert.True(t, names[k], "%d: without %s it is %q, but the refusal is\n%s", i, name, cause(without), &text)
		}
		if own := d.refusal(t, nil); own == nil || cause(own) != cause(reasons) {
			assert.Contains(t, names, true, "%d: without any constraint it is %q, but the refusal is\n%s", i, cause(own), &text)
		}
	}
	t.Log(refused, placed, other, spared)
	assert.Greater(t, placed, draws/5)
	assert.Greater(t, other, draws/5)
	assert.Greater(t, spared, draws/5)
}
