package replay_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/gangscheduling"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/gang"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// quorum is what kube-scheduler's plugin for gangs asks of the scheduler: the PodGroups, and which of their pods are scheduled.
type quorum struct {
	fwk.Handle
	objects objects // the PodGroups, as this version of the plugin reads them
	groups  map[string]*members
	waiting map[types.UID]*waitingPod // at the stage Permit
}

func (q *quorum) Activate(klog.Logger, map[string]*corev1.Pod) {}
func (q *quorum) GetWaitingPod(uid types.UID) fwk.WaitingPod {
	if w, ok := q.waiting[uid]; ok {
		return w
	}
	return nil
}

// states are the pods of the groups.
type states struct{ q *quorum }

func (s states) Get(_, name string) (fwk.PodGroupState, error) {
	if g, ok := s.q.groups[name]; ok {
		return g, nil
	}
	return nil, fmt.Errorf("no pod group %s", name)
}

// members are the pods of a group.
type members struct {
	fwk.PodGroupState
	all, scheduled int
	assumed        sets.Set[types.UID]
}

func (m *members) AllPodsCount() int                       { return m.all }
func (m *members) ScheduledPodsCount() int                 { return m.scheduled }
func (m *members) UnscheduledPods() map[string]*corev1.Pod { return nil }
func (m *members) AssumedPods() sets.Set[types.UID]        { return m.assumed }

type waitingPod struct {
	fwk.WaitingPod
	q   *quorum
	uid types.UID
}

func (w *waitingPod) Allow(string) { delete(w.q.waiting, w.uid) }

// letRun has kube-scheduler's plugin for gangs admit the placed pods of a plan one after the other, those that replace pods of leaving nodes
// included, which have ended by then: its cache drops pods that have succeeded or failed (its informer selects the others) or are gone. The error
// names the groups of which a pod is not let into the queue, or waits for others for ever.
func letRun(ctx context.Context, p *plan.Plan, groups []gang.Group) error {
	q := &quorum{objects: newObjects(), groups: map[string]*members{}, waiting: map[types.UID]*waitingPod{}}
	for i, g := range groups {
		m := &members{assumed: sets.New[types.UID]()}
		for _, pod := range p.Problem.Snapshot().Pods {
			if !g.Member(pod) {
				continue
			}
			switch standingOf(p, pod) {
			case remains:
				m.all, m.scheduled = m.all+1, m.scheduled+1
			case moves, pends:
				m.all++
			}
		}
		name, minimum := fmt.Sprintf("group-%d", i), m.all
		if g.Minimum > 0 {
			minimum = g.Minimum
		}
		q.groups[name] = m
		if err := q.objects.add(name, int32(minimum)); err != nil { //nolint:gosec // some pods
			return err
		}
	}
	plugin, err := gangscheduling.New(ctx, nil, q, feature.Features{})
	if err != nil {
		return err
	}
	for n, b := range p.Bindings() {
		at := -1
		for i := range groups {
			if groups[i].Member(b.Pod) {
				at = i
				break
			}
		}
		if at < 0 {
			continue
		}
		name := fmt.Sprintf("group-%d", at)
		pod := b.Pod.DeepCopy()
		pod.Namespace, pod.UID, pod.Spec.SchedulingGroup = metav1.NamespaceDefault, types.UID(fmt.Sprint("pod-", n)), &corev1.PodSchedulingGroup{PodGroupName: &name}
		if status := plugin.(fwk.PreEnqueuePlugin).PreEnqueue(ctx, pod); !status.IsSuccess() {
			return fmt.Errorf("group %s: %s is not let into the queue: %w", groups[at].Name, b.Pod.Name, status.AsError())
		}
		m := q.groups[name]
		m.scheduled++
		m.assumed.Insert(pod.UID)
		status, _ := plugin.(fwk.PermitPlugin).Permit(ctx, framework.NewCycleState(), pod, b.Node)
		switch {
		case status.Code() == fwk.Wait:
			q.waiting[pod.UID] = &waitingPod{q: q, uid: pod.UID}
		case !status.IsSuccess():
			return fmt.Errorf("group %s: %s is not permitted: %w", groups[at].Name, b.Pod.Name, status.AsError())
		}
	}
	if len(q.waiting) > 0 {
		return errors.New("pods wait for ever for others of their group")
	}
	return nil
}

// The judge itself: a group of which less than its minimum is bound waits for ever.
func TestQuorum(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	two := corev1.ResourceList{"cpu": resource.MustParse("2"), "pods": resource.MustParse("20")}
	s := scheduling.Snapshot{Pools: []scheduling.Pool{{NodePool: nodepool.NodePool{Name: "p", Limits: two}, Types: []instancetypes.InstanceType{{
		Name: "t", Requirements: requirements.MustParse("node.kubernetes.io/instance-type=t"), Capacity: two,
		Offerings: []instancetypes.Offering{{Price: 1, Available: true, Requirements: requirements.MustParse("topology.kubernetes.io/zone=a")}},
	}}}}}
	for i := range 4 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: fmt.Sprint("p-", i)}}
		pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}
		s.Pods = append(s.Pods, pod)
	}
	p, err := plan.Make(ctx, s, nil)
	require.NoError(t, err)
	require.Len(t, p.Bindings(), 2)
	all := gang.Group{Name: "g", Member: func(*corev1.Pod) bool { return true }}
	require.ErrorContains(t, letRun(ctx, p, []gang.Group{all}), "wait for ever")
	all.Minimum = 2
	require.NoError(t, letRun(ctx, p, []gang.Group{all}))
	all.Minimum = 5
	require.ErrorContains(t, letRun(ctx, p, []gang.Group{all}), "is not let into the queue")
}
