package cloudprovider_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/requirements"
)

func Example() {
	ctx := context.Background()
	cloud, err := memcloud.New(memcloud.Config{Types: types()})
	if err != nil {
		fmt.Println(err)
		return
	}
	claim := cloudprovider.NodeClaim{
		Name: "node-1", Token: "node-1-first-try",
		Candidates: cloudprovider.CandidatesOf(types(), requirements.Set{}, nil, requirements.Keys{}),
	}
	var p cloudprovider.Provider = cloud
	for range 2 { // the second time as after a restart
		launch, err := p.Create(ctx, claim)
		fmt.Println(launch.ID, launch.Type, err)
	}
	// Output:
	// memcloud://i-00000001 tiny <nil>
	// memcloud://i-00000001 tiny <nil>
}

func ExampleError() {
	err := fmt.Errorf("launching: %w", &cloudprovider.Error{
		Code: cloudprovider.ErrInsufficientCapacity, Op: "create", Subject: "node-1",
		Refused: []cloudprovider.Refusal{{Type: "m.large", Offering: requirements.MustParse("zone=a")}},
	})
	var detail *cloudprovider.Error
	if errors.Is(err, cloudprovider.ErrInsufficientCapacity) && errors.As(err, &detail) {
		fmt.Println(detail.Refused[0])
	}
	fmt.Println(cloudprovider.Advise(err).Retry)
	// Output:
	// m.large (zone in (a))
	// Elsewhere
}

func ExampleNodeClaim_Validate() {
	fmt.Println(cloudprovider.NodeClaim{Name: "node-1", Token: "t"}.Validate())
	// Output: cloudprovider: candidates: at least one is required; CandidatesOf finds them in a catalogue
}

func ExampleCandidatesOf() {
	for _, c := range cloudprovider.CandidatesOf(types(), requirements.MustParse("node.kubernetes.io/instance-type notin (tiny)"), nil, requirements.Keys{}) {
		fmt.Println(c)
	}
	// Output:
	// a (karpenter.sh/capacity-type in (spot), topology.kubernetes.io/zone in (x))
	// b (karpenter.sh/capacity-type in (spot), topology.kubernetes.io/zone in (x))
	// b (karpenter.sh/capacity-type in (spot), topology.kubernetes.io/zone in (y))
}

func ExampleNodeLabels() {
	labels, err := cloudprovider.NodeLabels(cloudprovider.NodeClaim{Pool: "general"}, types()[0], spot("x"))
	fmt.Println(labels, err)
	// Output: map[karpenter.sh/capacity-type:spot karpenter.sh/nodepool:general node.kubernetes.io/instance-type:b topology.kubernetes.io/zone:x] <nil>
}

func ExampleCreateAll() {
	cloud, err := memcloud.New(memcloud.Config{Types: types()})
	if err != nil {
		fmt.Println(err)
		return
	}
	good := validClaim()
	good.Candidates = []cloudprovider.Candidate{{Type: "a", Offering: spot("x")}}
	for _, r := range cloudprovider.CreateAll(context.Background(), cloud, []cloudprovider.NodeClaim{good, {Name: "bad", Token: "t"}}) {
		fmt.Println(r.Launch.Type, errors.Is(r.Err, cloudprovider.ErrInvalidSpec))
	}
	// Output:
	// a false
	//  true
}

// single hides the batch.
type single struct{ cloudprovider.Creator }

// short loses results.
type short struct{ cloudprovider.Creator }

func (short) CreateMany(context.Context, []cloudprovider.NodeClaim) []cloudprovider.Result {
	return nil
}

func TestCreateAll(t *testing.T) {
	cloud, err := memcloud.New(memcloud.Config{Types: types()})
	require.NoError(t, err)
	claim := func(name string) cloudprovider.NodeClaim {
		return cloudprovider.NodeClaim{Name: name, Token: name, Candidates: []cloudprovider.Candidate{{Type: "a", Offering: spot("x")}}}
	}
	claims := []cloudprovider.NodeClaim{claim("1"), {}, claim("3")}
	for _, p := range []cloudprovider.Creator{cloud, single{cloud}} {
		results := cloudprovider.CreateAll(t.Context(), p, claims)
		require.Len(t, results, 3)
		assert.Equal(t, "1", results[0].Launch.Claim)
		require.ErrorIs(t, results[1].Err, cloudprovider.ErrInvalidSpec)
		assert.Equal(t, "3", results[2].Launch.Claim)
	}
	assert.Len(t, cloud.Truth(), 2)

	for _, r := range cloudprovider.CreateAll(t.Context(), short{}, claims) {
		assert.True(t, cloudprovider.Advise(r.Err).Unknown)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	for _, r := range cloudprovider.CreateAll(done, single{cloud}, []cloudprovider.NodeClaim{claim("4")}) {
		require.ErrorIs(t, r.Err, context.Canceled)
	}
	assert.Len(t, cloud.Truth(), 2)
}

func ExampleInstance_Register() {
	instance := cloudprovider.Instance{ID: "cloud://1", Labels: map[string]string{"topology.kubernetes.io/zone": "a"}}
	claim := cloudprovider.NodeClaim{Name: "web-1", StartupTaints: []corev1.Taint{{Key: "starting", Effect: corev1.TaintEffectNoSchedule}}}
	joined := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "ip-10-0-0-1"}, Spec: corev1.NodeSpec{ProviderID: "cloud://1"}}
	node := instance.Register(claim, joined)
	fmt.Println(node.Labels, node.Spec.Taints[0].ToString())
	// Output: map[topology.kubernetes.io/zone:a] starting:NoSchedule
}
