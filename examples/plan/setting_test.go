package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

func sized(cpu string) instancetypes.InstanceType {
	return instancetypes.New("m."+cpu, map[string]string{"size": cpu}, corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("64Gi")},
		instancetypes.Offer("a", "on-demand", float64(len(cpu))))
}

// A fix of the number of nodes names what has to be raised: the limit of the pool, the setting of
// the plan, or both. Made in the input, it places the pods.
func TestNodeLimitsAreNamed(t *testing.T) {
	for _, flags := range []bool{false, true} {
		setting := map[bool]string{false: "Objective.MostNodes", true: "--max-nodes"}[flags]
		for own := range 6 {
			for most := range int64(6) {
				name := fmt.Sprintf("own limit %d, %s %d", own, setting, most)
				snapshot := func(own int) scheduling.Snapshot {
					pool := nodepool.New("p")
					if own > 0 {
						pool.Limits = corev1.ResourceList{"nodes": *resource.NewQuantity(int64(own), resource.DecimalSI)}
					}
					return scheduling.Snapshot{
						Pods: pending(4, func(p *corev1.Pod) {
							p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("3")}
						}),
						Pools: []scheduling.Pool{{NodePool: pool, Types: []instancetypes.InstanceType{sized("4")}}, {NodePool: other(), Types: []instancetypes.InstanceType{sized("1")}}},
					}
				}
				objective := plan.Objective{MostNodes: most, Flags: flags}
				p, err := plan.Make(t.Context(), snapshot(own), &plan.Options{Objective: &objective})
				require.NoError(t, err, name)
				if (own == 0 || own >= 4) && (most == 0 || most >= 4) {
					assert.Empty(t, p.Unplaced(), name)
					continue
				}
				require.Len(t, p.Unplaced(), 1, name)
				reason := p.Unplaced()[0].Reasons()[0].String()
				fix := p.FirstFixes(true)[0]
				bySetting := most > 0 && (own == 0 || most < int64(own))
				assert.Equal(t, bySetting, strings.Contains(reason, setting), "%s: %s", name, reason)
				assert.Equal(t, most > 0 && most < 4, strings.Contains(fix.Text, setting), "%s: %s", name, fix.Text)
				assert.Equal(t, own > 0 && own < 4, strings.Contains(fix.Text, `pool "p"`), "%s: %s", name, fix.Text)
				if fix.Setting != "" {
					assert.Equal(t, setting, fix.Setting, name)
					objective.MostNodes = number(t, fix.Value)
				}
				if fix.Kind == plan.RaiseLimit {
					own = int(number(t, fix.Value))
				}
				p, err = plan.Make(t.Context(), snapshot(own), &plan.Options{Objective: &objective})
				require.NoError(t, err, name)
				assert.Empty(t, p.Unplaced(), "%s: %s", name, fix.Text)
			}
		}
	}
}

func other() nodepool.NodePool {
	p := nodepool.New("z")
	p.Taints = []corev1.Taint{{Key: "closed", Effect: corev1.TaintEffectNoSchedule}}
	return p
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	q, err := resource.ParseQuantity(text)
	require.NoError(t, err)
	return q.Value()
}

// If pods have a place without the limit on the size of nodes, their refusal names that limit.
func TestSizeLimitsAreNamed(t *testing.T) {
	for _, flags := range []bool{false, true} {
		setting := map[bool]string{false: "Objective.MostCPU", true: "--max-node-cpu"}[flags]
		for types, list := range map[string][]instancetypes.InstanceType{"one": {sized("16")}, "two": {sized("2"), sized("16")}, "three": {sized("16"), sized("2"), sized("32")}} {
			for pools, of := range map[string]requirements.Set{"any": {}, "large": requirements.MustParse("size in (16)"), "several": requirements.MustParse("size in (2, 16)")} {
				for pods, change := range map[string]func(*corev1.Pod){
					"large":            func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("5") },
					"by label":         func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"size": "16"} },
					"by missing label": func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"size": "64"} },
					"too large":        func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("500") },
					"a device":         func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests["memory"] = resource.MustParse("65Gi") },
				} {
					for _, most := range []int64{1, 4} {
						name := fmt.Sprintf("types %s, pool %s, pods %s, %s %d", types, pools, pods, setting, most)
						pool := nodepool.New("p")
						pool.Requirements = of
						s := scheduling.Snapshot{Pods: pending(1, func(p *corev1.Pod) {
							p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1")}
							change(p)
						}), Pools: []scheduling.Pool{{NodePool: pool, Types: list}}}
						free, err := plan.Make(t.Context(), s, nil)
						require.NoError(t, err, name)
						p, err := plan.Make(t.Context(), s, &plan.Options{Objective: &plan.Objective{MostCPU: most, Flags: flags}})
						require.NoError(t, err, name)
						for _, u := range p.Unplaced() {
							text := u.Reasons()[0].String()
							if len(free.Unplaced()) == 0 {
								assert.Contains(t, text, fmt.Sprintf("%s %d", setting, most), name)
							}
							assert.NotContains(t, text, "no instance types", name)
							if strings.Contains(text, "no instance type meets the pool's own") {
								assert.Equal(t, free.Unplaced()[0].Reasons()[0].String(), text, name)
							}
						}
					}
				}
			}
		}
	}
}
