package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/examples/operator/sandbox"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// The test of every provisioner's first page: 0 -> 5 -> 0.
func TestInflate(t *testing.T) {
	app := sandbox.Inflate("inflate", 0, "1", "1Gi")
	begin(t, fast(), sandbox.Pool("default"), app)
	require.Empty(t, nodes(t))
	scale(t, app, 5)
	s := running(t, 5)
	require.Positive(t, s.Nodes)
	for _, n := range nodes(t) {
		require.Equal(t, "true", n.Labels[karpv1.NodeInitializedLabelKey])
		require.Contains(t, n.Finalizers, karpv1.TerminationFinalizer)
	}
	scale(t, app, 0)
	reach(t, "all nodes are gone", func(s sandbox.State) bool { return s == sandbox.State{} })
}

// Two pools with a taint each: pods go to the nodes that they tolerate, and to no others.
func TestTwoPoolsWithTaints(t *testing.T) {
	pool := func(name string) *karpv1.NodePool {
		return sandbox.Pool(name, func(p *karpv1.NodePool) {
			p.Spec.Template.Spec.Taints = []corev1.Taint{{Key: "team", Value: name, Effect: corev1.TaintEffectNoSchedule}}
		})
	}
	of := func(name string) func(*corev1.PodTemplateSpec) {
		return func(p *corev1.PodTemplateSpec) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "team", Operator: corev1.TolerationOpEqual, Value: name, Effect: corev1.TaintEffectNoSchedule}}
		}
	}
	begin(t, fast(), pool("red"), pool("blue"), sandbox.Inflate("red", 3, "500m", "256Mi", of("red")), sandbox.Inflate("blue", 4, "500m", "256Mi", of("blue")))
	running(t, 7)
	at := map[string]string{}
	for _, n := range nodes(t) {
		at[n.Name] = n.Labels[karpv1.NodePoolLabelKey]
	}
	for _, p := range pods(t) {
		require.Equal(t, p.Labels["app"], at[p.Spec.NodeName])
	}
}

// A group of pods that must be in one zone gets its nodes there; one that is spread over capacity types gets both.
func TestGroupsAndCapacitySpread(t *testing.T) {
	together := func(p *corev1.PodTemplateSpec) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelTopologyZone, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels},
		}}}}
	}
	spread := func(p *corev1.PodTemplateSpec) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: karpv1.CapacityTypeLabelKey, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels},
		}}
	}
	begin(t, fast(), sandbox.Pool("default"), sandbox.Inflate("group", 6, "1500m", "1Gi", together), sandbox.Inflate("spread", 6, "500m", "512Mi", spread))
	running(t, 12)
	labels := map[string]map[string]string{}
	for _, n := range nodes(t) {
		labels[n.Name] = n.Labels
	}
	zones, kinds := map[string]int{}, map[string]int{}
	for _, p := range pods(t) {
		if p.Labels["app"] == "group" {
			zones[labels[p.Spec.NodeName][corev1.LabelTopologyZone]]++
		} else {
			kinds[labels[p.Spec.NodeName][karpv1.CapacityTypeLabelKey]]++
		}
	}
	require.Len(t, zones, 1)
	require.Equal(t, map[string]int{"spot": 3, "on-demand": 3}, kinds)
}

// A pool's limit holds while nodes are on their way, and pods that it leaves out are told why.
func TestLimits(t *testing.T) {
	begin(t, fast(), sandbox.Pool("default", func(p *karpv1.NodePool) {
		p.Spec.Limits = karpv1.Limits{corev1.ResourceCPU: resource.MustParse("4")}
	}), sandbox.Inflate("app", 12, "900m", "256Mi"))
	reach(t, "some pods run", func(s sandbox.State) bool { return s.Running > 0 })
	steady(t, 5*time.Second, func() error {
		total := resource.Quantity{}
		for _, c := range claims(t) {
			total.Add(c.Status.Capacity[corev1.ResourceCPU])
		}
		if total.CmpInt64(4) > 0 {
			return fmt.Errorf("the limit is 4 cpu, and there are %s", total.String())
		}
		return nil
	})
	eventually(t, func() error { return hasEvent(t, "FailedScheduling", "limit") })
}

// A DaemonSet that comes later gets its place, by nodes that are bought with it in mind.
func TestDaemonSetAddedLater(t *testing.T) {
	app := sandbox.Inflate("app", 2, "800m", "512Mi")
	begin(t, fast(), sandbox.Pool("default"), app)
	running(t, 2)
	template := sandbox.Inflate("agent", 0, "500m", "256Mi").Spec
	require.NoError(t, world.Apply(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent", Namespace: "default"}, Spec: appsv1.DaemonSetSpec{Selector: template.Selector, Template: template.Template},
	}))
	scale(t, app, 10)
	eventually(t, func() error {
		apps, agents := 0, map[string]bool{}
		hosts := map[string]bool{}
		for _, p := range pods(t) {
			switch {
			case p.Status.Phase != corev1.PodRunning:
			case p.Labels["app"] == "agent":
				agents[p.Spec.NodeName] = true
			default:
				apps++
				hosts[p.Spec.NodeName] = true
			}
		}
		if apps != 10 || len(agents) < len(hosts)-1 { // a node of before may be full
			return fmt.Errorf("%d apps on %d nodes, %d of them with an agent", apps, len(hosts), len(agents))
		}
		return nil
	})
}

// A pod whose volume is in one zone gets its node there.
func TestVolumeInOneZone(t *testing.T) {
	const zone = "us-east-1b"
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	class := "disk"
	storage := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &mode}
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk-1"}, Spec: corev1.PersistentVolumeSpec{
		Capacity: size, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: class,
		PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/data"}},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
		}}}},
	}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "default"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: volume.Spec.AccessModes, StorageClassName: &class, Resources: corev1.VolumeResourceRequirements{Requests: size}, VolumeName: volume.Name,
	}}
	t.Cleanup(func() { _ = world.Client.Delete(t.Context(), storage) })
	begin(t, fast(), sandbox.Pool("default"), storage, volume, claim, sandbox.Inflate("db", 1, "1", "1Gi", func(p *corev1.PodTemplateSpec) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	}))
	running(t, 1)
	require.Equal(t, zone, nodes(t)[0].Labels[corev1.LabelTopologyZone])
}

// What the cloud refuses is bought elsewhere.
func TestCapacityElsewhere(t *testing.T) {
	var shut []memcloud.Pool
	for _, m := range []string{"c6a.large", "m6a.large", "t3a.medium"} {
		shut = append(shut, memcloud.Pool{Type: m})
	}
	types, err := world.Cloud.InstanceTypes(t.Context(), nodepool.NodePool{})
	require.NoError(t, err)
	set := func(free int) {
		for _, it := range types {
			for _, s := range shut {
				if s.Type != it.Name {
					continue
				}
				for _, o := range it.Offerings {
					require.NoError(t, world.Cloud.SetCapacity(it.Name, o.Requirements, free))
				}
			}
		}
	}
	set(0)
	t.Cleanup(func() { set(-1) })
	begin(t, fast(), sandbox.Pool("default"), sandbox.Inflate("app", 1, "1", "1Gi"))
	running(t, 1)
	for _, m := range world.Cloud.Truth() {
		require.NotContains(t, []string{"c6a.large", "m6a.large", "t3a.medium"}, m.Type)
	}
}

// A pool whose node class is of a kind that the operator has no right to read says so, and other pools work.
func TestClassThatMayNotBeRead(t *testing.T) {
	odd := sandbox.Pool("odd", func(p *karpv1.NodePool) {
		p.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "view"}
	})
	begin(t, fast(), odd, sandbox.Pool("default"), sandbox.Inflate("app", 1, "1", "1Gi"))
	running(t, 1)
	eventually(t, func() error {
		if err := world.Client.Get(t.Context(), client.ObjectKeyFromObject(odd), odd); err != nil {
			return err
		}
		if ready := odd.StatusConditions().Get(karpv1.ConditionTypeNodeClassReady); !ready.IsFalse() || !strings.Contains(ready.Message, "forbidden") {
			return fmt.Errorf("the pool says %v", odd.Status.Conditions)
		}
		return nil
	})
}

// A claim that somebody writes by hand is launched, and its deletion ends it.
func TestClaimByHand(t *testing.T) {
	begin(t, fast())
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "by-hand"}, Spec: karpv1.NodeClaimSpec{
		NodeClassRef: sandbox.Pool("x").Spec.Template.Spec.NodeClassRef,
		Requirements: []karpv1.NodeSelectorRequirementWithMinValues{sandbox.Require(corev1.LabelInstanceTypeStable, "m6a.large"), sandbox.Require(karpv1.CapacityTypeLabelKey, "on-demand")},
	}}
	require.NoError(t, world.Apply(t.Context(), claim))
	reach(t, "the node is there", func(s sandbox.State) bool { return s.Nodes == 1 })
	eventually(t, func() error {
		if err := world.Client.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
			return err
		}
		if !claim.StatusConditions().IsTrue(karpv1.ConditionTypeInitialized) {
			return fmt.Errorf("not initialized: %v", claim.Status.Conditions)
		}
		return nil
	})
	require.NoError(t, world.Client.Delete(t.Context(), claim))
	reach(t, "it is gone", func(s sandbox.State) bool { return s == sandbox.State{} })
}

// The plan is what happens: of random deployments, every pod runs, and on the node that the plan named.
func TestThePlanIsWhatHappens(t *testing.T) {
	begin(t, fast())
	random := rand.New(rand.NewPCG(1, 2))
	total := 0
	for i := range 12 {
		n := int32(1 + random.IntN(12))
		total += int(n)
		shape := random.IntN(4)
		require.NoError(t, world.Apply(t.Context(), sandbox.Inflate(fmt.Sprintf("app-%d", i), n, fmt.Sprintf("%dm", 100*(1+random.IntN(15))), fmt.Sprintf("%dMi", 128*(1+random.IntN(16))), func(p *corev1.PodTemplateSpec) {
			selector := &metav1.LabelSelector{MatchLabels: p.Labels}
			switch shape {
			case 0:
				p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector}}
			case 1:
				p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: selector}}}}
			}
		})))
	}
	reach(t, "all pods are there", func(s sandbox.State) bool { return s.Pods == total })
	require.NoError(t, world.Apply(t.Context(), sandbox.Pool("default", func(p *karpv1.NodePool) {
		p.Spec.Disruption.ConsolidateAfter = karpv1.MustParseNillableDuration("Never") // moved pods would say nothing of the plan
	})))
	s := running(t, total)
	claimOf := map[string]string{}
	for _, c := range claims(t) {
		claimOf[c.Status.NodeName] = c.Name
	}
	met := 0
	eventually(t, func() error { // events are written beside
		var said eventsv1.EventList
		if err := world.Client.List(t.Context(), &said); err != nil {
			return err
		}
		slices.SortFunc(said.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
		planned := map[types.UID]string{} // the last time
		for _, e := range said.Items {
			if e.Reason == "Nominated" {
				planned[e.Regarding.UID] = e.Related.Name
			}
		}
		type place struct{ app, claim string }
		named, ran := map[place]int{}, map[place]int{} // pods of one deployment may stand in for each other
		var unnamed []string                           // an event may get lost
		for _, p := range pods(t) {
			if planned[p.UID] == "" {
				unnamed = append(unnamed, p.Name)
				continue
			}
			named[place{p.Labels["app"], planned[p.UID]}]++
			ran[place{p.Labels["app"], claimOf[p.Spec.NodeName]}]++
		}
		if 10*len(unnamed) > total {
			return fmt.Errorf("no plan named a node for pods %v", unnamed)
		}
		met = 0
		for at, n := range named {
			met += min(n, ran[at])
		}
		return nil
	})
	t.Logf("%d pods run on %d nodes, %d of them on the one that the plan named", total, s.Nodes, met)
	// The rest found room that the plan had left on a node which was there earlier; how many do is kube-scheduler's business.
	require.Positive(t, met)
}
