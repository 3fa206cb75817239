package manifests

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/joinery-sdk/joinery/examples/pipeline/manifests/internal/quota"
	"github.com/joinery-sdk/joinery/internal/strictjson"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/buffer"
	"github.com/joinery-sdk/joinery/scheduling/capacityquota"
	"github.com/joinery-sdk/joinery/scheduling/gang"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/nodeclaim"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/overlay"
)

// builder combines the results in the order of the input.
type builder struct {
	snapshot    *Snapshot
	problems    []*Problem
	others      map[string]int
	newer       map[string]int      // fields that only a newer version knows, by kind and path
	makers      map[string][]string // those of the others whose objects create pods, and the paths to their templates
	controllers []controller
	cronJobs    []*batchv1.CronJob
	templates   map[identity]*corev1.PodTemplate
	hooks       []string // left out
	looked      []look
	scalers     map[identity]scaler
	ceilings    map[identity]ceiling
}

func (b *builder) fail(id identity, path, format string, args ...any) {
	b.problems = append(b.problems, &Problem{Position: b.snapshot.positions[id], Object: id.String(), Path: path, Detail: fmt.Sprintf(format, args...)})
}

func (b *builder) add(r *result) {
	b.problems = append(b.problems, r.problems...)
	for _, kind := range r.others {
		b.others[kind]++
	}
	for _, field := range r.newer {
		b.newer[field]++
	}
	for _, m := range r.makers {
		paths := slices.Concat(b.makers[m.kind], m.paths)
		slices.Sort(paths)
		b.makers[m.kind] = slices.Compact(paths)
	}
	b.looked = append(b.looked, r.looked...)
	for _, x := range r.scalers {
		b.scalers[x.id] = x
	}
	for _, x := range r.ceilings {
		b.ceilings[x.id] = x
	}
	for _, o := range r.objects {
		b.name(&o)
		if first, ok := b.snapshot.positions[o.id]; ok {
			b.problems = append(b.problems, &Problem{Position: o.position, Object: o.id.String(), Path: "metadata.name", Detail: "the object is given twice, first at " + first.String()})
			continue
		}
		b.snapshot.positions[o.id] = o.position
		if m, ok := o.value.(metav1.Object); ok && leftOut(m) {
			b.hooks = append(b.hooks, o.id.String())
			continue
		}
		b.file(o)
	}
}

// name completes a generated name, as an API server does, but always in the same way.
func (b *builder) name(o *object) {
	m, ok := o.value.(metav1.Object)
	if !ok || o.id.name != "" || m.GetGenerateName() == "" {
		return
	}
	for n := 0; ; n++ {
		o.id.name = fmt.Sprint(m.GetGenerateName(), n)
		if _, taken := b.snapshot.positions[o.id]; !taken {
			m.SetName(o.id.name)
			return
		}
	}
}

// leftOut reports whether the object is a hook that runs only for helm test, delete or rollback.
func leftOut(o metav1.Object) bool {
	text, hooked := o.GetAnnotations()["helm.sh/hook"]
	always := false
	for hook := range strings.SplitSeq(text, ",") {
		switch strings.TrimSpace(hook) {
		case "test", "test-success", "test-failure":
			return true
		case "pre-delete", "post-delete", "pre-rollback", "post-rollback":
		default:
			always = true
		}
	}
	return hooked && !always
}

// file adds an object to its list.
func (b *builder) file(o object) {
	s := b.snapshot
	switch v := o.value.(type) {
	case *corev1.Pod:
		s.Pods = append(s.Pods, v)
	case *corev1.Node:
		s.Nodes = append(s.Nodes, v)
	case *corev1.Namespace:
		s.Namespaces = append(s.Namespaces, v)
	case *corev1.LimitRange:
		s.LimitRanges = append(s.LimitRanges, v)
	case *corev1.PersistentVolume:
		s.PersistentVolumes = append(s.PersistentVolumes, v)
	case *corev1.PersistentVolumeClaim:
		s.PersistentVolumeClaims = append(s.PersistentVolumeClaims, v)
	case *corev1.ConfigMap:
		s.Settings = v.Data
	case *appsv1.DaemonSet:
		s.DaemonSets = append(s.DaemonSets, v)
	case *storagev1.StorageClass:
		s.StorageClasses = append(s.StorageClasses, v)
	case *storagev1.CSINode:
		s.CSINodes = append(s.CSINodes, v)
	case *storagev1.CSIDriver:
		s.CSIDrivers = append(s.CSIDrivers, v)
	case *storagev1.VolumeAttachment:
		s.VolumeAttachments = append(s.VolumeAttachments, v)
	case *storagev1.CSIStorageCapacity:
		s.CSIStorageCapacities = append(s.CSIStorageCapacities, v)
	case *policyv1.PodDisruptionBudget:
		s.PodDisruptionBudgets = append(s.PodDisruptionBudgets, v)
	case *schedulingv1.PriorityClass:
		s.PriorityClasses = append(s.PriorityClasses, v)
	case *nodev1.RuntimeClass:
		s.RuntimeClasses = append(s.RuntimeClasses, v)
	case nodepool.NodePool:
		s.NodePools = append(s.NodePools, v)
	case nodeclaim.NodeClaim:
		s.NodeClaims = append(s.NodeClaims, v)
	case overlay.NodeOverlay:
		s.NodeOverlays = append(s.NodeOverlays, v)
	case gang.PodGroup:
		s.PodGroups = append(s.PodGroups, v)
	case buffer.Buffer:
		v.Namespace = o.id.namespace
		s.Buffers = append(s.Buffers, Buffer{Buffer: v})
	case capacityquota.Quota:
		s.Quotas = append(s.Quotas, v)
	case *corev1.PodTemplate:
		b.templates[o.id] = v
	case NodeClass:
		v.Kind, v.Name, v.Position = o.id.kind, o.id.name, o.position
		s.NodeClasses = append(s.NodeClasses, v)
	case *batchv1.CronJob:
		b.cronJobs = append(b.cronJobs, v)
	case *corev1.Service:
		s.Defaults.Services = append(s.Defaults.Services, v)
	default:
		b.controllers = append(b.controllers, controllerOf(o))
		b.selecting(o.value)
	}
}

// selecting records a controller with a selector, for pods that get default constraints.
func (b *builder) selecting(controller any) {
	d := &b.snapshot.Defaults
	switch c := controller.(type) {
	case *corev1.ReplicationController:
		d.ReplicationControllers = append(d.ReplicationControllers, c)
	case *appsv1.ReplicaSet:
		d.ReplicaSets = append(d.ReplicaSets, c)
	case *appsv1.StatefulSet:
		d.StatefulSets = append(d.StatefulSets, c)
	case *appsv1.Deployment:
		d.Deployments = append(d.Deployments, c)
	}
}

// finish sorts, expands controllers, and checks references between objects.
func (b *builder) finish(o *Options) {
	s := b.snapshot
	sortObjects(s.Pods)
	sortObjects(s.Nodes)
	sortObjects(s.Namespaces)
	sortObjects(s.LimitRanges)
	sortObjects(s.PersistentVolumes)
	sortObjects(s.PersistentVolumeClaims)
	sortObjects(s.DaemonSets)
	sortObjects(s.StorageClasses)
	sortObjects(s.CSINodes)
	sortObjects(s.CSIDrivers)
	sortObjects(s.VolumeAttachments)
	sortObjects(s.CSIStorageCapacities)
	sortObjects(s.PodDisruptionBudgets)
	sortObjects(s.PriorityClasses)
	sortObjects(s.RuntimeClasses)
	slices.SortFunc(s.NodePools, func(a, b nodepool.NodePool) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	slices.SortFunc(s.NodeClaims, func(a, b nodeclaim.NodeClaim) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	slices.SortFunc(s.NodeOverlays, func(a, b overlay.NodeOverlay) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Quotas, func(a, b capacityquota.Quota) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(s.PodGroups, func(a, b gang.PodGroup) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.API, b.API))
	})
	slices.SortFunc(s.NodeClasses, func(a, b NodeClass) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	for _, own := range o.Buffers {
		s.Buffers = append(s.Buffers, Buffer{Buffer: own})
	}
	slices.SortStableFunc(s.Buffers, func(a, b Buffer) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	b.scale()
	b.expand(cmp.Or(o.MaxPods, MaxPods))
	b.fill(cmp.Or(o.MaxPods, MaxPods))
	b.refer(o.Assume)
	b.skipped()
	b.lacking()
	b.suspended()
	b.quotas()
	if len(b.hooks) > 0 {
		s.note("left out %s, which only helm test, delete or rollback runs: %s", plural(len(b.hooks), "hook", "hooks"), strings.Join(b.hooks, ", "))
	}
}

func sortObjects[T metav1.Object](list []T) {
	slices.SortFunc(list, func(a, b T) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
}

// counts returns names with their counts, sorted by name, and the sum. After the twelfth it says
// how many more there are.
func counts(of map[string]int, more string) (text string, total int) {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		total += of[name]
		parts = append(parts, fmt.Sprintf("%s %d", name, of[name]))
	}
	const most = 12
	if n := len(parts) - most; n > 0 {
		parts = append(parts[:most], fmt.Sprintf("and %d more %s", n, more))
	}
	return strings.Join(parts, ", "), total
}

// skipped notes the kinds that planning ignores, in one line, and the fields, in another.
func (b *builder) skipped() {
	if text, total := counts(b.others, "kinds"); total > 0 {
		b.snapshot.note("skipped %s of other kinds: %s", plural(total, "object", "objects"), text)
	}
	if text, total := counts(b.newer, "fields"); total > 0 {
		b.snapshot.note("fields that this version does not know are not read: %s", text)
	}
	b.pods()
	unselected := 0
	for _, c := range b.controllers {
		if c.apiVersion == "apps/v1" && !c.selector {
			unselected++
		}
	}
	if unselected > 0 {
		b.snapshot.note("%s no spec.selector, which a cluster requires", plural(unselected, "controller has", "controllers have"))
	}
}

// ceiling is a ResourceQuota.
type ceiling struct {
	id   identity
	spec corev1.ResourceQuotaSpec
}

// ceilingOf reads a ResourceQuota, or returns false if it cannot.
func ceilingOf(n *strictjson.Node, id identity) (ceiling, bool) {
	var q corev1.ResourceQuota
	err := json.Unmarshal(n.Raw(), &q)
	return ceiling{id, q.Spec}, err == nil
}

// quotas notes the ResourceQuotas, which no plan counts, and those that refuse pods of the input.
func (b *builder) quotas() {
	type counted struct {
		pod   *corev1.Pod
		usage quota.Usage
		n     int
		fresh bool // no API server has stored it
	}
	pods := map[string][]counted{} // by namespace
	for id := range b.ceilings {
		pods[id.namespace] = []counted{}
	}
	with := scheduling.Snapshot{LimitRanges: b.snapshot.LimitRanges, RuntimeClasses: b.snapshot.RuntimeClasses, PriorityClasses: b.snapshot.PriorityClasses}
	add := func(namespace string, p *corev1.Pod, n int) {
		if in, limited := pods[namespace]; limited {
			admitted := quota.Admitted(p, with)
			pods[namespace] = append(in, counted{admitted, quota.Of(admitted), n, p.UID == "" && p.Spec.NodeName == ""})
		}
	}
	for _, p := range b.snapshot.Pods {
		add(p.Namespace, p, 1)
	}
	for i := range b.snapshot.Workloads {
		w := &b.snapshot.Workloads[i]
		add(w.Namespace, w.Template, w.Len())
	}
	var kept, unread []string
	for _, id := range sortedIDs(b.ceilings) {
		spec := b.ceilings[id].spec
		used, fresh, lacking := quota.Usage{}, quota.Usage{}, map[corev1.ResourceName]int{}
		for _, name := range quota.UnknownScopes(&spec) {
			unread = append(unread, fmt.Sprintf("%s of %s/%s", name, id.namespace, id.name))
		}
		for _, c := range pods[id.namespace] {
			if !quota.Covers(&spec, c.pod) {
				continue
			}
			if used.Add(c.usage, c.n); c.fresh {
				fresh.Add(c.usage, c.n)
				for _, name := range quota.Lacks(c.pod, spec.Hard) {
					lacking[name] += c.n
				}
			}
		}
		why := used.Over(fresh, spec.Hard)
		for _, name := range slices.Sorted(maps.Keys(lacking)) {
			why = append(why, fmt.Sprintf("%s without %s, which the quota makes compulsory", plural(lacking[name], "pod", "pods"), name))
		}
		if len(why) == 0 {
			kept = append(kept, id.namespace+"/"+id.name)
			continue
		}
		b.snapshot.note("%s refuses some of the pods that are planned, because plans do not count quotas: %s", id, strings.Join(why, ", "))
	}
	if len(kept) > 0 {
		b.snapshot.note("%s not counted: %s", plural(len(kept), "ResourceQuota is", "ResourceQuotas are"), few(kept, ", "))
	}
	if len(unread) > 0 {
		b.snapshot.note("it is not known which pods these scopes of ResourceQuotas mean: %s", few(unread, ", "))
	}
}

func sortedIDs[T any](of map[identity]T) []identity {
	return slices.SortedFunc(maps.Keys(of), func(a, b identity) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
}

// few joins a list, with the number of those after the third.
func few(list []string, between string) string {
	const most = 3
	if n := len(list) - most; n > 0 {
		list = append(slices.Clone(list[:most]), fmt.Sprintf("and %d more", n))
	}
	return strings.Join(list, between)
}

func labelSet(m map[string]string) labels.Set { return m }

func labelText(m map[string]string) string {
	if len(m) == 0 {
		return "none"
	}
	return labels.Set(m).String()
}
