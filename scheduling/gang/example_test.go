package gang_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/gang"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// oneEach is a packer that buys a node for each unit, up to a number of nodes.
type oneEach int

func (most oneEach) Pack(_ context.Context, _ *scheduling.Problem, r scheduling.Round) (scheduling.Outcome, error) {
	var o scheduling.Outcome
	for i, item := range r.Items {
		for range item.Count {
			if len(o.Bins) < int(most) {
				o.Bins = append(o.Bins, scheduling.OutcomeBin{Shares: []scheduling.Share{{Item: i, Count: 1}}})
			}
		}
	}
	return o, nil
}

// worker returns a pod of the training job, which asks for a whole machine.
func worker(i int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: fmt.Sprintf("train-%d", i), Labels: map[string]string{"scheduling.x-k8s.io/pod-group": "train"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("4")},
		}}}},
	}
}

// planner plans with a packer; its drafts are plans too.
type planner struct{ scheduling.Packer }

func (p planner) Draft(ctx context.Context, q *scheduling.Problem) (*scheduling.Result, error) {
	return p.Plan(ctx, q)
}

func (p planner) Search(ctx context.Context, q *scheduling.Problem) (*scheduling.Result, error) {
	return p.Plan(ctx, q)
}

func (p planner) Plan(ctx context.Context, q *scheduling.Problem) (*scheduling.Result, error) {
	return q.Solve(ctx, p.Packer)
}

func machines() scheduling.Pool {
	return scheduling.Pool{NodePool: nodepool.NodePool{Name: "general", Limits: corev1.ResourceList{"nodes": resource.MustParse("4")}}, Types: []instancetypes.InstanceType{{
		Name: "std.4", Requirements: requirements.MustParse("node.kubernetes.io/instance-type=std.4"),
		Capacity:  corev1.ResourceList{"cpu": resource.MustParse("4"), "pods": resource.MustParse("20")},
		Offerings: []instancetypes.Offering{{Price: 1, Available: true, Requirements: requirements.MustParse("topology.kubernetes.io/zone=a")}},
	}}}
}

// A job needs eight machines, and the pool is limited to four. The job waits, and nothing is bought
// for it.
func ExampleSolve() {
	var pods []*corev1.Pod
	for i := range 8 {
		pods = append(pods, worker(i))
	}
	group, err := gang.Decode([]byte(`{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"namespace": "lab", "name": "train"}, "spec": {"minMember": 8}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	groups := gang.Read(pods, []gang.PodGroup{group}, nil)
	s := scheduling.Snapshot{Pods: pods, Pools: []scheduling.Pool{machines()}}
	var p gang.Planner = planner{oneEach(4)}
	solution, err := gang.Solve(context.Background(), s, nil, groups, p)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(solution.Result.NewNodes()), "nodes")
	fmt.Println(solution.Result.Unplaced()[0].Reasons()[0])
	// Output:
	// 0 nodes
	// pool "general": group lab/train needs 8 of its pods at once, but only 4 of them can be placed; for the others: the limit of 4 nodes is reached
}

// Of two jobs with three machines each, one fits under a limit of four. Nothing better was left
// untried.
func ExampleSolution() {
	var pods []*corev1.Pod
	var groups []gang.Group
	for i := range 2 {
		name := fmt.Sprint("job-", i)
		for k := range 3 {
			pod := worker(k)
			pod.Name, pod.Labels = fmt.Sprint(name, "-", k), map[string]string{"job": name}
			pods = append(pods, pod)
		}
		groups = append(groups, gang.Group{Name: name, Member: func(p *corev1.Pod) bool { return p.Labels["job"] == name }})
	}
	s := scheduling.Snapshot{Pods: pods, Pools: []scheduling.Pool{machines()}}
	solution, err := gang.Solve(context.Background(), s, nil, groups, planner{oneEach(4)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(solution.Result.Bindings()), "pods placed, complete:", solution.Complete)
	// Output: 3 pods placed, complete: true
}

func ExampleGroup() {
	g := gang.Group{Name: "train", Member: func(p *corev1.Pod) bool { return p.Labels["job"] == "train" }, Minimum: 8, Key: "example.com/rack"}
	fmt.Println(g.Name, "needs", g.Minimum, "pods at once, in one", g.Key)
	// Output: train needs 8 pods at once, in one example.com/rack
}

func TestDecode(t *testing.T) {
	for text, want := range map[string]gang.PodGroup{
		`{"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}, "schedulingConstraints": {"topology": [{"key": "rack"}]}}}`: {
			API: gang.Kubernetes, Namespace: "default", Name: "g", Minimum: 3, Key: "rack",
		},
		`{"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": "g", "namespace": "n"}, "spec": {"schedulingPolicy": {"basic": {}}}}`: {
			API: gang.Kubernetes, Namespace: "n", Name: "g",
		},
		`{"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}, "disruptionMode": "PodGroup"}}`: {
			API: gang.Kubernetes, Namespace: "default", Name: "g", Minimum: 3, Whole: true,
		},
		`{"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}, "disruptionMode": {"all": {}}}}`: {
			API: gang.Kubernetes, Namespace: "default", Name: "g", Minimum: 3, Whole: true,
		},
		`{"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}, "disruptionMode": {"single": {}}}}`: {
			API: gang.Kubernetes, Namespace: "default", Name: "g", Minimum: 3,
		},
		`{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 2, "queue": "q"}}`: {
			API: gang.Volcano, Namespace: "default", Name: "g", Minimum: 2,
		},
		`{"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": "g", "annotations": {"joinery-sdk.dev/group-values": "2"}}, "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}, "schedulingConstraints": {"topology": [{"key": "rack"}]}}}`: {
			API: gang.Kubernetes, Namespace: "default", Name: "g", Minimum: 3, Key: "rack", Values: 2,
		},
	} {
		got, err := gang.Decode([]byte(text))
		require.NoError(t, err, text)
		assert.Equal(t, want, got)
	}
	for _, text := range []string{
		``, `{}`, `[]`, `{"apiVersion": "v1", "kind": "PodGroup"}`, `{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}`, `{"spec": {"minMember": "x"}}`,
		`{"apiVersion": "scheduling.k8s.io/v1", "kind": "PodGroup", "metadata": {"annotations": {"joinery-sdk.dev/group-values": "0"}}}`,
	} {
		_, err := gang.Decode([]byte(text))
		assert.Error(t, err, text)
	}
	const kube, others = `{"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": "g"}, "spec": %s}`, `{"apiVersion": "%s/v1", "kind": "PodGroup", "metadata": {"name": "g"}, "spec": %s}`
	for text, want := range map[string]string{
		fmt.Sprintf(others, gang.Coscheduling, `{"minMember": -3}`):                                `spec.minMember is -3, must not be negative`,
		fmt.Sprintf(others, gang.Volcano, `{"minMember": -3}`):                                     `spec.minMember is -3, must not be negative`,
		fmt.Sprintf(others, gang.Coscheduling, `{"minMembers": 3}`):                                `spec.minMembers is an unknown field (did you mean "minMember"?)`,
		fmt.Sprintf(others, gang.Volcano, `{"minmember": 3}`):                                      `spec.minmember is an unknown field (did you mean "minMember"?)`,
		fmt.Sprintf(kube, `{"schedulingPolicy": {"gang": {"minCount": -1}}}`):                      `spec.schedulingPolicy.gang.minCount is -1, must not be negative`,
		fmt.Sprintf(kube, `{"schedulingPolicy": {"gang": {"mincounts": 1}}}`):                      `spec.schedulingPolicy.gang.mincounts is an unknown field (did you mean "minCount"?)`,
		fmt.Sprintf(kube, `{"schedulingPolicies": {"gang": {"minCount": 1}}}`):                     `spec.schedulingPolicies is an unknown field (did you mean "schedulingPolicy"?)`,
		`{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "Spec": {}}`:          `Spec is an unknown field (did you mean "spec"?)`,
		`{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "spec": {"mode": 1}}`: ``, // a later version may have it
	} {
		_, err := gang.Decode([]byte(text))
		if want == "" {
			assert.NoError(t, err, text)
			continue
		}
		assert.ErrorContains(t, err, want, text)
	}
}

// Groups that have no meaning are errors before anything is planned.
func TestValidate(t *testing.T) {
	all := func(*corev1.Pod) bool { return true }
	for want, groups := range map[string][]gang.Group{
		`group 1 has no name`:                            {{Name: "g", Member: all}, {Member: all}},
		`group "g": there is another group of this name`: {{Name: "g", Member: all}, {Name: "g", Member: all}},
		`group "g": Member is nil`:                       {{Name: "g"}},
		`group "g": Minimum is -1`:                       {{Name: "g", Member: all, Minimum: -1}},
		`group "g": Values is -2`:                        {{Name: "g", Member: all, Values: -2}},
	} {
		require.ErrorContains(t, gang.Validate(groups), want)
		_, err := gang.Solve(t.Context(), scheduling.Snapshot{}, nil, groups, planner{oneEach(1)})
		require.ErrorContains(t, err, want)
	}
	assert.NoError(t, gang.Validate([]gang.Group{{Name: "g", Member: all}, {Name: "h", Member: all, Minimum: 2, Key: "rack", Values: 2}}))
}

func ExampleValidate() {
	all := func(*corev1.Pod) bool { return true }
	fmt.Println(gang.Validate([]gang.Group{{Name: "train", Member: all, Minimum: -3}}))
	// Output: gang: group "train": Minimum is -3, must not be negative; 0 means all existing pods
}

// Each controller marks its pods in its own way.
func TestRead(t *testing.T) {
	pod := func(namespace, name string, labels, annotations map[string]string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels, Annotations: annotations}}
	}
	pods := []*corev1.Pod{
		pod("lab", "a", map[string]string{"scheduling.x-k8s.io/pod-group": "co"}, nil),
		pod("lab", "b", nil, map[string]string{"scheduling.k8s.io/group-name": "vol"}),
		pod("lab", "c", map[string]string{"kueue.x-k8s.io/pod-group-name": "kue"}, map[string]string{"kueue.x-k8s.io/pod-group-total-count": "5"}),
		pod("lab", "d", map[string]string{"leaderworkerset.sigs.k8s.io/group-key": "lws"}, map[string]string{"leaderworkerset.sigs.k8s.io/size": "4"}),
		pod("lab", "e", map[string]string{"jobset.sigs.k8s.io/jobset-name": "set"}, nil),
		pod("lab", "f", nil, map[string]string{"link": "kube"}),
		pod("lab", "g", nil, map[string]string{"link": "basic"}),
		pod("other", "h", map[string]string{"scheduling.x-k8s.io/pod-group": "co"}, nil),
		pod("lab", "i", nil, nil),
		pod("lab", "j", map[string]string{"kueue.x-k8s.io/pod-group-name": "odd"}, map[string]string{"kueue.x-k8s.io/pod-group-total-count": "many"}),
	}
	objects := []gang.PodGroup{
		{API: gang.Coscheduling, Namespace: "lab", Name: "co", Minimum: 3},
		{API: gang.Kubernetes, Namespace: "lab", Name: "kube", Minimum: 7, Key: "rack"},
		{API: gang.Kubernetes, Namespace: "lab", Name: "basic"},
		{API: gang.Volcano, Namespace: "elsewhere", Name: "vol", Minimum: 1},
	}
	var got []string
	for _, g := range gang.Read(pods, objects, func(p *corev1.Pod) string { return p.Annotations["link"] }) {
		members := ""
		for _, p := range pods {
			if g.Member(p) {
				members += p.Name
			}
		}
		got = append(got, fmt.Sprintf("%s %d %q %s %s", g.Name, g.Minimum, g.Key, members, g.Waits))
	}
	assert.Equal(t, []string{
		`lab/co 3 "" a `, `lab/kube 7 "rack" f `, `lab/kue 5 "" c `, `lab/lws 4 "" d `, `lab/odd 0 "" j `, `lab/set 0 "" e `,
		`lab/vol 0 "" b its PodGroup of scheduling.volcano.sh does not exist`, `other/co 0 "" h its PodGroup of scheduling.x-k8s.io does not exist`,
	}, got)
}

// Pods that have succeeded count towards the minimum only for Volcano and Kueue. Pods that have
// failed never count.
func TestReadCountsSucceededPods(t *testing.T) {
	marks := map[string]struct{ labels, annotations map[string]string }{
		gang.Kubernetes:   {nil, map[string]string{"link": "g"}},
		gang.Coscheduling: {map[string]string{"scheduling.x-k8s.io/pod-group": "g"}, nil},
		gang.Volcano:      {nil, map[string]string{"scheduling.k8s.io/group-name": "g"}},
		"kueue":           {map[string]string{"kueue.x-k8s.io/pod-group-name": "g"}, map[string]string{"kueue.x-k8s.io/pod-group-total-count": "4"}},
		"lws":             {map[string]string{"leaderworkerset.sigs.k8s.io/group-key": "g"}, map[string]string{"leaderworkerset.sigs.k8s.io/size": "4"}},
		"jobset":          {map[string]string{"jobset.sigs.k8s.io/jobset-name": "g"}, nil},
	}
	for api, want := range map[string][]int{ // the minimum with no pod, two and all four pods succeeded
		gang.Kubernetes: {4, 4, 4}, gang.Coscheduling: {4, 4, 4}, gang.Volcano: {4, 2, 1}, "kueue": {4, 2, 1}, "lws": {4, 4, 4}, "jobset": {0, 0, 0},
	} {
		for i, succeeded := range []int{0, 2, 4} {
			var pods []*corev1.Pod
			for k := range 6 {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p-", k), Labels: marks[api].labels, Annotations: marks[api].annotations}}
				switch {
				case k < succeeded:
					pod.Status.Phase = corev1.PodSucceeded
				case k == 4:
					pod.Status.Phase = corev1.PodFailed
				}
				pods = append(pods, pod)
			}
			groups := gang.Read(pods, []gang.PodGroup{{API: api, Name: "g", Minimum: 4}}, func(p *corev1.Pod) string { return p.Annotations["link"] })
			require.Len(t, groups, 1)
			assert.Equal(t, want[i], groups[0].Minimum, "%s with %d pods succeeded", api, succeeded)
		}
	}
}

func TestNilPodsAreInNoGroup(t *testing.T) {
	assert.Empty(t, gang.Read([]*corev1.Pod{nil}, nil, func(p *corev1.Pod) string { return p.Name }))
}
