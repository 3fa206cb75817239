package scenario

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	appsdefaults "k8s.io/kubernetes/pkg/apis/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	podutils "sigs.k8s.io/karpenter/pkg/utils/pod"
	"sigs.k8s.io/yaml"

	"github.com/joinery-sdk/joinery/examples/judges/karpenter"
	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
)

// Scenario is a cluster and the pods to place. Objects are as a user would write them: not
// defaulted, with kind and namespace.
type Scenario struct {
	// Seed is what Generate drew it from.
	Seed uint64
	// Catalogue is what every pool may buy.
	Catalogue []Type

	NodePools  []*karpv1.NodePool
	DaemonSets []*appsv1.DaemonSet
	// Pods are pending; Running have a spec.nodeName.
	Pods, Running []*corev1.Pod
	Nodes         []*corev1.Node
	// NodeClaims are the claims of nodes that were bought, whether these are among Nodes or not.
	NodeClaims []*karpv1.NodeClaim
	// Ready are the nodes that have not joined, as they will be once they are initialized. Leaving
	// are the names of nodes that will be gone. The cluster shows neither, so they are no
	// manifests.
	Ready   []*corev1.Node
	Leaving []string
	// Kept are the running pods that no drain evicts, by namespace and name; the cluster shows why.
	Kept map[types.NamespacedName]bool
	// PodDisruptionBudgets allow nothing.
	PodDisruptionBudgets []*policyv1.PodDisruptionBudget
	// Declared has, by pool, the features that the kubelets of new nodes declare. If a pool is not
	// in the map, its nodes declare all features.
	Declared map[string][]string

	CSINodes   []*storagev1.CSINode
	CSIDrivers []*storagev1.CSIDriver
	// VolumeAttachments and CSICapacities are what attachers and provisioners write.
	VolumeAttachments []*storagev1.VolumeAttachment
	CSICapacities     []*storagev1.CSIStorageCapacity
	StorageClasses    []*storagev1.StorageClass
	PVs               []*corev1.PersistentVolume
	PVCs              []*corev1.PersistentVolumeClaim
	Namespaces        []*corev1.Namespace
	PriorityClasses   []*schedulingv1.PriorityClass
	RuntimeClasses    []*nodev1.RuntimeClass
	LimitRanges       []*corev1.LimitRange
	// Quotas are CapacityQuotas.
	Quotas []*unstructured.Unstructured
}

// String names the seed and counts the objects.
func (s Scenario) String() string {
	return fmt.Sprintf("seed %d: %d pods, %d pools, %d types, %d nodes with %d running pods, %d daemonsets, %d claims",
		s.Seed, len(s.Pods), len(s.NodePools), len(s.Catalogue), len(s.Nodes), len(s.Running), len(s.DaemonSets), len(s.PVCs))
}

// Objects returns all objects but the catalogue, those that others refer to first.
func (s Scenario) Objects() []client.Object {
	var all []client.Object
	collect(&all, s.Namespaces)
	collect(&all, s.PriorityClasses)
	collect(&all, s.RuntimeClasses)
	collect(&all, s.LimitRanges)
	collect(&all, s.Quotas)
	collect(&all, s.StorageClasses)
	collect(&all, s.CSIDrivers)
	collect(&all, s.PVs)
	collect(&all, s.PVCs)
	collect(&all, s.NodePools)
	collect(&all, s.NodeClaims)
	collect(&all, s.Nodes)
	collect(&all, s.CSINodes)
	collect(&all, s.VolumeAttachments)
	collect(&all, s.CSICapacities)
	collect(&all, s.DaemonSets)
	collect(&all, s.PodDisruptionBudgets)
	collect(&all, s.Running)
	collect(&all, s.Pods)
	return all
}

func collect[T client.Object](all *[]client.Object, list []T) {
	for _, o := range list {
		*all = append(*all, o)
	}
}

// YAML returns the objects as one file of manifests, without the catalogue; see [CatalogueJSON].
func (s Scenario) YAML() ([]byte, error) {
	var out bytes.Buffer
	for _, o := range s.Objects() {
		text, err := yaml.Marshal(o)
		if err != nil {
			return nil, fmt.Errorf("scenario: %s %q: %w", o.GetObjectKind().GroupVersionKind().Kind, o.GetName(), err)
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	return out.Bytes(), nil
}

// Cluster returns what kube-scheduler will know when the plan's first pod is bound, not admitted
// yet: nodes on their way are ready, nodes that leave are gone, and their pods that are made anew
// are pending. Karpenter's own code says which pods those are.
func (s Scenario) Cluster() kubejudge.Scenario {
	out := kubejudge.Scenario{
		Pods: slices.Clone(s.Pods), CSINodes: s.CSINodes, CSIDrivers: s.CSIDrivers, VolumeAttachments: s.VolumeAttachments, CSICapacities: s.CSICapacities, StorageClasses: s.StorageClasses, PVs: s.PVs, PVCs: s.PVCs,
		Namespaces: s.Namespaces, PriorityClasses: s.PriorityClasses, RuntimeClasses: s.RuntimeClasses, LimitRanges: s.LimitRanges,
	}
	out.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), func(n *corev1.Node) bool {
		return slices.Contains(s.Leaving, n.Name) || slices.ContainsFunc(s.Ready, func(r *corev1.Node) bool { return r.Name == n.Name })
	})
	out.Nodes = append(out.Nodes, s.Ready...)
	out.CSINodes = s.withDrivers(out.CSINodes, s.Ready)
	for i, n := range out.Nodes {
		cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
		if n.Spec.Unschedulable && !slices.Contains(n.Spec.Taints, cordon) { // its controller adds it (doNoScheduleTaintingPass)
			out.Nodes[i] = n.DeepCopy()
			out.Nodes[i].Spec.Taints = append(out.Nodes[i].Spec.Taints, cordon)
		}
	}
	for _, p := range s.Running {
		switch {
		case !slices.Contains(s.Leaving, p.Spec.NodeName):
			out.Running = append(out.Running, p)
		case podutils.IsReschedulable(p) && !s.Kept[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}]:
			p = p.DeepCopy()
			p.UID, p.Spec.Priority = "", nil // another one is made and admitted
			if p.Spec.RuntimeClassName != nil {
				p.Spec.Overhead = nil
			}
			p.Spec.NodeName, p.DeletionTimestamp, p.DeletionGracePeriodSeconds, p.Status = "", nil, nil, corev1.PodStatus{Phase: corev1.PodPending}
			out.Pods = append(out.Pods, p)
		}
	}
	return out
}

// withDrivers is the list with what it lacks of nodes to come: every driver runs there, and
// attaches any number of volumes unless it says otherwise already.
func (s Scenario) withDrivers(list []*storagev1.CSINode, nodes []*corev1.Node) []*storagev1.CSINode {
	list = slices.Clone(list)
	for _, n := range nodes {
		c := &storagev1.CSINode{}
		c.TypeMeta, c.ObjectMeta = meta("CSINode", "storage.k8s.io/v1", n.Name)
		c.Annotations = map[string]string{migrated: inTreePlugins}
		at := slices.IndexFunc(list, func(c *storagev1.CSINode) bool { return c.Name == n.Name })
		if at >= 0 {
			c = list[at].DeepCopy()
		} else {
			at, list = len(list), append(list, nil)
		}
		for _, d := range s.CSIDrivers {
			if !slices.ContainsFunc(c.Spec.Drivers, func(have storagev1.CSINodeDriver) bool { return have.Name == d.Name }) {
				c.Spec.Drivers = append(c.Spec.Drivers, storagev1.CSINodeDriver{Name: d.Name, NodeID: n.Name})
			}
		}
		list[at] = c
	}
	return list
}

// lingers is how the name of a pod on a leaving node begins while its successor, which has its
// name, is pending.
const lingers = "leaving-"

// Lingering returns the leaving nodes, and the pods that run there until the nodes are gone. The
// names of these pods are those in [Scenario.Cluster] with a prefix; see [LingeringName].
func (s Scenario) Lingering() ([]*corev1.Node, []*corev1.Pod) {
	var nodes []*corev1.Node
	for _, n := range s.Nodes {
		if slices.Contains(s.Leaving, n.Name) {
			nodes = append(nodes, n)
		}
	}
	var pods []*corev1.Pod
	for _, p := range s.Running {
		if slices.Contains(s.Leaving, p.Spec.NodeName) {
			p = p.DeepCopy()
			p.Name = lingers + p.Name
			p.Spec.Volumes = slices.DeleteFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Ephemeral != nil }) // claims are named after pods
			pods = append(pods, p)
		}
	}
	return nodes, pods
}

// LingeringName returns the name of a pod on a leaving node in [Scenario.Lingering].
func LingeringName(name string) string { return lingers + name }

// Planned returns the cluster with the nodes that a plan buys, and the whole order of binding: the
// daemonset pods that their controller makes for existing and new nodes, then the plan's pods. Two
// kinds of daemonset pods are left out, because no plan is to blame for them: those for which an
// existing node has no room before the plan, and those that running pods or other daemonset pods
// keep off a new node. csi are the attach limits that the plan assumed for its nodes.
func (s Scenario) Planned(ctx context.Context, nodes []*corev1.Node, csi []*storagev1.CSINode, plan []kubejudge.Binding) (kubejudge.Scenario, []kubejudge.Binding, error) {
	return s.planned(ctx, s.Cluster(), nodes, csi, plan)
}

// PlannedSteps is [Scenario.Planned] in a cluster that still has the leaving nodes and their pods;
// they stay until a step removes them.
func (s Scenario) PlannedSteps(ctx context.Context, nodes []*corev1.Node, plan []kubejudge.Step) (kubejudge.Scenario, []kubejudge.Step, error) {
	c, first, err := s.planned(ctx, s.Cluster(), nodes, nil, nil)
	if err != nil {
		return c, nil, err
	}
	leaving, pods := s.Lingering()
	c.Nodes, c.Running = slices.Concat(c.Nodes, leaving), slices.Concat(c.Running, pods)
	held, err := kubejudge.Judge(ctx, c, first)
	if err != nil {
		return c, nil, fmt.Errorf("scenario: %w", err)
	}
	var steps []kubejudge.Step
	for _, b := range first {
		// A daemonset pod that a pod on a leaving node keeps away starts later.
		if !slices.ContainsFunc(held.Refused, func(r kubejudge.Refusal) bool { return r.Binding == b && r.Plugin == "InterPodAffinity" }) {
			steps = append(steps, kubejudge.Step{Binding: b})
		}
	}
	return c, append(steps, plan...), nil
}

func (s Scenario) planned(ctx context.Context, c kubejudge.Scenario, nodes []*corev1.Node, csi []*storagev1.CSINode, plan []kubejudge.Binding) (kubejudge.Scenario, []kubejudge.Binding, error) {
	daemons, first := kubejudge.Daemons(s.DaemonSets, c.Nodes, c.Running)
	pending := c.Pods
	c.Pods = daemons
	held, err := kubejudge.Judge(ctx, c, first)
	if err != nil {
		return kubejudge.Scenario{}, nil, fmt.Errorf("scenario: %w", err)
	}
	fresh, second := kubejudge.Daemons(s.DaemonSets, nodes, nil)
	for _, n := range nodes {
		c.Nodes = append(slices.Clip(c.Nodes), s.withKubelet(n))
	}
	c.CSINodes = s.withDrivers(slices.Concat(c.CSINodes, csi), nodes)
	c.Pods = slices.Concat(daemons, fresh, pending)
	empty, err := kubejudge.Judge(ctx, c, slices.Concat(held.Accepted, second))
	if err != nil {
		return kubejudge.Scenario{}, nil, fmt.Errorf("scenario: %w", err)
	}
	kept := slices.DeleteFunc(second, func(b kubejudge.Binding) bool {
		return slices.ContainsFunc(empty.Refused, func(r kubejudge.Refusal) bool { return r.Binding == b && r.Plugin == "InterPodAffinity" })
	})
	return c, slices.Concat(held.Accepted, kept, plan), nil
}

// Karpenter returns the same scenario, admitted, as Karpenter reads it: with the nodes of Cluster,
// and without the pods that are being deleted, which its provisioner passes over.
func (s Scenario) Karpenter(ctx context.Context) (karpenter.Input, error) {
	c, err := kubejudge.Admit(ctx, s.Cluster())
	if err != nil {
		return karpenter.Input{}, fmt.Errorf("scenario: %w", err)
	}
	c.Pods = slices.DeleteFunc(c.Pods, podutils.IsTerminating)
	in := karpenter.Input{
		Pods: c.Pods, NodePools: s.NodePools, InstanceTypes: map[string][]*cloudprovider.InstanceType{},
		Nodes: c.Nodes, Running: c.Running, CSINodes: c.CSINodes, StorageClasses: c.StorageClasses,
		PVs: c.PVs, PVCs: c.PVCs, Namespaces: c.Namespaces, WellKnownLabels: WellKnownLabels(),
	}
	for _, d := range s.DaemonSets {
		d = d.DeepCopy()
		appsdefaults.SetObjectDefaults_DaemonSet(d) // a port without a protocol is TCP
		in.DaemonSets = append(in.DaemonSets, d)
	}
	types := InstanceTypes(s.Catalogue)
	for _, p := range s.NodePools {
		in.InstanceTypes[p.Name] = types
	}
	return in, nil
}
