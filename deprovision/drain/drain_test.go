package drain_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/deprovision/drain"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
)

func now() time.Time { return time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC) }

func pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": "web"}}}
	for _, c := range change {
		c(p)
	}
	return p
}

func daemon(p *corev1.Pod) {
	yes := true
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "d", Controller: &yes}}
	p.Labels = nil
}

func critical(p *corev1.Pod) { p.Spec.PriorityClassName, p.Labels = "system-cluster-critical", nil }

func grace(seconds int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = &seconds }
}

func budgets(allowed int32) eviction.Budgets {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	b.Status.ExpectedPods, b.Status.DisruptionsAllowed = 1, allowed
	return eviction.NewBudgets([]*policyv1.PodDisruptionBudget{b})
}

func names(pods []*corev1.Pod) []string {
	var out []string
	for _, p := range pods {
		out = append(out, p.Name)
	}
	return out
}

func TestTiersGoOneAfterTheOther(t *testing.T) {
	pods := []*corev1.Pod{pod("cd", critical, daemon), pod("c", critical), pod("d", daemon), pod("b"), pod("a")}
	pods[0].Spec.PriorityClassName = "system-node-critical"
	p := drain.Of(pods, eviction.Budgets{}, now(), time.Time{})
	var order []string
	for _, s := range p.Steps {
		order = append(order, s.Pod.Name+" "+s.Tier.String())
	}
	assert.Equal(t, []string{"a ordinary", "b ordinary", "d daemon", "c critical", "cd critical daemon"}, order)
	assert.Equal(t, []string{"a", "b"}, names(p.Now()))
	assert.Equal(t, "pods of tier ordinary go first", p.Steps[2].Wait)
	left := drain.Of(pods[:3], eviction.Budgets{}, now(), time.Time{})
	assert.Equal(t, []string{"d"}, names(left.Now()))
}

func TestBudgetsAreTakenOneByOne(t *testing.T) {
	pods := []*corev1.Pod{pod("a"), pod("b"), pod("c")}
	p := drain.Of(pods, budgets(2), now(), time.Time{})
	assert.Equal(t, []string{"a", "b"}, names(p.Now()))
	assert.Equal(t, "PodDisruptionBudget shop/web allows no more at the same time", p.Steps[2].Wait)
	assert.Empty(t, drain.Of(pods, budgets(0), now(), time.Time{}).Now())
}

func TestProtectedWaitForForce(t *testing.T) {
	p := pod("a", grace(600))
	p.Annotations = map[string]string{eviction.DoNotDisrupt: "true"}
	quiet := drain.Of([]*corev1.Pod{p}, eviction.Budgets{}, now(), time.Time{})
	require.Len(t, quiet.Steps, 1)
	assert.True(t, quiet.Steps[0].Never)
	assert.Empty(t, quiet.Forced)
	assert.Empty(t, drain.Of([]*corev1.Pod{p}, eviction.Budgets{}, now(), now().Add(11*time.Minute)).Forced, "it still has time")
	forced := drain.Of([]*corev1.Pod{p}, eviction.Budgets{}, now(), now().Add(9*time.Minute)).Forced
	assert.Equal(t, []drain.Forced{{Pod: p, Grace: 9 * time.Minute}}, forced)
	late := drain.Of([]*corev1.Pod{p}, eviction.Budgets{}, now(), now().Add(-time.Hour)).Forced
	assert.Equal(t, time.Second, late[0].Grace, "at least a second")
}

func TestWhoStays(t *testing.T) {
	tolerant := pod("t")
	tolerant.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	done := pod("done")
	done.Status.Phase = corev1.PodSucceeded
	p := drain.Of([]*corev1.Pod{tolerant, done, pod("a")}, eviction.Budgets{}, now(), time.Time{})
	assert.Equal(t, []string{"t", "done"}, names(p.Stay))
	assert.Equal(t, []string{"a"}, names(p.Now()))
}

// Pods that were evicted are waited for while there is hope, and hold up those of later tiers.
func TestEnding(t *testing.T) {
	ends := func(in time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) { at := metav1.NewTime(now().Add(in)); p.DeletionTimestamp = &at }
	}
	for name, c := range map[string]struct {
		pod      *corev1.Pod
		deadline time.Duration // 0 = none
		waits    bool
		forced   time.Duration
	}{
		"in its grace period":           {pod("a", ends(30*time.Second)), 0, true, 0},
		"half a minute late":            {pod("a", ends(-30*time.Second)), 0, true, 0},
		"its kubelet is gone":           {pod("a", ends(-61*time.Second)), 0, false, 0},
		"a daemon's":                    {pod("a", daemon, ends(30*time.Second)), 0, true, 0},
		"done before the deadline":      {pod("a", ends(30*time.Second)), time.Minute, true, 0},
		"it would outlast the deadline": {pod("a", ends(time.Hour)), 20 * time.Second, true, 20 * time.Second},
		"the deadline has passed":       {pod("a", ends(time.Hour)), -time.Second, false, 0},
		"finished":                      {pod("a", ends(30*time.Second), func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), 0, false, 0},
		"tolerant": {pod("a", ends(30*time.Second), func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}), 0, false, 0},
	} {
		deadline := time.Time{}
		if c.deadline != 0 {
			deadline = now().Add(c.deadline)
		}
		p := drain.Of([]*corev1.Pod{c.pod}, eviction.Budgets{}, now(), deadline)
		assert.Equal(t, c.waits, len(p.Ending) == 1, name)
		assert.Equal(t, !c.waits, len(p.Stay) == 1, name)
		assert.Equal(t, !c.waits, p.Done(), name)
		if c.forced != 0 {
			assert.Equal(t, []drain.Forced{{Pod: c.pod, Grace: c.forced}}, p.Forced, name)
		} else {
			assert.Empty(t, p.Forced, name)
		}
	}
	p := drain.Of([]*corev1.Pod{pod("a", ends(time.Second)), pod("c", critical)}, eviction.Budgets{}, now(), time.Time{})
	assert.Empty(t, p.Now())
	assert.Equal(t, "pods of tier ordinary go first", p.Steps[0].Wait)
}

func attachment(node, volume string) *storagev1.VolumeAttachment {
	a := &storagev1.VolumeAttachment{Spec: storagev1.VolumeAttachmentSpec{NodeName: node}}
	if volume != "" {
		a.Spec.Source.PersistentVolumeName = &volume
	}
	return a
}

// Volumes are waited for, but those of pods that stay until the end.
func TestAttached(t *testing.T) {
	claim := func(name, volume string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume}}
	}
	stays := pod("log", daemon)
	stays.Spec.Volumes = []corev1.Volume{
		{Name: "a", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "logs"}}},
		{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
	}
	claims := []*corev1.PersistentVolumeClaim{claim("logs", "pv-1"), claim("db", "pv-2"), claim("log-scratch", "pv-3"), claim("other", "pv-4")}
	attachments := []*storagev1.VolumeAttachment{attachment("n", "pv-4"), attachment("n", "pv-1"), attachment("n", "pv-2"), attachment("n", "pv-3"), attachment("m", "pv-9"), attachment("n", "")}
	assert.Equal(t, []string{"pv-2", "pv-4"}, drain.Attached("n", attachments, []*corev1.Pod{stays, pod("x")}, claims))
	assert.Empty(t, drain.Attached("n", nil, nil, claims))
}

func ExampleAttached() {
	fmt.Println(drain.Attached("node-1", []*storagev1.VolumeAttachment{attachment("node-1", "disk-a"), attachment("node-2", "disk-b")}, nil, nil))
	// Output: [disk-a]
}

func ExampleOf() {
	p := drain.Of([]*corev1.Pod{pod("web-1"), pod("web-0"), pod("log", daemon)}, budgets(1), now(), time.Time{})
	for _, s := range p.Steps {
		fmt.Printf("%s: %q\n", s.Pod.Name, s.Wait)
	}
	// Output:
	// web-0: ""
	// web-1: "PodDisruptionBudget shop/web allows no more at the same time"
	// log: "pods of tier ordinary go first"
}

// Only a protection without an end is one that waiting does not help against.
func TestProtectionsThatEnd(t *testing.T) {
	for value, never := range map[string]bool{"true": true, "1h": false, "720h": false} {
		for _, started := range []bool{false, true} {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{eviction.DoNotDisrupt: value}}}
			at := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
			if start := metav1.NewTime(at.Add(-50 * time.Minute)); started {
				p.Status.StartTime = &start
			}
			s := drain.Of([]*corev1.Pod{p}, eviction.Budgets{}, at, time.Time{}).Steps[0]
			assert.Equal(t, never, s.Never, value)
			assert.NotEmpty(t, s.Wait)
		}
	}
}

// A pod is forced if its grace period is longer than the time until the deadline, however long it is.
func TestLongGracePeriods(t *testing.T) {
	for _, grace := range []int64{3601, 86400, 9223372036, 9223372037, 18446744074, math.MaxInt64} {
		p := pod("a")
		p.Spec.TerminationGracePeriodSeconds = &grace
		assert.Len(t, drain.Of([]*corev1.Pod{p}, eviction.Budgets{}, now(), now().Add(time.Hour)).Forced, 1, grace)
	}
}
