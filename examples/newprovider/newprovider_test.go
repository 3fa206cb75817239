package newprovider_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/cloudtest"
	"github.com/joinery-sdk/joinery/examples/newprovider"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
)

func catalogue() []instancetypes.InstanceType {
	var types []instancetypes.InstanceType
	for i, name := range []string{"box", "bigbox"} {
		types = append(types, instancetypes.InstanceType{
			Name:         name,
			Requirements: requirements.MustOf(requirements.In(corev1.LabelInstanceTypeStable, name)),
			Capacity: corev1.ResourceList{
				corev1.ResourceCPU:    *resource.NewQuantity(int64(4<<i), resource.DecimalSI),
				corev1.ResourceMemory: *resource.NewQuantity(int64(16<<i)<<30, resource.BinarySI),
			},
			Offerings: []instancetypes.Offering{{
				Requirements: requirements.MustParse("karpenter.sh/capacity-type=on-demand, topology.kubernetes.io/zone=cellar"),
				Price:        float64(1 + i), Available: true,
			}},
		})
	}
	return types
}

func TestConformance(t *testing.T) {
	cloudtest.Run(t, func(t *testing.T) cloudtest.Harness {
		folder := t.TempDir()
		p, err := newprovider.New(folder, catalogue())
		require.NoError(t, err)
		return cloudtest.Harness{
			Provider: p,
			Reopen:   func(context.Context) (cloudprovider.Provider, error) { return newprovider.New(folder, catalogue()) },
			Foreign: func(ctx context.Context) (string, func(context.Context) (bool, error), error) {
				const id = "file://somebody's"
				err := p.Edit(ctx, func(s *newprovider.State) error { s.Machines[id] = cloudprovider.Instance{ID: id}; return nil })
				return id, func(ctx context.Context) (there bool, err error) {
					err = p.Edit(ctx, func(s *newprovider.State) error { _, there = s.Machines[id]; return nil })
					return there, err
				}, err
			},
			Exhaust: func(ctx context.Context, c cloudprovider.Candidate) (func(), error) {
				set := func(soldOut []string) error {
					return p.Edit(ctx, func(s *newprovider.State) error { s.SoldOut = soldOut; return nil })
				}
				return func() { assert.NoError(t, set(nil)) }, set([]string{c.String(), strings.Replace(c.String(), "bigbox", "box", 1)})
			},
			Block: func(ctx context.Context) (func(), error) {
				set := func(limit int) error {
					return p.Edit(ctx, func(s *newprovider.State) error { s.Limit = limit; return nil })
				}
				_, err := p.Create(ctx, cloudprovider.NodeClaim{
					Name: "before", Token: "before", Candidates: []cloudprovider.Candidate{{Type: "box", Offering: catalogue()[0].Offerings[0].Requirements}},
				})
				return func() { assert.NoError(t, set(0)) }, errors.Join(err, set(1))
			},
		}
	})
}

// A second process finds what the first has left.
func TestRestart(t *testing.T) {
	folder := t.TempDir()
	claim := cloudprovider.NodeClaim{
		Name: "a", Token: "a-1", Candidates: []cloudprovider.Candidate{{Type: "box", Offering: catalogue()[0].Offerings[0].Requirements}},
	}
	var ids []string
	for range 2 {
		p, err := newprovider.New(folder, catalogue())
		require.NoError(t, err)
		launch, err := p.Create(t.Context(), claim)
		require.NoError(t, err)
		ids = append(ids, launch.ID)
	}
	assert.Equal(t, ids[0], ids[1])
}

func TestFileThatIsNoState(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "cloud.json"), []byte("{"), 0o600))
	p, err := newprovider.New(folder, catalogue())
	require.NoError(t, err)
	_, err = p.List(t.Context())
	require.Error(t, err)
	assert.True(t, cloudprovider.Advise(err).Unknown)
}

// A template to copy must stay one.
func TestItIsSmall(t *testing.T) {
	data, err := os.ReadFile("newprovider.go")
	require.NoError(t, err)
	assert.Less(t, strings.Count(string(data), "\n"), 200)
}

func ExampleNew() {
	folder, err := os.MkdirTemp("", "newprovider")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(folder) }()
	p, err := newprovider.New(folder, catalogue())
	if err != nil {
		fmt.Println(err)
		return
	}
	launch, err := p.Create(context.Background(), cloudprovider.NodeClaim{
		Name: "node-1", Token: "node-1-token", Candidates: cloudprovider.CandidatesOf(catalogue(), requirements.Set{}, nil, requirements.Keys{}),
	})
	fmt.Println(launch.ID, launch.Type, err)
	// Output: file://m-00000001 box <nil>
}

// Whoever edits the state plays the cloud: here it runs out of one offering, and says so as data.
func ExampleProvider_Edit() {
	folder, err := os.MkdirTemp("", "newprovider")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(folder) }()
	p, err := newprovider.New(folder, catalogue())
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	candidates := cloudprovider.CandidatesOf(catalogue(), requirements.Set{}, nil, requirements.Keys{})[:1]
	err = p.Edit(ctx, func(s *newprovider.State) error {
		s.SoldOut = append(s.SoldOut, candidates[0].String())
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = p.Create(ctx, cloudprovider.NodeClaim{Name: "node-1", Token: "node-1-token", Candidates: candidates})
	fmt.Println(errors.Is(err, cloudprovider.ErrInsufficientCapacity))
	// Output: true
}
