package deprovision_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
	"github.com/joinery-sdk/joinery/examples/judges/replay"
	"github.com/joinery-sdk/joinery/examples/judges/scenario"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// world is a cluster that runs, and what its pods may be asked.
type world struct {
	manifests *manifests.Snapshot
	snapshot  scheduling.Snapshot
	scenario  scenario.Scenario
	// interrupted is what the cloud takes back.
	interrupted []deprovision.Interruption
	// broken is what has to be repaired, by name of the node.
	broken map[string]*eligibility.Repair
}

// draw provisions a random scenario, binds what kube-scheduler accepts, and lets a part of the pods end.
func draw(ctx context.Context, seed uint64, careful bool) (*world, error) {
	s := scenario.Generate(seed, scenario.Options{})
	file, err := scenario.CatalogueJSON(s.Catalogue)
	if err != nil {
		return nil, err
	}
	market, err := pipeline.KWOKMarket("scenario", file)
	if err != nil {
		return nil, err
	}
	text, err := s.YAML()
	if err != nil {
		return nil, err
	}
	m, err := manifests.Parse([]manifests.File{{Name: "all.yaml", Data: text}}, nil)
	if err != nil {
		return nil, err
	}
	snapshot, _, err := pipeline.Snapshot(m, market)
	if err != nil {
		return nil, err
	}
	// A quick plan is a good start here: what it leaves to save is what the searches are for.
	packed, err := plan.Make(ctx, snapshot, &plan.Options{Packing: &binpack.Options{Strategy: binpack.CostAware{Effort: binpack.EffortFast}}})
	if err != nil {
		return nil, err
	}
	nodes, order := replay.Plan(packed)
	cluster, order, err := s.Planned(ctx, nodes, nil, order)
	if err != nil {
		return nil, err
	}
	verdict, err := kubejudge.Judge(ctx, cluster, order)
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(seed, 77))
	at := map[types.NamespacedName]string{}
	for _, b := range verdict.Accepted {
		at[b.Pod] = b.Node
	}
	var running []*corev1.Pod
	for _, p := range slices.Concat(cluster.Running, cluster.Pods) {
		p = p.DeepCopy()
		if p.Spec.NodeName == "" {
			p.Spec.NodeName = at[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}]
		}
		if p.Spec.NodeName == "" || !eviction.Daemon(p) && r.IntN(100) < 50 {
			continue
		}
		p.Status = corev1.PodStatus{Phase: corev1.PodRunning}
		if len(p.OwnerReferences) == 0 {
			yes := true
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "r", Controller: &yes}}
		}
		if careful && r.IntN(40) == 0 {
			p.Annotations = map[string]string{eviction.DoNotDisrupt: "true"}
		}
		running = append(running, p)
	}
	for _, n := range cluster.Nodes {
		n.CreationTimestamp = metav1.NewTime(now().Add(-time.Hour))
		if careful && r.IntN(15) == 0 {
			n.Annotations = map[string]string{eviction.DoNotDisrupt: "true"}
		}
	}
	bindVolumes(&s, running, cluster.Nodes)
	snapshot.PersistentVolumes, snapshot.PersistentVolumeClaims = s.PVs, s.PVCs
	snapshot.Nodes, snapshot.Pods = cluster.Nodes, running
	zero := time.Duration(0)
	for i := range snapshot.Pools {
		d := &snapshot.Pools[i].Disruption
		d.Policy, d.ConsolidateAfter, d.ExpireAfter = nodepool.WhenEmptyOrUnderutilized, &zero, nil
		d.Budgets = nil
		if careful && r.IntN(3) == 0 {
			d.Budgets = []nodepool.Budget{{Nodes: r.IntN(4)}, {Nodes: 60, Percent: true}}
		}
	}
	if careful {
		for i := range r.IntN(5) {
			p := running[r.IntN(len(running))]
			if len(p.Labels) == 0 {
				continue
			}
			b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: fmt.Sprintf("pdb-%d", i)}}
			b.Spec.Selector = &metav1.LabelSelector{MatchLabels: p.Labels}
			b.Status.DisruptionsAllowed = int32(r.IntN(3))
			m.PodDisruptionBudgets = append(m.PodDisruptionBudgets, b)
		}
	}
	return &world{manifests: m, snapshot: snapshot, scenario: s}, nil
}

// bindVolumes gives every claim that a running pod uses a volume in the zone where the pod runs.
func bindVolumes(s *scenario.Scenario, running []*corev1.Pod, nodes []*corev1.Node) {
	zones := map[string]string{}
	for _, n := range nodes {
		zones[n.Name] = n.Labels[corev1.LabelTopologyZone]
	}
	claims := map[string]*corev1.PersistentVolumeClaim{}
	for i, c := range s.PVCs {
		c = c.DeepCopy()
		s.PVCs[i], claims[c.Namespace+"/"+c.Name] = c, c
	}
	for _, p := range running {
		for _, v := range p.Spec.Volumes {
			if v.PersistentVolumeClaim == nil {
				continue // the claim of an ephemeral volume goes with its pod
			}
			name := v.PersistentVolumeClaim.ClaimName
			c := claims[p.Namespace+"/"+name]
			if c == nil || c.Spec.VolumeName != "" {
				continue
			}
			pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "made-" + p.Namespace + "-" + name}}
			pv.Spec.AccessModes, pv.Spec.Capacity = c.Spec.AccessModes, c.Spec.Resources.Requests
			if c.Spec.StorageClassName != nil {
				pv.Spec.StorageClassName = *c.Spec.StorageClassName
			}
			pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: s.StorageClasses[0].Provisioner, VolumeHandle: pv.Name}
			pv.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: c.Namespace, Name: c.Name}
			pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zones[p.Spec.NodeName]}},
			}}}}}
			pv.Status.Phase = corev1.VolumeBound
			c.Spec.VolumeName, c.Status.Phase = pv.Name, corev1.ClaimBound
			s.PVs = append(s.PVs, pv)
		}
	}
}
