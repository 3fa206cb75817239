package kubejudge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

// judged reports whether a plugin of the default profile takes part. The last five filter nothing:
// they sort, bind and score, and the framework or the free mode wants them.
func judged(plugin string) bool {
	switch plugin {
	case names.SchedulingGates,
		names.NodeUnschedulable, names.NodeName, names.TaintToleration, names.NodeAffinity, names.NodePorts,
		names.NodeResourcesFit, names.VolumeRestrictions, names.NodeVolumeLimits, names.VolumeBinding, names.VolumeZone,
		names.PodTopologySpread, names.InterPodAffinity, names.NodeDeclaredFeatures, names.DynamicResources,
		names.PrioritySort, names.DefaultBinder, names.NodeResourcesBalancedAllocation, names.ImageLocality:
		return true
	}
	return false
}

// cluster is a scenario with a scheduler in it. It is used by one goroutine.
type cluster struct {
	snapshot  *snapshot
	nominated *nominator
	framework framework.Framework
	pods      map[types.NamespacedName]*corev1.Pod // admitted, not yet bound
	cancel    context.CancelFunc
	// done is a context that is over: with it the volume binder makes its updates, which are
	// answered at once, and does not wait a second for controllers that have already acted.
	done context.Context
}

// newCluster builds the plugins once; pods are then bound one by one. close must be called.
func newCluster(ctx context.Context, s *Scenario) (*cluster, error) {
	if err := s.validate(); err != nil {
		return nil, fmt.Errorf("kubejudge: %w", err)
	}
	metrics.Register() // the framework counts into vectors that are nil until then; once in a process

	api := &client{}
	factory := informers.NewSharedInformerFactory(api, 0)
	volumes, err := newVolumes(factory, s)
	if err != nil {
		return nil, fmt.Errorf("kubejudge: %w", err)
	}
	api.volumes = volumes
	c := &cluster{snapshot: newSnapshot(s.Nodes), nominated: &nominator{byNode: map[string][]fwk.PodInfo{}}, pods: make(map[types.NamespacedName]*corev1.Pod, len(s.Pods))}
	if err := c.fill(ctx, s, factory, volumes); err != nil {
		return nil, fmt.Errorf("kubejudge: %w", err)
	}

	defaults, err := latest.Default()
	if err != nil {
		return nil, fmt.Errorf("kubejudge: %w", err)
	}
	profile := defaults.Profiles[0].DeepCopy()
	multi := &profile.Plugins.MultiPoint
	multi.Enabled = slices.DeleteFunc(multi.Enabled, func(p config.Plugin) bool { return !judged(p.Name) })

	if len(s.DefaultConstraints) > 0 {
		for _, plugin := range profile.PluginConfig {
			if args, ok := plugin.Args.(*config.PodTopologySpreadArgs); ok {
				args.DefaultConstraints, args.DefaultingType = s.DefaultConstraints, config.ListDefaulting
			}
		}
	}

	var running context.Context
	running, c.cancel = context.WithCancel(klog.NewContext(ctx, logr.Discard()))
	devices, err := deviceManager(running, factory)
	if err != nil {
		c.cancel()
		return nil, fmt.Errorf("kubejudge: %w", err)
	}
	c.framework, err = runtime.NewFramework(running, plugins.NewInTreeRegistry(), profile,
		runtime.WithClientSet(api),
		runtime.WithInformerFactory(factory),
		runtime.WithSnapshotSharedLister(c.snapshot),
		runtime.WithPodNominator(c.nominated),
		runtime.WithSharedDRAManager(devices),
		runtime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())),
		runtime.WithParallelism(2),
		runtime.WithLogger(logr.Discard()),
	)
	if err != nil {
		c.cancel()
		return nil, fmt.Errorf("kubejudge: %w", err)
	}
	var over context.CancelFunc
	c.done, over = context.WithCancel(running)
	over()
	return c, nil
}

// deviceManager is what DynamicResources knows: no device, class or claim, for a scenario has none.
// A pod that asks for a claim is refused.
func deviceManager(ctx context.Context, factory informers.SharedInformerFactory) (*dynamicresources.DefaultDRAManager, error) {
	slices, err := tracker.StartTracker(ctx, tracker.Options{SliceInformer: factory.Resource().V1().ResourceSlices()})
	if err != nil {
		return nil, err
	}
	claims := assumecache.NewAssumeCache(logr.Discard(), factory.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil)
	return dynamicresources.NewDRAManager(ctx, claims, slices, factory), nil
}

// fill admits the pods and puts every object where the plugins' listers look for it.
func (c *cluster) fill(ctx context.Context, s *Scenario, factory informers.SharedInformerFactory, volumes *volumes) error {
	var errs []error
	add := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	nodes := factory.Core().V1().Nodes().Informer().GetIndexer()
	for _, n := range s.Nodes {
		add(nodes.Add(n))
	}
	csiNodes := factory.Storage().V1().CSINodes().Informer().GetIndexer()
	for _, n := range s.CSINodes {
		add(csiNodes.Add(n))
	}
	drivers := factory.Storage().V1().CSIDrivers().Informer().GetIndexer()
	for _, d := range s.CSIDrivers {
		add(drivers.Add(d))
	}
	capacities := factory.Storage().V1().CSIStorageCapacities().Informer().GetIndexer()
	for _, o := range s.CSICapacities {
		add(capacities.Add(o))
	}
	attachments := factory.Storage().V1().VolumeAttachments().Informer().GetIndexer()
	for _, a := range s.VolumeAttachments {
		add(attachments.Add(a))
	}

	services := factory.Core().V1().Services().Informer().GetIndexer()
	for _, o := range s.Services {
		add(services.Add(o))
	}
	controllers := factory.Core().V1().ReplicationControllers().Informer().GetIndexer()
	for _, o := range s.ReplicationControllers {
		add(controllers.Add(o))
	}
	replicaSets := factory.Apps().V1().ReplicaSets().Informer().GetIndexer()
	for _, o := range s.ReplicaSets {
		add(replicaSets.Add(o))
	}
	statefulSets := factory.Apps().V1().StatefulSets().Informer().GetIndexer()
	for _, o := range s.StatefulSets {
		add(statefulSets.Add(o))
	}

	admission := newAdmission(s)
	namespaces := map[string]*corev1.Namespace{}
	admit := func(in *corev1.Pod) *corev1.Pod {
		pod, err := admission.admit(ctx, in)
		if err != nil {
			add(err)
			return nil
		}
		add(volumes.addEphemeral(pod))
		namespaces[pod.Namespace] = nil
		return pod
	}
	for _, in := range s.Running {
		if in.Status.Phase == corev1.PodSucceeded || in.Status.Phase == corev1.PodFailed {
			continue
		}
		if pod := admit(in); pod != nil {
			err := c.snapshot.add(pod)
			add(err)
		}
	}
	for _, in := range s.Pods {
		if pod := admit(in); pod != nil {
			c.pods[nameOf(pod)] = pod
			add(c.nominated.add(pod))
		}
	}

	for _, n := range s.Namespaces {
		namespaces[n.Name] = n
	}
	indexer := factory.Core().V1().Namespaces().Informer().GetIndexer()
	for name, in := range namespaces {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if in != nil {
			ns = in.DeepCopy()
		}
		// Every namespace has this label, whoever wrote it.
		metav1.SetMetaDataLabel(&ns.ObjectMeta, corev1.LabelMetadataName, name)
		add(indexer.Add(ns))
	}
	return errors.Join(errs...)
}

func (c *cluster) close() error {
	err := c.framework.Close()
	// The framework's metrics recorder ends by itself within a second; to wait for it would cost
	// that second.
	c.cancel()
	return err
}

// preFilter runs all that comes before a node is looked at. A status that is not nil refuses the
// pod on every node.
func (c *cluster) preFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod) (*fwk.PreFilterResult, *fwk.Status) {
	if name := pod.Spec.SchedulerName; name != corev1.DefaultSchedulerName {
		// Not a plugin's word: kube-scheduler queues no pod for which it has no profile.
		return nil, fwk.NewStatus(fwk.Unschedulable, fmt.Sprintf("the pod waits for scheduler %q", name)).WithPlugin("SchedulerName")
	}
	if pod.DeletionTimestamp != nil {
		// Nor this: kube-scheduler skips a pod that is being deleted (Scheduler.skipPodSchedule).
		return nil, fwk.NewStatus(fwk.Unschedulable, "the pod is being deleted").WithPlugin("Deleting")
	}
	for _, p := range c.framework.PreEnqueuePlugins() {
		if status := p.PreEnqueue(ctx, pod); !status.IsSuccess() {
			return nil, status.WithPlugin(p.Name())
		}
	}
	result, status, by := c.framework.RunPreFilterPlugins(ctx, state, pod)
	if status.IsSuccess() && result.AllNodes() {
		return result, nil
	}
	if !status.IsSuccess() && status.Plugin() != "" {
		return result, status
	}
	// The plugins that asked for certain nodes are named, for PreFilterResult itself does not say
	// who.
	who := strings.Join(sets.List(by), "+")
	if !status.IsSuccess() {
		return result, status.WithPlugin(who)
	}
	return result, fwk.NewStatus(fwk.Success).WithPlugin(who)
}

// bind binds one pod to one node, or says why not. An error means that the judge failed, not that
// the bind is refused.
func (c *cluster) bind(ctx context.Context, key types.NamespacedName, node string) (*fwk.Status, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx = klog.NewContext(ctx, logr.Discard())
	pod, info := c.pods[key], c.snapshot.byName[node]
	state := framework.NewCycleState()
	result, status := c.preFilter(ctx, state, pod)
	if !status.IsSuccess() {
		return status, nil
	}
	if !result.AllNodes() && !result.NodeNames.Has(node) {
		return fwk.NewStatus(fwk.Unschedulable, "PreFilter leaves only other nodes").WithPlugin(status.Plugin()), nil
	}
	if status := c.filter(ctx, state, pod, info); !status.IsSuccess() {
		return status, nil
	}
	return c.commit(ctx, state, pod, node)
}

// filter says whether the node takes the pod, beside those that are nominated to the node and of no
// lower priority. Daemons were there before these.
func (c *cluster) filter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && owner.Kind == "DaemonSet" {
		return c.framework.RunFilterPlugins(ctx, state, pod, info)
	}
	return c.framework.RunFilterPluginsWithNominatedPods(ctx, state, pod, info)
}

// commit reserves, binds volumes and makes the pod part of the snapshot.
func (c *cluster) commit(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) (*fwk.Status, error) {
	assumed := pod.DeepCopy()
	assumed.Spec.NodeName = node
	if status := c.framework.RunReservePluginsReserve(ctx, state, assumed, node); !status.IsSuccess() {
		c.framework.RunReservePluginsUnreserve(ctx, state, assumed, node)
		return status, nil
	}
	status := c.framework.RunPreBindPlugins(c.done, state, assumed, node)
	if err := status.AsError(); err != nil && !errors.Is(err, context.Canceled) {
		c.framework.RunReservePluginsUnreserve(ctx, state, assumed, node)
		return status, nil
	}
	if err := c.snapshot.add(assumed); err != nil {
		return nil, fmt.Errorf("kubejudge: %w", err)
	}
	delete(c.pods, nameOf(pod))
	c.nominated.drop(pod)
	return nil, nil
}
