package kubejudge

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// snapshot is the cluster as the plugins see it. It differs from kube-scheduler's own in one way:
// it grows pod by pod, where that one is refreshed from the cache at the start of each cycle.
type snapshot struct {
	fwk.SharedLister // nil: what newer versions of the interface ask about groups, which no plugin of the default profile calls

	byName       map[string]*framework.NodeInfo
	list         []fwk.NodeInfo // by node name
	affinity     []fwk.NodeInfo // those with a pod that has affinity terms
	antiAffinity []fwk.NodeInfo // those with a pod that has required anti-affinity terms
	claims       sets.Set[string]
}

var _ fwk.SharedLister = (*snapshot)(nil)

func newSnapshot(nodes []*corev1.Node) *snapshot {
	s := &snapshot{byName: make(map[string]*framework.NodeInfo, len(nodes)), claims: sets.New[string]()}
	nodes = slices.Clone(nodes)
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	images := map[string]*fwk.ImageStateSummary{}
	for _, n := range nodes {
		info := framework.NewNodeInfo()
		info.SetNode(n)
		for _, image := range n.Status.Images {
			for _, name := range image.Names {
				state, ok := images[name]
				if !ok {
					state = &fwk.ImageStateSummary{Size: image.SizeBytes}
					images[name] = state
				}
				if info.ImageStates[name] == nil {
					state.NumNodes++
				}
				info.ImageStates[name] = state
			}
		}
		s.byName[n.Name] = info
		s.list = append(s.list, info)
	}
	return s
}

// add puts a pod, whose spec.nodeName is set, on its node; where there is no such node, nowhere.
func (s *snapshot) add(pod *corev1.Pod) error {
	info, ok := s.byName[pod.Spec.NodeName]
	if !ok {
		return nil
	}
	podInfo, err := framework.NewPodInfo(pod)
	if err != nil {
		return fmt.Errorf("pod %q: %w", nameOf(pod), err)
	}
	hadAffinity, hadAnti := len(info.PodsWithAffinity) > 0, len(info.PodsWithRequiredAntiAffinity) > 0
	info.AddPodInfo(podInfo)
	if !hadAffinity && len(info.PodsWithAffinity) > 0 {
		s.affinity = append(s.affinity, info)
	}
	if !hadAnti && len(info.PodsWithRequiredAntiAffinity) > 0 {
		s.antiAffinity = append(s.antiAffinity, info)
	}
	s.use(pod)
	return nil
}

// use records the claims of a pod.
func (s *snapshot) use(pod *corev1.Pod) {
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			s.claims.Insert(framework.GetNamespacedName(pod.Namespace, v.PersistentVolumeClaim.ClaimName))
		}
	}
}

// NodeInfos returns the nodes.
func (s *snapshot) NodeInfos() fwk.NodeInfoLister { return s }

// StorageInfos tells which claims are in use.
func (s *snapshot) StorageInfos() fwk.StorageInfoLister { return s }

// PodGroupStates returns a lister without groups, for gangs are not judged.
func (s *snapshot) PodGroupStates() fwk.PodGroupStateLister { return noPodGroups{} }

// List returns all nodes by name.
func (s *snapshot) List() ([]fwk.NodeInfo, error) { return s.list, nil }

// HavePodsWithAffinityList returns the nodes with a pod that has affinity terms.
func (s *snapshot) HavePodsWithAffinityList() ([]fwk.NodeInfo, error) { return s.affinity, nil }

// HavePodsWithRequiredAntiAffinityList returns the nodes with a pod that has required anti-affinity
// terms.
func (s *snapshot) HavePodsWithRequiredAntiAffinityList() ([]fwk.NodeInfo, error) {
	return s.antiAffinity, nil
}

// HavePodsWithRequiredNonHostScopedAntiAffinityList is empty, as kube-scheduler 1.37 wants it where
// InterPodAffinityHostnameFastPath is off, its default.
func (s *snapshot) HavePodsWithRequiredNonHostScopedAntiAffinityList() ([]fwk.NodeInfo, error) {
	return nil, nil
}

// Get returns one node.
func (s *snapshot) Get(name string) (fwk.NodeInfo, error) {
	if info, ok := s.byName[name]; ok {
		return info, nil
	}
	return nil, fmt.Errorf("kubejudge: no node %q", name)
}

// IsPVCUsedByPods reports whether a pod on a node uses the claim "namespace/name".
func (s *snapshot) IsPVCUsedByPods(key string) bool { return s.claims.Has(key) }

// nominator keeps room on nodes for pods with a status.nominatedNodeName until they are bound.
type nominator struct {
	fwk.PodNominator // nil: who nominates pods, which the judge never does

	byNode map[string][]fwk.PodInfo
}

// add nominates a pending pod to the node that its status names. kube-scheduler's queue does so
// with each pod that it may schedule.
func (n *nominator) add(pod *corev1.Pod) error {
	node := pod.Status.NominatedNodeName
	if node == "" || pod.DeletionTimestamp != nil || pod.Spec.SchedulerName != corev1.DefaultSchedulerName || len(pod.Spec.SchedulingGates) > 0 {
		return nil
	}
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return fmt.Errorf("pod %q: %w", nameOf(pod), err)
	}
	n.byNode[node] = append(n.byNode[node], info)
	return nil
}

// drop ends the nomination of a pod that is bound.
func (n *nominator) drop(pod *corev1.Pod) {
	node := pod.Status.NominatedNodeName
	n.byNode[node] = slices.DeleteFunc(n.byNode[node], func(i fwk.PodInfo) bool { return i.GetPod().UID == pod.UID })
}

// NominatedPodsForNode returns the pods for which the node keeps room.
func (n *nominator) NominatedPodsForNode(node string) []fwk.PodInfo { return n.byNode[node] }

type noPodGroups struct{}

// Get knows no group.
func (noPodGroups) Get(namespace, name string) (fwk.PodGroupState, error) {
	return nil, fmt.Errorf("kubejudge: no pod group %s/%s", namespace, name)
}
