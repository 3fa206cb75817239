package plan_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
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
	"github.com/joinery-sdk/joinery/scheduling/capacityquota"
	"github.com/joinery-sdk/joinery/scheduling/gang"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// drawRefusals draws a pool, perhaps a quota, and workloads. Some ask for what the pool does not
// have, or for what others forbid.
func drawRefusals(seed uint64) scheduling.Snapshot {
	r := rand.New(rand.NewPCG(seed, 20))
	maybe := func() bool { return r.IntN(4) == 0 }
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	capacity := func(cpu string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("20")}
	}
	p := scheduling.Pool{NodePool: nodepool.New("default"), Types: []instancetypes.InstanceType{
		instancetypes.New("m-4", nil, capacity("4"), instancetypes.Offer("a", "on-demand", 0.2), instancetypes.Offer("b", "on-demand", 0.2)),
		instancetypes.New("m-8", nil, capacity("8"), instancetypes.Offer("a", "on-demand", 0.5)),
	}}
	if maybe() {
		p.Taints = []corev1.Taint{{Key: "batch", Value: "yes", Effect: corev1.TaintEffectNoSchedule}, {Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule}}
	}
	if maybe() {
		p.Requirements = requirements.MustOf(requirements.In(corev1.LabelInstanceTypeStable, "m-4"))
	}
	if maybe() {
		p.Limits = corev1.ResourceList{corev1.ResourceName(one("cpu", "nodes")): resource.MustParse(one("1", "4"))}
	}
	s := scheduling.Snapshot{Pools: []scheduling.Pool{p}}
	if maybe() {
		s.Quotas = []capacityquota.Quota{{Name: "all", Limits: corev1.ResourceList{corev1.ResourceName(one("cpu", "nodes")): resource.MustParse(one("1", "4"))}}}
	}
	selector := func(app string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	}
	for w := range 1 + r.IntN(3) {
		app, n := fmt.Sprint("app-", w), 1+r.IntN(4)
		owner, spec := one("", "set"), corev1.PodSpec{Affinity: &corev1.Affinity{}}
		request := corev1.ResourceList{"cpu": resource.MustParse(one("500m", "1", "3", "6", "9500m")), "memory": resource.MustParse(one("1Gi", "1500Mi", "20Gi"))}
		spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: request}}}
		switch r.IntN(5) {
		case 0:
			spec.NodeSelector = map[string]string{one("team", corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone): one("a", "z")}
		case 1:
			spec.Affinity.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: one("team", corev1.LabelTopologyZone), Operator: corev1.NodeSelectorOpIn, Values: []string{one("z", "y")}}},
			}}}}
		}
		term := func() corev1.PodAffinityTerm {
			return corev1.PodAffinityTerm{TopologyKey: one(corev1.LabelTopologyZone, corev1.LabelHostname), LabelSelector: selector(fmt.Sprint("app-", r.IntN(3)))}
		}
		for range r.IntN(3) {
			when := corev1.UnsatisfiableConstraintAction(one("DoNotSchedule", "ScheduleAnyway"))
			c := corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: one(corev1.LabelTopologyZone, corev1.LabelHostname), WhenUnsatisfiable: when, LabelSelector: selector(app)}
			if domains := int32(3); when == corev1.DoNotSchedule && maybe() {
				c.MinDomains = &domains
			}
			spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, c)
		}
		near, away := &corev1.PodAffinity{}, &corev1.PodAntiAffinity{}
		for range r.IntN(3) {
			if maybe() {
				near.RequiredDuringSchedulingIgnoredDuringExecution = append(near.RequiredDuringSchedulingIgnoredDuringExecution, term())
			} else {
				away.RequiredDuringSchedulingIgnoredDuringExecution = append(away.RequiredDuringSchedulingIgnoredDuringExecution, term())
			}
		}
		spec.Affinity.PodAffinity, spec.Affinity.PodAntiAffinity = near, away
		for i := range n {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("%s-%d", app, i), Labels: map[string]string{"app": app}}, Spec: *spec.DeepCopy()}
			if owner != "" {
				yes := true
				pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app, UID: "u", Controller: &yes}}
			}
			s.Pods = append(s.Pods, pod)
		}
	}
	return s
}

// inZones gives some pods of the workloads volumes in zones, and others a zone of their own, so
// that pods of one template are in several classes.
func inZones(seed uint64, s scheduling.Snapshot) scheduling.Snapshot {
	r := rand.New(rand.NewPCG(seed, 21))
	for _, pod := range s.Pods {
		zone := []string{"a", "b", "z"}[min(r.IntN(7)/3, 2)]
		switch r.IntN(3) {
		case 0:
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: "data-" + pod.Name}}
			claim.Spec.VolumeName, claim.Spec.AccessModes, claim.Status.Phase = pod.Name, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, corev1.ClaimBound
			pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}}
			pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name}
			pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
			}}}}
			s.PersistentVolumeClaims, s.PersistentVolumes = append(s.PersistentVolumeClaims, claim), append(s.PersistentVolumes, pv)
			pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}}}}
		case 1:
			if pod.Spec.NodeSelector == nil {
				pod.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: zone}
			}
		}
	}
	return s
}

// ofTemplates returns the fix for all pods whose controllers' templates it changes.
func ofTemplates(f plan.Fix, s scheduling.Snapshot) plan.Fix {
	workloads := map[string]bool{}
	for _, pod := range f.Pods {
		workloads[plan.WorkloadOf(pod)] = true
	}
	f.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(pod *corev1.Pod) bool { return !workloads[plan.WorkloadOf(pod)] })
	return f
}

// checkFixes checks that every offered fix keeps its promise. It applies the fix to the snapshot,
// to all pods of the workloads that it changes, and plans again: so many pods of its classes have a
// place, no other pod has lost one, and that costs no more than the fix says. It counts the fixes
// by kind.
func checkFixes(t *testing.T, seed uint64, s scheduling.Snapshot, opts *plan.Options, kinds map[string]int) {
	p, err := plan.Make(t.Context(), s, opts)
	require.NoError(t, err)
	var fixes []plan.Fix
	for r := range p.Refusals(t.Context()) {
		fixes = append(fixes, r.Fixes...)
	}
	for i := range fixes {
		f := ofTemplates(fixes[i], s)
		said := fmt.Sprintf("seed %d: %s", seed, f.Text)
		kinds[cmp.Or(string(f.Constraint), string(f.Kind))]++
		assert.Equal(t, f.Kind == plan.PreferOnly, f.Constraint != "", said)
		again, err := plan.Make(t.Context(), f.Apply(s), opts)
		require.NoError(t, err)
		placed := map[string]bool{}
		for _, b := range again.Bindings() {
			placed[b.Pod.Name] = true
		}
		refused, without := 0, 0
		for _, u := range p.Unplaced() {
			if slices.Contains(f.Classes, u.Class) {
				refused += len(u.Pods)
			}
		}
		for _, class := range f.Classes {
			for _, pod := range p.Problem.Classes[class].Pods {
				if !placed[pod.Name] {
					without++
				}
			}
		}
		assert.Equal(t, refused, f.Refused, said)
		assert.Positive(t, f.Placed, said)
		assert.LessOrEqual(t, without, f.Refused-f.Placed, said)
		if f.Placed < f.Refused {
			kinds["partly"]++
		}
		for _, b := range p.Bindings() {
			assert.True(t, placed[b.Pod.Name], "%s: %s loses its place", said, b.Pod.Name)
		}
		assert.LessOrEqual(t, (again.Cost() - p.Cost()).Dollars(), f.PerHour+1e-9, said)
	}
}

// Every offered fix keeps its promise. Applying it modifies nothing.
func TestFixesAreApplied(t *testing.T) {
	kinds, n := map[string]int{}, 600
	if testing.Short() {
		n = 150
	}
	for seed := range uint64(n) {
		s := drawRefusals(seed)
		checkFixes(t, seed, s, nil, kinds)
		assert.Equal(t, drawRefusals(seed), s, "seed %d: it is modified", seed)
		checkFixes(t, seed, inZones(seed, s), nil, kinds)
	}
	for _, kind := range []string{
		string(plan.TolerateTaints), string(plan.AllowType), string(plan.LabelPool), string(plan.RaiseLimit), string(plan.RaiseQuota), string(plan.RequestLess),
		string(plan.DropSelector), string(plan.TopologySpread), string(plan.PodAffinity), string(plan.PodAntiAffinity), "partly",
	} {
		assert.Positive(t, kinds[kind], kind)
	}
}

// drawCrowded draws a group or two, workloads with priorities that are in no group, an existing node
// that holds some of them, and pools that a limit, a quota or a taint closes.
func drawCrowded(seed uint64) (scheduling.Snapshot, *plan.Options) {
	r := rand.New(rand.NewPCG(seed, 23))
	list := func(cpu int) corev1.ResourceList {
		return corev1.ResourceList{"cpu": *resource.NewQuantity(int64(cpu), resource.DecimalSI), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("58")}
	}
	limit := func() corev1.ResourceList {
		if r.IntN(2) == 0 {
			return corev1.ResourceList{"nodes": *resource.NewQuantity(int64(1+r.IntN(2)), resource.DecimalSI)}
		}
		return corev1.ResourceList{"cpu": *resource.NewQuantity(int64(8+r.IntN(24)), resource.DecimalSI)}
	}
	p := scheduling.Pool{NodePool: nodepool.New("default"), Types: []instancetypes.InstanceType{
		instancetypes.New("m-16", nil, list(16), instancetypes.Offer("a", "on-demand", 0.8), instancetypes.Offer("b", "on-demand", 0.8)),
	}}
	if r.IntN(2) == 0 {
		p.Limits = limit()
	}
	if r.IntN(4) == 0 {
		p.Taints = []corev1.Taint{{Key: "batch", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}
	}
	if r.IntN(2) == 0 {
		p.Types = append(p.Types, instancetypes.New("m-8", nil, list(8), instancetypes.Offer("a", "on-demand", 0.5)))
	}
	s := scheduling.Snapshot{Pools: []scheduling.Pool{p}}
	if r.IntN(2) == 0 {
		s.Quotas = []capacityquota.Quota{{Name: "all", Limits: limit()}}
	}
	for i := range r.IntN(3) {
		name := fmt.Sprint("old-", i)
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: "a"}}}
		n.Status.Allocatable, n.Status.Conditions = list(16), []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		s.Nodes = append(s.Nodes, n)
	}
	out := &plan.Options{}
	groups := 1 + r.IntN(2)
	for w := range groups + 1 + r.IntN(3) {
		app, n, priority := fmt.Sprint("app-", w), 2+r.IntN(4), int32(100*r.IntN(2))
		request := corev1.ResourceList{"cpu": *resource.NewMilliQuantity(int64(900+1000*r.IntN(5)), resource.DecimalSI), "memory": resource.MustParse("1Gi")}
		for i := range n {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("%s-%d", app, i), Labels: map[string]string{"app": app}}}
			pod.Spec = corev1.PodSpec{Priority: &priority, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: request}}}}
			s.Pods = append(s.Pods, pod)
		}
		if w < groups {
			g := gang.Group{Name: app, Minimum: n - r.IntN(2), Member: func(pod *corev1.Pod) bool { return pod.Labels["app"] == app }}
			if r.IntN(3) == 0 {
				g.Key = corev1.LabelTopologyZone
			}
			out.Groups = append(out.Groups, g)
		}
	}
	return s, out
}

// Fixes keep their promise beside groups, too. The first attempt of a plan may leave out a group
// that a user's plan places, and that then takes the places of the refused pods.
func TestFixesAreAppliedBesideGroups(t *testing.T) {
	kinds, n := map[string]int{}, 400
	if testing.Short() {
		n = 40
	}
	for seed := range uint64(n) {
		s, opts := drawCrowded(seed)
		checkFixes(t, seed, s, opts, kinds)
	}
	for _, kind := range []plan.FixKind{plan.TolerateTaints, plan.RaiseLimit, plan.RaiseQuota} {
		assert.Positive(t, kinds[string(kind)], kind)
	}
}

// Of several terms over the same topology key, the fix names the one that is in the way. It is
// found, though the first one has the same key.
func TestFixesNameTheTerm(t *testing.T) {
	s := drawRefusals(0)
	loud, quiet := s.Pods[0].DeepCopy(), s.Pods[0].DeepCopy()
	loud.Name, loud.Labels, loud.Spec = "loud", map[string]string{"app": "loud"}, corev1.PodSpec{Containers: loud.Spec.Containers}
	quiet.Name, quiet.Labels, quiet.Spec = "quiet", map[string]string{"app": "quiet"}, *loud.Spec.DeepCopy()
	for _, pod := range []*corev1.Pod{loud, quiet} {
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1")}
	}
	loud.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "a"}
	quiet.Spec.NodeSelector = loud.Spec.NodeSelector
	first := int32(10)
	loud.Spec.Priority = &first
	away := &corev1.PodAntiAffinity{}
	for _, app := range []string{"nobody", "loud"} {
		away.RequiredDuringSchedulingIgnoredDuringExecution = append(away.RequiredDuringSchedulingIgnoredDuringExecution, corev1.PodAffinityTerm{
			TopologyKey: corev1.LabelTopologyZone, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		})
	}
	quiet.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: away}
	s.Pods = []*corev1.Pod{loud, quiet}
	s.Pools[0].NodePool = nodepool.New("default")
	p, err := plan.Make(t.Context(), s, nil)
	require.NoError(t, err)
	require.Len(t, p.Unplaced(), 1)
	f := p.FirstFixes(false)[0]
	assert.Equal(t, [2]any{plan.PodAntiAffinity, 1}, [2]any{f.Constraint, f.Index})
	assert.Equal(t, "would fit if its anti-affinity to app=loud by topology.kubernetes.io/zone were preferred", f.What)
	require.Len(t, f.Pods, 1)
	assert.Equal(t, "quiet", f.Pods[0].Name)
	again, err := plan.Make(t.Context(), f.Apply(s), nil)
	require.NoError(t, err)
	assert.Empty(t, again.Unplaced())
}

// Pods of an older template are of the same workload. A fix never raises what they request, and
// relaxes no other constraint of theirs.
func TestFixesOfOlderTemplates(t *testing.T) {
	pod := drawRefusals(0).Pods[0]
	zone, host := corev1.TopologySpreadConstraint{TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule}, corev1.TopologySpreadConstraint{TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule}
	pod.Spec = corev1.PodSpec{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{zone, host}, Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelTopologyZone}},
	}}, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}}
	s := scheduling.Snapshot{Pods: []*corev1.Pod{pod}}
	for _, f := range []plan.Fix{
		{Kind: plan.PreferOnly, Key: corev1.LabelHostname, Constraint: plan.TopologySpread},
		{Kind: plan.PreferOnly, Key: corev1.LabelHostname, Constraint: plan.PodAntiAffinity},
		{Kind: plan.RequestLess, Requests: corev1.ResourceList{"cpu": resource.MustParse("2")}},
	} {
		f.Pods = s.Pods
		assert.Equal(t, s.Pods, f.Apply(s).Pods, "%s %s", f.Kind, f.Constraint)
	}
	f := plan.Fix{Kind: plan.PreferOnly, Key: corev1.LabelHostname, Constraint: plan.TopologySpread, Index: 1, Pods: s.Pods}
	assert.Equal(t, corev1.ScheduleAnyway, f.Apply(s).Pods[0].Spec.TopologySpreadConstraints[1].WhenUnsatisfiable)
}
