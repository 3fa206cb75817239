package cloudprovider_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/lifecycle"
	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// cheapest needs one method of a cloud, and says so: any catalogue will do, that of a test too.
func cheapest(ctx context.Context, c cloudprovider.Catalogue) (cloudprovider.Candidate, error) {
	types, err := c.InstanceTypes(ctx, nodepool.NodePool{})
	if err != nil {
		return cloudprovider.Candidate{}, err
	}
	return cloudprovider.CandidatesOf(types, requirements.Set{}, nil, requirements.Keys{})[0], nil
}

// priceList is a catalogue of a user's own, without a cloud.
type priceList []instancetypes.InstanceType

func (l priceList) InstanceTypes(context.Context, nodepool.NodePool) ([]instancetypes.InstanceType, error) {
	return l, nil
}

// Callers ask for the one interface that they need, so that a test needs no more either.
func ExampleCatalogue() {
	var list cloudprovider.Catalogue = priceList(types())
	fmt.Println(cheapest(context.Background(), list))
	// Output: tiny (karpenter.sh/capacity-type in (spot), topology.kubernetes.io/zone in (x)) <nil>
}

// counted is a creator around another: what it counts, every launch passes.
type counted struct {
	cloudprovider.Creator
	launches *int
}

func (c counted) Create(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
	launch, err := c.Creator.Create(ctx, claim)
	if err == nil {
		*c.launches++
	}
	return launch, err
}

// Interfaces of one method are easily wrapped.
func ExampleCreator() {
	cloud, err := memcloud.New(memcloud.Config{Types: types()})
	if err != nil {
		fmt.Println(err)
		return
	}
	launches := 0
	var creator cloudprovider.Creator = counted{cloud, &launches}
	for _, token := range []string{"first", "second"} {
		claim := cloudprovider.NodeClaim{Name: token, Token: token, Candidates: []cloudprovider.Candidate{{Type: "a", Offering: spot("x")}}}
		if _, err := creator.Create(context.Background(), claim); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(launches, "launches")
	// Output: 2 launches
}

// What a machine goes through: it is asked for, read, listed, and given back.
func ExampleInstance() {
	ctx := context.Background()
	cloud, err := memcloud.New(memcloud.Config{Types: types(), Boot: time.Minute, Shutdown: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	launch, err := cloud.Create(ctx, cloudprovider.NodeClaim{Name: "node-1", Token: "t", Candidates: []cloudprovider.Candidate{{Type: "a", Offering: spot("x")}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(launch.Type, "for claim", launch.Claim, "in zone", launch.Labels[corev1.LabelTopologyZone])
	states := []cloudprovider.InstanceState{launch.State}
	look := func() {
		i, err := cloud.Get(ctx, launch.ID)
		if errors.Is(err, cloudprovider.ErrNotFound) {
			fmt.Println(states, "and gone")
			return
		}
		states = append(states, i.State)
	}
	cloud.Settle()
	look()
	if err := cloud.Delete(ctx, launch.ID); err != nil {
		fmt.Println(err)
	}
	look()
	cloud.Settle()
	look()
	// Output:
	// a for claim node-1 in zone x
	// [Pending Running Terminating] and gone
}

// giveBackAll empties a cloud. It asks for two methods and can do no more than these.
func giveBackAll(ctx context.Context, list cloudprovider.Lister, end cloudprovider.Deleter) (n int, err error) {
	instances, err := list.List(ctx)
	if err != nil {
		return 0, err
	}
	for _, i := range instances {
		if err := end.Delete(ctx, i.ID); err != nil && !errors.Is(err, cloudprovider.ErrNotFound) {
			return n, err
		}
		n++
	}
	return n, nil
}

// A job that gives back what a test left behind lists and deletes: a machine that is gone already is none of its business.
func ExampleLister() {
	ctx := context.Background()
	cloud, err := memcloud.New(memcloud.Config{Types: types()})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := cloud.Create(ctx, cloudprovider.NodeClaim{Name: "node-1", Token: "t", Candidates: []cloudprovider.Candidate{{Type: "a", Offering: spot("x")}}}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(giveBackAll(ctx, cloud, cloud))
	fmt.Println(giveBackAll(ctx, cloud, cloud))
	// Output:
	// 1 <nil>
	// 0 <nil>
}

// A machine that is gone is an answer, told by its code. A caller with a stale list must expect it.
func ExampleGetter() {
	cloud, err := memcloud.New(memcloud.Config{Types: types()})
	if err != nil {
		fmt.Println(err)
		return
	}
	var getter cloudprovider.Getter = cloud
	_, err = getter.Get(context.Background(), "memcloud://i-00000009")
	fmt.Println(errors.Is(err, cloudprovider.ErrNotFound), "-", err)
	// Output: true - cloudprovider: get "memcloud://i-00000009": not found
}

// The image that machines boot from has changed since this one was launched.
func ExampleDriftDetector() {
	ctx := context.Background()
	cloud, err := memcloud.New(memcloud.Config{Types: types(), Image: "image-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	launch, err := cloud.Create(ctx, cloudprovider.NodeClaim{Name: "node-1", Token: "t", Candidates: []cloudprovider.Candidate{{Type: "a", Offering: spot("x")}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	var detector cloudprovider.DriftDetector = cloud
	for _, image := range []string{"image-1", "image-2"} {
		cloud.SetImage(image)
		drift, err := detector.Drifted(ctx, launch.ID)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %q (%s)\n", image, drift.Reason, drift.Detail)
	}
	// Output:
	// image-1: "" ()
	// image-2: "ImageDrift" (boots "image-1" instead of "image-2")
}

// bulk is a creator that can buy many at once; it is what a cloud with a call for that looks like.
type bulk struct{ cloudprovider.Creator }

func (b bulk) CreateMany(ctx context.Context, claims []cloudprovider.NodeClaim) []cloudprovider.Result {
	fmt.Println("one call for", len(claims), "claims")
	out := make([]cloudprovider.Result, len(claims))
	for i, claim := range claims {
		out[i].Launch, out[i].Err = b.Create(ctx, claim)
	}
	return out
}

// A provider that buys many at once needs one method more, and callers of CreateAll need not know. Results are in the order
// of the claims, and one failure spoils no other.
func ExampleBatchCreator() {
	cloud, err := memcloud.New(memcloud.Config{Types: types()})
	if err != nil {
		fmt.Println(err)
		return
	}
	claims := []cloudprovider.NodeClaim{
		{Name: "node-1", Token: "1", Candidates: []cloudprovider.Candidate{{Type: "a", Offering: spot("x")}}},
		{Name: "node-2", Token: "2"},
	}
	for i, result := range cloudprovider.CreateAll(context.Background(), bulk{cloud}, claims) {
		fmt.Println(claims[i].Name, result.Launch.Type, result.Err)
	}
	// Output:
	// one call for 2 claims
	// node-1 a <nil>
	// node-2  cloudprovider: create "node-2": invalid spec: cloudprovider: candidates: at least one is required; CandidatesOf finds them in a catalogue
}

// What to do about each result of many: use it, ask for it again, or plan again.
func ExampleResult() {
	results := []cloudprovider.Result{
		{Launch: cloudprovider.Launch{Instance: cloudprovider.Instance{ID: "i-1"}}},
		{Err: &cloudprovider.Error{Code: cloudprovider.ErrThrottled}},
		{Err: &cloudprovider.Error{Code: cloudprovider.ErrInsufficientCapacity}},
		{Err: errors.New("connection reset")},
	}
	for _, r := range results {
		if r.Err == nil {
			fmt.Println(r.Launch.ID, "is there")
			continue
		}
		advice := cloudprovider.Advise(r.Err)
		fmt.Println(r.Err, "- retry:", advice.Retry, "- may be there:", advice.Unknown)
	}
	// Output:
	// i-1 is there
	// cloudprovider: throttled - retry: Same - may be there: false
	// cloudprovider: insufficient capacity - retry: Elsewhere - may be there: false
	// connection reset - retry: Same - may be there: true
}

// A drift of the zero value is none; a reason is for programs, a detail for people.
func ExampleDrift() {
	for _, d := range []cloudprovider.Drift{{}, {Reason: "ImageDrift", Detail: "boots image-1 instead of image-2"}} {
		if d == (cloudprovider.Drift{}) {
			fmt.Println("as it should be")
			continue
		}
		fmt.Println(d.Reason+":", d.Detail)
	}
	// Output:
	// as it should be
	// ImageDrift: boots image-1 instead of image-2
}

// A node may be unhealthy for a while; a policy says when to stop hoping.
func ExampleRepairPolicy() {
	policy := cloudprovider.RepairPolicy{Condition: corev1.NodeReady, Status: corev1.ConditionFalse, Toleration: 30 * time.Minute}
	since := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
	conditions := []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(since)}}
	for _, minutes := range []int{10, 40} {
		now := since.Add(time.Duration(minutes) * time.Minute)
		_, _, broken := lifecycle.Broken(conditions, []cloudprovider.RepairPolicy{policy}, now)
		fmt.Println(minutes, "minutes: replace it:", broken)
	}
	// Output:
	// 10 minutes: replace it: false
	// 40 minutes: replace it: true
}

// A caller that gives machines back asks until the cloud knows no more of them.
func ExampleDeleter() {
	ctx := context.Background()
	cloud, err := memcloud.New(memcloud.Config{Types: types(), Shutdown: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	launch, err := cloud.Create(ctx, cloudprovider.NodeClaim{Name: "node-1", Token: "t", Candidates: []cloudprovider.Candidate{{Type: "a", Offering: spot("x")}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	var deleter cloudprovider.Deleter = cloud
	tries := 0
	for !errors.Is(err, cloudprovider.ErrNotFound) {
		err = deleter.Delete(ctx, launch.ID)
		cloud.Clock().Advance(30 * time.Second)
		tries++
	}
	fmt.Println("gone after", tries, "calls")
	// Output: gone after 3 calls
}

// A claim is checked before anything is bought, and all its faults come out at once, each with its path.
func ExampleInvalidError() {
	err := cloudprovider.NodeClaim{Name: "node-1", Candidates: []cloudprovider.Candidate{{}}}.Validate()
	if first, ok := errors.AsType[*cloudprovider.InvalidError](err); ok {
		fmt.Println(first.Path)
	}
	fmt.Println(err)
	// Output:
	// token
	// cloudprovider: token: required; one that was never used before, and the same for every retry
	// cloudprovider: candidates[0].type: required
}

// A quota is no lack of capacity: it says what else is out of reach.
func ExampleQuota() {
	q := cloudprovider.Quota{Name: "spot cores", Blocks: requirements.MustParse("karpenter.sh/capacity-type=spot"), Used: 30, Limit: 32}
	fmt.Println(q)
	for _, c := range cloudprovider.CandidatesOf(types(), requirements.Set{}, nil, requirements.Keys{}) {
		if q.Blocks.Overlaps(c.Offering) {
			fmt.Println("not to be tried:", c.Type)
		}
	}
	// Output:
	// quota "spot cores" (30 of 32 used) blocks karpenter.sh/capacity-type in (spot)
	// not to be tried: tiny
	// not to be tried: a
	// not to be tried: b
	// not to be tried: b
}

// attach is a provider that adds machines to a load balancer once their nodes have joined.
type attach struct {
	cloudprovider.Provider
	members map[string]string
}

func (a attach) Registered(_ context.Context, id string, node *corev1.Node) error {
	a.members[id] = node.Name
	return nil
}

// What only some clouds do is found by asking the provider.
func ExampleRegistrationHook() {
	cloud, err := memcloud.New(memcloud.Config{Types: types()})
	if err != nil {
		fmt.Println(err)
		return
	}
	balancer := map[string]string{}
	for _, p := range []cloudprovider.Provider{cloud, attach{cloud, balancer}} {
		hook, ok := p.(cloudprovider.RegistrationHook)
		if !ok {
			fmt.Println("nothing to do")
			continue
		}
		node := &corev1.Node{}
		node.Name = "node-1"
		fmt.Println(hook.Registered(context.Background(), "memcloud://i-00000001", node), balancer)
	}
	// Output:
	// nothing to do
	// <nil> map[memcloud://i-00000001:node-1]
}

// repairs is a provider that knows which of its machines' conditions do not pass.
type repairs struct{ cloudprovider.Provider }

func (repairs) RepairPolicies() []cloudprovider.RepairPolicy {
	return []cloudprovider.RepairPolicy{
		{Condition: "DiskHealthy", Status: corev1.ConditionFalse, Toleration: 10 * time.Minute},
		{Condition: corev1.NodeReady, Status: corev1.ConditionUnknown, Toleration: 30 * time.Minute},
	}
}

// Which conditions mean that a machine will not recover, and for how long to hope.
func ExampleRepairAdviser() {
	var adviser cloudprovider.RepairAdviser = repairs{}
	for _, p := range adviser.RepairPolicies() {
		fmt.Printf("%s=%s for more than %s: replace the node\n", p.Condition, p.Status, p.Toleration)
	}
	// Output:
	// DiskHealthy=False for more than 10m0s: replace the node
	// Ready=Unknown for more than 30m0s: replace the node
}

// A caller's loop turns on the kind of retry: again, elsewhere, or a person.
func ExampleRetry() {
	next := map[cloudprovider.Retry]string{
		cloudprovider.RetryNever: "tell a person", cloudprovider.RetrySame: "ask again later", cloudprovider.RetryElsewhere: "plan without it",
	}
	for _, code := range []error{cloudprovider.ErrUnauthorized, cloudprovider.ErrThrottled, cloudprovider.ErrQuota} {
		fmt.Printf("%s: %s\n", code, next[cloudprovider.Advise(code).Retry])
	}
	// Output:
	// unauthorized: tell a person
	// throttled: ask again later
	// quota exceeded: plan without it
}

// The node of an instance, before it is there.
func ExampleInstance_Node() {
	i := cloudprovider.Instance{ID: "cloud://1", Claim: "default-0", Pool: "default"}
	n := i.Node(cloudprovider.NodeClaim{Taints: []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}})
	fmt.Println(n.Name, n.Spec.ProviderID, n.Labels["karpenter.sh/nodepool"], n.Spec.Taints[0].Key)
	// Output: default-0 cloud://1 default gpu
}

// A reboot that is asked for again is one.
func ExampleRebooter() {
	cloud, err := memcloud.New(memcloud.Config{Types: types()})
	if err != nil {
		fmt.Println(err)
		return
	}
	var rebooter cloudprovider.Rebooter = cloud
	fmt.Println(rebooter.Reboot(context.Background(), "memcloud://i-00000009", "operation-1"))
	// Output: cloudprovider: reboot "memcloud://i-00000009": not found
}

func ExampleRepairPolicy_Validate() {
	policy := cloudprovider.RepairPolicy{
		Condition: "KernelReady", Status: corev1.ConditionFalse, Reason: "SoftLockup", Toleration: 10 * time.Minute, Reboot: true, Priority: 200,
	}
	fmt.Println(policy.Validate())
	// Output: cloudprovider: priority: 200 is not from 0 to 100
}
