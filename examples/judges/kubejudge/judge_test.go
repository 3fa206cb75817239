package kubejudge_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
)

// concat joins lists of pods.
func concat(lists ...[]*corev1.Pod) []*corev1.Pod { return slices.Concat(lists...) }

// TestJudgeByPlugin has, for each plugin, a plan that is wrong in one way. Every other bind of it must be accepted, so
// that a judge that refuses too much fails as well.
func TestJudgeByPlugin(t *testing.T) {
	nodes := []*corev1.Node{node("a1", "a"), node("a2", "a"), node("b1", "b"), node("b2", "b")}
	waits, manual := class("waits", storagev1.VolumeBindingWaitForFirstConsumer), class("manual", storagev1.VolumeBindingWaitForFirstConsumer)
	manual.Provisioner = "kubernetes.io/no-provisioner"
	atOnce := class("at-once", storagev1.VolumeBindingImmediate)

	inZoneB := class("zone-b", storagev1.VolumeBindingWaitForFirstConsumer)
	inZoneB.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
		{Key: corev1.LabelTopologyZone, Values: []string{"b"}},
	}}}

	bound := claim("bound", "manual")
	bound.Spec.VolumeName = "in-a"
	labelled := volume("labelled")
	labelled.Spec.NodeAffinity = nil
	labelled.Labels = map[string]string{corev1.LabelTopologyZone: "a"}
	byLabel := claim("by-label", "manual")
	byLabel.Spec.VolumeName = "labelled"
	once := claim("once", "waits")
	once.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	noClass := claim("no-class", "")
	noClass.Spec.StorageClassName = nil
	fallback := class("fallback", storagev1.VolumeBindingWaitForFirstConsumer)
	fallback.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	limits := []*storagev1.CSINode{csiNode("a1", 2)}
	full := &storagev1.CSIStorageCapacity{
		ObjectMeta:       metav1.ObjectMeta{Name: "full", Namespace: "default"},
		StorageClassName: "waits", Capacity: ptr.To(resource.MustParse("1Mi")),
		NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelTopologyZone: "a"}},
	}
	room := full.DeepCopy()
	room.Name, room.Capacity = "room", ptr.To(resource.MustParse("1Ti"))
	room.NodeTopology.MatchLabels[corev1.LabelTopologyZone] = "b"

	for _, test := range []struct {
		name     string
		scenario kubejudge.Scenario
		plan     []kubejudge.Binding
		refused  string // the one pod that is refused, none if empty
		plugin   string
		message  string // part of it
	}{
		{
			name:     "accepted",
			scenario: kubejudge.Scenario{Nodes: nodes, Pods: pods(8, "web", spread(corev1.LabelTopologyZone))},
			plan:     plan("web-0", "a1", "web-1", "b1", "web-2", "a1", "web-3", "b1", "web-4", "a2", "web-5", "b2", "web-6", "b2", "web-7", "a2"),
		},
		{
			name:     "cpu",
			scenario: kubejudge.Scenario{Nodes: nodes, Pods: pods(5, "web")},
			plan:     plan("web-0", "a1", "web-1", "a1", "web-2", "a1", "web-3", "a1", "web-4", "a1"),
			refused:  "web-4", plugin: "NodeResourcesFit", message: "Insufficient cpu",
		},
		{
			name: "requests taken from limits",
			scenario: kubejudge.Scenario{Nodes: nodes, Pods: pods(2, "web", func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}}
			})},
			plan:    plan("web-0", "a1", "web-1", "a1"),
			refused: "web-1", plugin: "NodeResourcesFit", message: "Insufficient cpu",
		},
		{
			name: "pod count",
			scenario: kubejudge.Scenario{Nodes: []*corev1.Node{node("small", "a", func(n *corev1.Node) {
				n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("1")
			})}, Pods: pods(2, "web")},
			plan:    plan("web-0", "small", "web-1", "small"),
			refused: "web-1", plugin: "NodeResourcesFit", message: "Too many pods",
		},
		{
			name: "extended resource",
			scenario: kubejudge.Scenario{
				Nodes: []*corev1.Node{node("plain", "a"), node("gpu", "a", func(n *corev1.Node) {
					n.Status.Allocatable["accelerator.example.com/gpu"] = resource.MustParse("1")
				})},
				Pods: pods(2, "learn", func(p *corev1.Pod) {
					one := corev1.ResourceList{"accelerator.example.com/gpu": resource.MustParse("1")}
					p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: one, Limits: one}
				}),
			},
			plan:    plan("learn-0", "gpu", "learn-1", "plain"),
			refused: "learn-1", plugin: "NodeResourcesFit", message: "Insufficient accelerator.example.com/gpu",
		},
		{
			name: "room of a nominated pod",
			scenario: kubejudge.Scenario{Nodes: nodes, Pods: concat(
				pods(1, "waits", cpu("3"), priority(10), nominated("a1")), pods(2, "low", priority(5)), pods(1, "equal", priority(10)), pods(1, "high", priority(20), cpu("3")),
			)},
			plan:    plan("low-0", "a1", "low-1", "a1", "equal-0", "b1"),
			refused: "low-1", plugin: "NodeResourcesFit", message: "Insufficient cpu",
		},
		{
			name: "room of a nominated pod for an equal one",
			scenario: kubejudge.Scenario{Nodes: nodes, Pods: concat(
				pods(1, "waits", cpu("4"), priority(10), nominated("a1")), pods(1, "equal", priority(10)),
			)},
			plan:    plan("equal-0", "a1"),
			refused: "equal-0", plugin: "NodeResourcesFit", message: "Insufficient cpu",
		},
		{
			name: "higher priorities than that of a nominated pod",
			scenario: kubejudge.Scenario{Nodes: nodes, Pods: concat(
				pods(1, "waits", cpu("3"), priority(10), nominated("a1")), pods(1, "high", priority(20), cpu("3")),
			)},
			plan:    plan("high-0", "a1", "waits-0", "a1"),
			refused: "waits-0", plugin: "NodeResourcesFit", message: "Insufficient cpu",
		},
		{
			name: "a nomination ends with the bind, wherever it is",
			scenario: kubejudge.Scenario{Nodes: nodes, Pods: concat(
				pods(1, "waits", cpu("3"), priority(10), nominated("a1")), pods(4, "low", priority(5)),
			)},
			plan: plan("waits-0", "b1", "low-0", "a1", "low-1", "a1", "low-2", "a1", "low-3", "a1"),
		},
		{
			name: "a nominated pod is not there yet",
			scenario: kubejudge.Scenario{Nodes: nodes, Pods: concat(
				pods(1, "waits", priority(10), nominated("a2")), pods(1, "beside", priority(5), near("waits")),
			)},
			plan:    plan("beside-0", "a2"),
			refused: "beside-0", plugin: "InterPodAffinity", message: "affinity",
		},
		{
			name: "nobody schedules these",
			scenario: kubejudge.Scenario{Nodes: nodes, Pods: concat(
				pods(1, "other", cpu("4"), nominated("a1"), func(p *corev1.Pod) { p.Spec.SchedulerName = "other" }),
				pods(1, "gated", cpu("4"), nominated("a1"), func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "gate"}} }),
				pods(1, "going", cpu("4"), nominated("a1"), terminating), pods(4, "low"),
			)},
			plan: plan("low-0", "a1", "low-1", "a1", "low-2", "a1", "low-3", "a1"),
		},
		{
			name:     "node selector",
			scenario: kubejudge.Scenario{Nodes: nodes, Pods: pods(2, "web", selector(corev1.LabelTopologyZone, "b"))},
			plan:     plan("web-0", "b1", "web-1", "a1"),
			refused:  "web-1", plugin: "NodeAffinity", message: "didn't match Pod's node affinity/selector",
		},
		{
			name: "node affinity by name, as daemonset pods have it",
			scenario: kubejudge.Scenario{Nodes: nodes, Pods: pods(2, "agent", func(p *corev1.Pod) {
				p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
						{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{"a1"}},
					}}},
				}}}
			})},
			plan:    plan("agent-0", "a1", "agent-1", "b1"),
			refused: "agent-1", plugin: "NodeAffinity", message: "only other nodes",
		},
		{
			name:     "node name",
			scenario: kubejudge.Scenario{Nodes: nodes, Pods: pods(2, "pinned", on("a1"))},
			plan:     plan("pinned-0", "a1", "pinned-1", "b1"),
			refused:  "pinned-1", plugin: "NodeName", message: "node",
		},
		{
			name: "taint",
			scenario: kubejudge.Scenario{
				Nodes: []*corev1.Node{node("plain", "a"), node("batch", "a", taint("dedicated", corev1.TaintEffectNoSchedule)), node("soft", "a", taint("slow", corev1.TaintEffectPreferNoSchedule))},
				Pods: concat(pods(1, "tolerates", func(p *corev1.Pod) {
					p.Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
				}), pods(2, "web")),
			},
			plan:    plan("tolerates-0", "batch", "web-0", "soft", "web-1", "batch"),
			refused: "web-1", plugin: "TaintToleration", message: "untolerated taint",
		},
		{
			name: "cordoned",
			scenario: kubejudge.Scenario{
				Nodes: []*corev1.Node{node("open", "a"), node("cordoned", "a", func(n *corev1.Node) { n.Spec.Unschedulable = true })},
				Pods:  pods(2, "web"),
			},
			plan:    plan("web-0", "open", "web-1", "cordoned"),
			refused: "web-1", plugin: "NodeUnschedulable", message: "were unschedulable",
		},
		{
			name:     "host port",
			scenario: kubejudge.Scenario{Nodes: nodes, Pods: pods(3, "proxy", hostPort(8080))},
			plan:     plan("proxy-0", "a1", "proxy-1", "a2", "proxy-2", "a1"),
			refused:  "proxy-2", plugin: "NodePorts", message: "didn't have free ports",
		},
		{
			name: "host network",
			scenario: kubejudge.Scenario{Nodes: nodes, Pods: pods(2, "proxy", func(p *corev1.Pod) {
				p.Spec.HostNetwork = true
				p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080}}
			})},
			plan:    plan("proxy-0", "a1", "proxy-1", "a1"),
			refused: "proxy-1", plugin: "NodePorts", message: "didn't have free ports",
		},
		{
			name:     "zone spread",
			scenario: kubejudge.Scenario{Nodes: nodes, Pods: pods(3, "web", spread(corev1.LabelTopologyZone))},
			plan:     plan("web-0", "a1", "web-1", "a2", "web-2", "b1"),
			refused:  "web-1", plugin: "PodTopologySpread", message: "topology spread constraints",
		},
		{
			name: "zone spread that counts running pods",
			scenario: kubejudge.Scenario{
				Nodes: nodes, Running: []*corev1.Pod{pod("old", "web", on("a1"))},
				Pods: pods(2, "web", spread(corev1.LabelTopologyZone)),
			},
			plan:    plan("web-0", "a2", "web-1", "b1"),
			refused: "web-0", plugin: "PodTopologySpread", message: "topology spread constraints",
		},
		{
			name: "zone spread that does not count the finished",
			scenario: kubejudge.Scenario{
				Nodes: nodes, Running: []*corev1.Pod{pod("old", "web", on("a1"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })},
				Pods: pods(2, "web", spread(corev1.LabelTopologyZone)),
			},
			plan: plan("web-0", "a2", "web-1", "b1"),
		},
		{
			name: "minDomains above the zones there are",
			scenario: kubejudge.Scenario{Nodes: nodes, Pods: pods(3, "web", spread(corev1.LabelTopologyZone, func(c *corev1.TopologySpreadConstraint) {
				c.MinDomains = ptr.To(int32(3))
			}))},
			plan:    plan("web-0", "a1", "web-1", "b1", "web-2", "a2"),
			refused: "web-2", plugin: "PodTopologySpread", message: "topology spread constraints",
		},
		{
			name: "spread by matchLabelKeys counts one version",
			scenario: kubejudge.Scenario{
				Nodes: nodes,
				Running: []*corev1.Pod{pod("v1", "web", on("b1"), func(p *corev1.Pod) {
					p.Labels["version"] = "1"
				})},
				Pods: pods(2, "web", func(p *corev1.Pod) { p.Labels["version"] = "2" }, spread(corev1.LabelTopologyZone, func(c *corev1.TopologySpreadConstraint) {
					c.MatchLabelKeys = []string{"version"}
				})),
			},
			plan:    plan("web-0", "b1", "web-1", "b2"),
			refused: "web-1", plugin: "PodTopologySpread", message: "topology spread constraints",
		},
		{
			name:     "affinity",
			scenario: kubejudge.Scenario{Nodes: nodes, Pods: concat(pods(1, "db"), pods(2, "web", near("db")))},
			plan:     plan("db-0", "a1", "web-0", "a2", "web-1", "b1"),
			refused:  "web-1", plugin: "InterPodAffinity", message: "pod affinity rules",
		},
		{
			name:     "self affinity: the first may go anywhere",
			scenario: kubejudge.Scenario{Nodes: nodes, Pods: pods(3, "web", near("web"))},
			plan:     plan("web-0", "b1", "web-1", "a1", "web-2", "b2"),
			refused:  "web-1", plugin: "InterPodAffinity", message: "pod affinity rules",
		},
		{
			name: "affinity by matchLabelKeys",
			scenario: kubejudge.Scenario{Nodes: nodes, Pods: []*corev1.Pod{
				pod("db-1", "db", func(p *corev1.Pod) { p.Labels["version"] = "1" }),
				pod("web-2", "web", func(p *corev1.Pod) { p.Labels["version"] = "2" }, near("db"), func(p *corev1.Pod) {
					p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].MatchLabelKeys = []string{"version"}
				}),
			}},
			plan:    plan("db-1", "a1", "web-2", "a1"),
			refused: "web-2", plugin: "InterPodAffinity", message: "pod affinity rules",
		},
		{
			name:     "anti-affinity",
			scenario: kubejudge.Scenario{Nodes: nodes, Pods: pods(3, "db", apart(corev1.LabelHostname, "db"))},
			plan:     plan("db-0", "a1", "db-1", "a2", "db-2", "a1"),
			refused:  "db-2", plugin: "InterPodAffinity", message: "anti-affinity rules",
		},
		{
			name: "anti-affinity of a running pod against a new one",
			scenario: kubejudge.Scenario{
				Nodes: nodes, Running: []*corev1.Pod{pod("loner", "loner", on("a1"), apart(corev1.LabelTopologyZone, "web"))},
				Pods: pods(2, "web"),
			},
			plan:    plan("web-0", "b1", "web-1", "a2"),
			refused: "web-1", plugin: "InterPodAffinity", message: "existing pods anti-affinity rules",
		},
		{
			name: "affinity by namespaceSelector",
			scenario: kubejudge.Scenario{
				Nodes:      nodes,
				Namespaces: []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "shop"}}}},
				Running: []*corev1.Pod{
					pod("db", "db", on("a1"), func(p *corev1.Pod) { p.Namespace = "shop" }),
					pod("other", "db", on("b1"), func(p *corev1.Pod) { p.Namespace = "else" }),
				},
				Pods: pods(2, "web", near("db"), func(p *corev1.Pod) {
					p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}
				}),
			},
			plan:    plan("web-0", "a2", "web-1", "b1"),
			refused: "web-1", plugin: "InterPodAffinity", message: "pod affinity rules",
		},
		{
			name: "bound volume in another zone",
			scenario: kubejudge.Scenario{
				Nodes: nodes, PVs: []*corev1.PersistentVolume{volume("in-a")}, PVCs: []*corev1.PersistentVolumeClaim{bound},
				StorageClasses: []*storagev1.StorageClass{manual}, Pods: pods(2, "db", mounts("bound")),
			},
			plan:    plan("db-0", "a1", "db-1", "b1"),
			refused: "db-1", plugin: "VolumeBinding", message: "didn't match PersistentVolume's node affinity",
		},
		{
			name: "a claim that waited is bound in the zone of the first pod",
			scenario: kubejudge.Scenario{
				Nodes: nodes, PVCs: []*corev1.PersistentVolumeClaim{claim("data", "waits")},
				StorageClasses: []*storagev1.StorageClass{waits}, Pods: pods(3, "db", mounts("data")),
			},
			plan:    plan("db-0", "a1", "db-1", "b1", "db-2", "a2"),
			refused: "db-1", plugin: "VolumeBinding", message: "didn't match PersistentVolume's node affinity",
		},
		{
			name: "the default class",
			scenario: kubejudge.Scenario{
				Nodes: nodes, PVCs: []*corev1.PersistentVolumeClaim{noClass},
				StorageClasses: []*storagev1.StorageClass{waits, fallback}, Pods: pods(2, "db", mounts("no-class")),
			},
			plan:    plan("db-0", "a1", "db-1", "b1"),
			refused: "db-1", plugin: "VolumeBinding", message: "didn't match PersistentVolume's node affinity",
		},
		{
			name: "a volume that somebody made can be taken once",
			scenario: kubejudge.Scenario{
				Nodes: nodes, PVs: []*corev1.PersistentVolume{volume("in-a")}, StorageClasses: []*storagev1.StorageClass{manual},
				PVCs: []*corev1.PersistentVolumeClaim{claim("one", "manual"), claim("two", "manual")},
				Pods: []*corev1.Pod{pod("db-0", "db", mounts("one")), pod("db-1", "db", mounts("two"))},
			},
			plan:    plan("db-0", "a1", "db-1", "a1"),
			refused: "db-1", plugin: "VolumeBinding", message: "didn't find available persistent volumes to bind",
		},
		{
			name: "allowedTopologies",
			scenario: kubejudge.Scenario{
				Nodes: nodes, StorageClasses: []*storagev1.StorageClass{inZoneB},
				PVCs: []*corev1.PersistentVolumeClaim{claim("one", "zone-b"), claim("two", "zone-b")},
				Pods: []*corev1.Pod{pod("db-0", "db", mounts("one")), pod("db-1", "db", mounts("two"))},
			},
			plan:    plan("db-0", "b1", "db-1", "a1"),
			refused: "db-1", plugin: "VolumeBinding", message: "didn't find available persistent volumes to bind",
		},
		{
			name: "an unbound claim that does not wait",
			scenario: kubejudge.Scenario{
				Nodes: nodes, PVCs: []*corev1.PersistentVolumeClaim{claim("data", "at-once")},
				StorageClasses: []*storagev1.StorageClass{atOnce}, Pods: pods(1, "db", mounts("data")),
			},
			plan:    plan("db-0", "a1"),
			refused: "db-0", plugin: "VolumeBinding", message: "unbound immediate PersistentVolumeClaims",
		},
		{
			name:     "a claim that does not exist",
			scenario: kubejudge.Scenario{Nodes: nodes, Pods: pods(1, "db", mounts("data"))},
			plan:     plan("db-0", "a1"),
			refused:  "db-0", plugin: "VolumeRestrictions", message: `persistentvolumeclaim "data" not found`,
		},
		{
			name: "devices by a claim",
			scenario: kubejudge.Scenario{Nodes: nodes, Pods: pods(1, "db", func(p *corev1.Pod) {
				p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "device", ResourceClaimName: new("device")}}
			})},
			plan:    plan("db-0", "a1"),
			refused: "db-0", plugin: "DynamicResources", message: "could not find ResourceClaim",
		},
		{
			name: "no storage capacity left",
			scenario: kubejudge.Scenario{
				Nodes: nodes, StorageClasses: []*storagev1.StorageClass{waits},
				CSIDrivers: []*storagev1.CSIDriver{{
					ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: storagev1.CSIDriverSpec{StorageCapacity: ptr.To(true)},
				}},
				CSICapacities: []*storagev1.CSIStorageCapacity{full, room},
				PVCs:          []*corev1.PersistentVolumeClaim{claim("one", "waits"), claim("two", "waits")},
				Pods:          []*corev1.Pod{pod("db-0", "db", mounts("one")), pod("db-1", "db", mounts("two"))},
			},
			plan:    plan("db-0", "b1", "db-1", "a1"),
			refused: "db-1", plugin: "VolumeBinding", message: "did not have enough free storage",
		},
		{
			name: "zone label of a volume",
			scenario: kubejudge.Scenario{
				Nodes: nodes, PVs: []*corev1.PersistentVolume{labelled}, PVCs: []*corev1.PersistentVolumeClaim{byLabel},
				StorageClasses: []*storagev1.StorageClass{manual}, Pods: pods(2, "db", mounts("by-label")),
			},
			plan:    plan("db-0", "a1", "db-1", "b1"),
			refused: "db-1", plugin: "VolumeZone", message: "no available volume zone",
		},
		{
			name: "ReadWriteOncePod",
			scenario: kubejudge.Scenario{
				Nodes: nodes, PVCs: []*corev1.PersistentVolumeClaim{once},
				StorageClasses: []*storagev1.StorageClass{waits}, Pods: pods(2, "db", mounts("once")),
			},
			plan:    plan("db-0", "a1", "db-1", "a1"),
			refused: "db-1", plugin: "VolumeRestrictions", message: "ReadWriteOncePod",
		},
		{
			name: "attach limit, counted over what was provisioned before",
			scenario: kubejudge.Scenario{
				Nodes: nodes, CSINodes: limits, StorageClasses: []*storagev1.StorageClass{waits},
				PVCs: []*corev1.PersistentVolumeClaim{claim("one", "waits"), claim("two", "waits"), claim("three", "waits")},
				Pods: []*corev1.Pod{pod("db-0", "db", mounts("one", "two")), pod("db-1", "db", mounts("one")), pod("db-2", "db", mounts("three"))},
			},
			plan:    plan("db-0", "a1", "db-1", "a1", "db-2", "a1"),
			refused: "db-2", plugin: "NodeVolumeLimits", message: "exceed max volume count",
		},
		{
			name: "attach limit of generic ephemeral volumes",
			scenario: kubejudge.Scenario{
				Nodes: nodes, CSINodes: limits, StorageClasses: []*storagev1.StorageClass{waits},
				Pods: pods(3, "sort", ephemeralVolume("waits")),
			},
			plan:    plan("sort-0", "a1", "sort-1", "a1", "sort-2", "a1"),
			refused: "sort-2", plugin: "NodeVolumeLimits", message: "exceed max volume count",
		},
		{
			name: "a pod being deleted is not spread over",
			scenario: kubejudge.Scenario{
				Nodes: nodes, Running: []*corev1.Pod{pod("old", "web", on("a1"), terminating)},
				Pods: pods(2, "web", spread(corev1.LabelTopologyZone)),
			},
			plan:    plan("web-0", "a1", "web-1", "a2"),
			refused: "web-1", plugin: "PodTopologySpread", message: "topology spread constraints",
		},
		{
			name: "a pod being deleted counts for affinity",
			scenario: kubejudge.Scenario{
				Nodes: nodes, Running: []*corev1.Pod{pod("db", "db", on("a1"), terminating)}, Pods: pods(2, "web", near("db")),
			},
			plan:    plan("web-0", "a2", "web-1", "b1"),
			refused: "web-1", plugin: "InterPodAffinity", message: "pod affinity rules",
		},
		{
			name: "a pod being deleted counts for anti-affinity",
			scenario: kubejudge.Scenario{
				Nodes: nodes, Running: []*corev1.Pod{pod("db", "db", on("a1"), terminating)},
				Pods: pods(2, "web", apart(corev1.LabelHostname, "db")),
			},
			plan:    plan("web-0", "a2", "web-1", "a1"),
			refused: "web-1", plugin: "InterPodAffinity", message: "pod anti-affinity rules",
		},
		{
			name: "anti-affinity of a pod being deleted",
			scenario: kubejudge.Scenario{
				Nodes: nodes, Running: []*corev1.Pod{pod("loner", "loner", on("a1"), terminating, apart(corev1.LabelTopologyZone, "web"))},
				Pods: pods(2, "web"),
			},
			plan:    plan("web-0", "b1", "web-1", "a2"),
			refused: "web-1", plugin: "InterPodAffinity", message: "existing pods anti-affinity rules",
		},
		{
			name: "several affinity terms: one pod must match them all",
			scenario: kubejudge.Scenario{
				Nodes: nodes, Running: []*corev1.Pod{pod("a", "a", on("a1")), pod("b", "b", on("a1")), pod("both", "a", on("b1"), func(p *corev1.Pod) { p.Labels["tier"] = "b" })},
				Pods: pods(2, "web", near("a"), func(p *corev1.Pod) {
					terms := &p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
					also := term(corev1.LabelTopologyZone, "b")
					also.LabelSelector.MatchLabels = map[string]string{"tier": "b"}
					*terms = append(*terms, also)
				}),
			},
			plan:    plan("web-0", "b2", "web-1", "a2"),
			refused: "web-1", plugin: "InterPodAffinity", message: "pod affinity rules",
		},
		{
			// PodTopologySpread counts no pod for an empty selector, though it matches every pod.
			name: "spread by an empty selector",
			scenario: kubejudge.Scenario{
				Nodes: nodes, Running: []*corev1.Pod{pod("db", "db", on("a1"))},
				Pods: pods(2, "web", spread(corev1.LabelTopologyZone, func(c *corev1.TopologySpreadConstraint) { c.LabelSelector = &metav1.LabelSelector{} })),
			},
			plan: plan("web-0", "a2", "web-1", "a1"),
		},
		{
			name: "spread by no selector",
			scenario: kubejudge.Scenario{
				Nodes: nodes,
				Pods:  pods(2, "web", spread(corev1.LabelTopologyZone, func(c *corev1.TopologySpreadConstraint) { c.LabelSelector = nil })),
			},
			plan: plan("web-0", "a1", "web-1", "a2"),
		},
		{
			name: "spread by several matchLabelKeys counts one combination",
			scenario: kubejudge.Scenario{
				Nodes: nodes,
				Running: []*corev1.Pod{
					pod("v1", "web", on("a1"), func(p *corev1.Pod) { p.Labels["version"], p.Labels["track"] = "1", "canary" }),
					pod("v2", "web", on("b1"), func(p *corev1.Pod) { p.Labels["version"], p.Labels["track"] = "2", "stable" }),
				},
				Pods: pods(2, "web", func(p *corev1.Pod) { p.Labels["version"], p.Labels["track"] = "2", "canary" }, spread(corev1.LabelTopologyZone, func(c *corev1.TopologySpreadConstraint) {
					c.MatchLabelKeys = []string{"version", "track"}
				})),
			},
			plan:    plan("web-0", "b1", "web-1", "b2"),
			refused: "web-1", plugin: "PodTopologySpread", message: "topology spread constraints",
		},
		{
			name: "another scheduler's",
			scenario: kubejudge.Scenario{Nodes: nodes, Pods: pods(1, "web", func(p *corev1.Pod) {
				p.Spec.SchedulerName = "other-scheduler"
			})},
			plan:    plan("web-0", "a1"),
			refused: "web-0", plugin: "SchedulerName", message: "other-scheduler",
		},
		{
			name: "gated",
			scenario: kubejudge.Scenario{Nodes: nodes, Pods: pods(1, "web", func(p *corev1.Pod) {
				p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}}
			})},
			plan:    plan("web-0", "a1"),
			refused: "web-0", plugin: "SchedulingGates", message: "waiting for scheduling gates",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := kubejudge.Judge(t.Context(), test.scenario, test.plan)
			require.NoError(t, err)
			if test.refused == "" {
				assert.True(t, got.Valid(), got.String())
				assert.Equal(t, test.plan, got.Accepted)
				return
			}
			require.Len(t, got.Refused, 1, got.String())
			assert.Equal(t, key(test.refused), got.Refused[0].Pod)
			assert.Equal(t, test.plugin, got.Refused[0].Plugin)
			assert.Contains(t, got.Refused[0].Message, test.message)
			assert.Equal(t, test.plan[got.Refused[0].Position], got.Refused[0].Binding)
			assert.Len(t, got.Accepted, len(test.plan)-1)
			assert.False(t, got.Valid())
		})
	}
}

func TestJudgeRunsInTheOrderOfThePlan(t *testing.T) {
	s := kubejudge.Scenario{
		Nodes: []*corev1.Node{node("a1", "a"), node("b1", "b")},
		Pods:  pods(4, "web", spread(corev1.LabelTopologyZone)),
	}
	good := plan("web-0", "a1", "web-1", "b1", "web-2", "a1", "web-3", "b1")
	got, err := kubejudge.Judge(t.Context(), s, good)
	require.NoError(t, err)
	assert.True(t, got.Valid(), got.String())

	// The same bindings, both of zone a first: the second is refused, and so the first of zone b is all that follows it.
	bad := plan("web-0", "a1", "web-2", "a1", "web-1", "b1", "web-3", "b1")
	got, err = kubejudge.Judge(t.Context(), s, bad)
	require.NoError(t, err)
	assert.False(t, got.Valid())
	assert.Equal(t, key("web-2"), got.Refused[0].Pod)

	// Round and round it is accepted, for the final state is right.
	got, err = kubejudge.JudgeAnyOrder(t.Context(), s, bad)
	require.NoError(t, err)
	assert.True(t, got.Valid(), got.String())
	assert.ElementsMatch(t, bad, got.Accepted)

	again, err := kubejudge.Judge(t.Context(), s, got.Accepted)
	require.NoError(t, err)
	assert.True(t, again.Valid(), "the order found is one that Judge accepts")
}

func TestJudgeAnyOrderTriesSeveralOrders(t *testing.T) {
	// With fewer zones than minDomains the owner must find its zone empty; the pod that it counts has no constraint. So
	// there is one order, and going round does not help whoever starts with the other.
	s := kubejudge.Scenario{
		Nodes: []*corev1.Node{node("a1", "a"), node("b1", "b")},
		Pods: []*corev1.Pod{
			pod("owner", "web", spread(corev1.LabelTopologyZone, func(c *corev1.TopologySpreadConstraint) { c.MinDomains = ptr.To(int32(3)) })),
			pod("counted", "web"),
		},
	}
	given := plan("counted", "a1", "owner", "a1")
	got, err := kubejudge.Judge(t.Context(), s, given)
	require.NoError(t, err)
	require.Len(t, got.Refused, 1)
	assert.Equal(t, key("owner"), got.Refused[0].Pod)

	got, err = kubejudge.JudgeAnyOrder(t.Context(), s, given)
	require.NoError(t, err)
	assert.True(t, got.Valid(), got.String())
	assert.Equal(t, plan("owner", "a1", "counted", "a1"), got.Accepted)
}

func TestJudgeAnyOrderKeepsTheBestOfWhatIsWrong(t *testing.T) {
	s := kubejudge.Scenario{Nodes: []*corev1.Node{node("a1", "a")}, Pods: concat(pods(1, "big", cpu("4")), pods(3, "web"))}
	got, err := kubejudge.JudgeAnyOrder(t.Context(), s, plan("big-0", "a1", "web-0", "a1", "web-1", "a1", "web-2", "a1"))
	require.NoError(t, err)
	require.Len(t, got.Refused, 1, got.String())
	assert.Equal(t, key("big-0"), got.Refused[0].Pod)
	assert.Equal(t, 0, got.Refused[0].Position)
	assert.InDelta(t, 0.75, got.Share(), 1e-9)
}

func TestJudgeReportsEveryMistakeOfAPlan(t *testing.T) {
	s := kubejudge.Scenario{Nodes: []*corev1.Node{node("a1", "a")}, Pods: pods(2, "web")}
	_, err := kubejudge.Judge(t.Context(), s, plan("web-0", "a1", "web-0", "a1", "web-9", "a1", "web-1", "a7"))
	require.Error(t, err)
	assert.Contains(t, err.Error(), `plan[1]: pod "default/web-0" is bound already by plan[0]`)
	assert.Contains(t, err.Error(), `plan[2]: no pod "default/web-9" among the scenario's pods (did you mean "default/web-0"?)`)
	assert.Contains(t, err.Error(), `plan[3]: pod "default/web-1": no node "a7" (did you mean "a1"?)`)

	s = kubejudge.Scenario{
		Nodes:   []*corev1.Node{node("a1", "a"), node("a1", "a")},
		Running: pods(1, "old"),
		Pods:    concat(pods(1, "web"), pods(1, "web", on("a1")), pods(1, "job", func(p *corev1.Pod) { p.Spec.PriorityClassName = "high" })),
	}
	_, err = kubejudge.Judge(t.Context(), s, nil)
	require.Error(t, err)
	assert.Contains(t, err.Error(), `nodes[1]: a second node "a1"`)
	assert.Contains(t, err.Error(), `running[0]: pod "default/old-0" has no spec.nodeName`)
	assert.Contains(t, err.Error(), `pods[1]: a second pod "default/web-0"`)

	s = kubejudge.Scenario{Pods: pods(1, "job", func(p *corev1.Pod) { p.Spec.PriorityClassName = "high" })}
	_, err = kubejudge.Judge(t.Context(), s, nil)
	require.ErrorContains(t, err, `pod "default/job-0": no PriorityClass "high"`)
}

func TestJudgeStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := kubejudge.Scenario{Nodes: []*corev1.Node{node("a1", "a")}, Pods: pods(1, "web")}
	_, err := kubejudge.Judge(ctx, s, plan("web-0", "a1"))
	require.ErrorIs(t, err, context.Canceled)
}
