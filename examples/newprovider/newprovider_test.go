package newprovider_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/cloudtest"
	"github.com/joinery-sdk/joinery/cloudprovider/idempotent"
	"github.com/joinery-sdk/joinery/cloudprovider/lifecycle"
	"github.com/joinery-sdk/joinery/examples/newprovider"
	"github.com/joinery-sdk/joinery/examples/newprovider/sky"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
)

func catalogue() []instancetypes.InstanceType {
	var types []instancetypes.InstanceType
	for i, name := range []string{"box", "bigbox"} {
		types = append(types, instancetypes.InstanceType{
			Name:         name,
			Requirements: requirements.MustOf(requirements.In(corev1.LabelInstanceTypeStable, name), requirements.In(corev1.LabelArchStable, "amd64"), requirements.In(corev1.LabelOSStable, "linux")),
			Capacity: corev1.ResourceList{
				corev1.ResourceCPU:    *resource.NewQuantity(int64(4<<i), resource.DecimalSI),
				corev1.ResourceMemory: *resource.NewQuantity(int64(16<<i)<<30, resource.BinarySI),
			},
			Offerings: []instancetypes.Offering{
				{Requirements: requirements.MustParse("karpenter.sh/capacity-type=on-demand, topology.kubernetes.io/zone=cellar"), Price: float64(2 + i), Available: true},
				{Requirements: requirements.MustParse("karpenter.sh/capacity-type=spot, topology.kubernetes.io/zone=attic"), Price: float64(1 + i), Available: true},
			},
		})
	}
	return types
}

// lag is how long the list of the cloud is out of date.
const lag = 5 * time.Second

// clock is a time that passes when the test says so.
type clock struct {
	mu   sync.Mutex
	time time.Time
}

func (c *clock) now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.time }

func (c *clock) pass(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.time = c.time.Add(d) }

// world is a cloud, and a provider that can be started again.
type world struct {
	clock clock
	cloud *sky.Cloud
	path  string
}

func newWorld(t *testing.T) *world {
	w := &world{path: filepath.Join(t.TempDir(), "journal.json"), clock: clock{time: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)}}
	w.cloud = sky.New(lag, w.clock.now)
	return w
}

func (w *world) start() *newprovider.Provider {
	return newprovider.New(newprovider.Config{Client: w.cloud, Types: catalogue, Store: idempotent.NewFile(w.path), Lag: lag, Now: w.clock.now})
}

func claim(token string) cloudprovider.NodeClaim {
	return cloudprovider.NodeClaim{
		Name: "node-" + token, Token: token, Candidates: cloudprovider.CandidatesOf(catalogue(), requirements.Set{}, nil, requirements.Keys{}),
	}
}

// All that the kit can do to this cloud, it does.
func TestConformance(t *testing.T) {
	cloudtest.Run(t, func(t *testing.T) cloudtest.Harness {
		w := newWorld(t)
		return cloudtest.Harness{
			Provider: w.start(),
			Now:      w.clock.now,
			Settle:   func(context.Context) error { w.clock.pass(lag); return nil },
			Reopen:   func(context.Context) (cloudprovider.Provider, error) { return w.start(), nil },
			Exhaust: func(_ context.Context, c cloudprovider.Candidate) (func(), error) {
				w.cloud.SellOut(newprovider.OfferOf(c), true)
				return func() { w.cloud.SellOut(newprovider.OfferOf(c), false) }, nil
			},
			Block: func(context.Context) (func(), error) {
				w.cloud.Quota(0)
				return func() { w.cloud.Quota(-1) }, nil
			},
			LoseReply: func(context.Context) (func(), error) {
				w.cloud.LoseReply(true)
				return func() { w.cloud.LoseReply(false) }, nil
			},
			LoseRead: func(_ context.Context, n int) (func(), error) {
				w.cloud.LoseRead(n)
				return func() { w.cloud.LoseRead(0) }, nil
			},
			Foreign: func(ctx context.Context) (string, func(context.Context) (bool, error), error) {
				m, err := w.cloud.CreateMachine(ctx, sky.Machine{Offer: sky.Offer{Size: "box", Zone: "attic"}, Tags: map[string]string{"claim-token": "of another cluster"}})
				there := func(ctx context.Context) (bool, error) {
					_, err := w.cloud.GetMachine(ctx, m.ID)
					return err == nil, nil
				}
				return m.ID, there, err
			},
		}
	})
}

// A machine whose reply was lost is known from the list alone. Who deletes it, for its claim is gone, ends its token, too.
func TestAMachineKnownFromTheListAlone(t *testing.T) {
	w := newWorld(t)
	for _, listed := range []bool{true, false} {
		token := fmt.Sprint(listed)
		w.cloud.LoseReply(true)
		_, err := w.start().Create(t.Context(), claim(token))
		require.ErrorIs(t, err, sky.ErrConnection)
		assert.True(t, cloudprovider.Advise(err).Unknown)
		w.clock.pass(lag)
		machines, _, err := w.cloud.ListMachines(t.Context(), "")
		require.NoError(t, err)
		require.Len(t, machines, 1)
		p := w.start()
		if listed {
			list, err := p.List(t.Context())
			require.NoError(t, err)
			require.Equal(t, machines[0].ID, list[0].ID)
		}
		require.NoError(t, p.Delete(t.Context(), machines[0].ID))
		w.clock.pass(lag)
		_, err = p.Create(t.Context(), claim(token))
		require.ErrorIs(t, err, cloudprovider.ErrNotFound)
		require.ErrorIs(t, p.Delete(t.Context(), machines[0].ID), cloudprovider.ErrNotFound)
	}
}

// Someone has copied a machine with its tags. Both are listed, and what is deleted is the one that is meant.
func TestACopyOfAMachine(t *testing.T) {
	w := newWorld(t)
	p := w.start()
	launch, err := p.Create(t.Context(), claim("a"))
	require.NoError(t, err)
	m, err := w.cloud.GetMachine(t.Context(), launch.ID)
	require.NoError(t, err)
	second, err := w.cloud.CreateMachine(t.Context(), sky.Machine{Offer: m.Offer, Tags: m.Tags})
	require.NoError(t, err)
	w.clock.pass(lag)
	list, err := p.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 2)
	assert.Equal(t, []string{launch.ID, second.ID}, []string{list[0].ID, list[1].ID})
	have, err := p.Get(t.Context(), second.ID)
	require.NoError(t, err)
	assert.Equal(t, second.ID, have.ID)
	decisions, _ := lifecycle.Review([]lifecycle.Claim{{Name: "a", Token: "a", Instance: launch.ID, Created: m.Created, Launched: m.Created, Registered: m.Created}},
		list, lifecycle.Timeouts{}, w.clock.now())
	require.Len(t, decisions, 1)
	assert.Equal(t, lifecycle.Surplus, decisions[0].Verdict)
	assert.Equal(t, second.ID, decisions[0].Instance)
	require.NoError(t, p.Delete(t.Context(), second.ID))
	_, err = w.cloud.GetMachine(t.Context(), second.ID)
	require.Error(t, err)
	_, err = p.Get(t.Context(), launch.ID)
	require.NoError(t, err)
}

// A machine whose reply was lost is known although its type has left the catalogue since, and its claim leads to it.
func TestATypeThatHasLeft(t *testing.T) {
	w := newWorld(t)
	w.cloud.LoseReply(true)
	_, err := w.start().Create(t.Context(), claim("a"))
	require.ErrorIs(t, err, sky.ErrConnection)
	w.clock.pass(lag)
	p := newprovider.New(newprovider.Config{
		Client: w.cloud, Store: idempotent.NewFile(w.path), Lag: lag, Now: w.clock.now,
		Types: func() []instancetypes.InstanceType { return nil },
	})
	list, err := p.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, "attic", list[0].Labels[corev1.LabelTopologyZone])
	launch, err := p.Create(t.Context(), claim("a"))
	require.NoError(t, err)
	assert.Equal(t, list[0].ID, launch.ID)
	require.NoError(t, p.Delete(t.Context(), launch.ID))
}

// While the list may not show the machine yet, nothing more is bought: the caller is told when to ask again.
func TestALostReplyWithinTheLag(t *testing.T) {
	w := newWorld(t)
	w.cloud.LoseReply(true)
	_, err := w.start().Create(t.Context(), claim("a"))
	require.ErrorIs(t, err, sky.ErrConnection)
	w.clock.pass(time.Second)
	_, err = w.start().Create(t.Context(), claim("a"))
	require.ErrorIs(t, err, cloudprovider.ErrNotReady)
	detail, ok := errors.AsType[*cloudprovider.Error](err)
	require.True(t, ok)
	assert.Equal(t, lag-time.Second, detail.RetryAfter)
	w.clock.pass(detail.RetryAfter)
	launch, err := w.start().Create(t.Context(), claim("a"))
	require.NoError(t, err)
	assert.Equal(t, "sky://m-00000001", launch.ID)
}

func TestFileThatIsNoJournal(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, os.WriteFile(w.path, []byte("{"), 0o600))
	_, err := w.start().List(t.Context())
	require.ErrorContains(t, err, w.path)
	assert.True(t, cloudprovider.Advise(err).Unknown)
}

// A template to copy must stay one.
func TestItIsSmall(t *testing.T) {
	lines := 0
	for _, name := range []string{"newprovider.go"} {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		lines += strings.Count(string(data), "\n")
	}
	assert.LessOrEqual(t, lines, 200)
}

func ExampleNew() {
	folder, err := os.MkdirTemp("", "newprovider")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(folder) }()
	cloud := sky.New(0, time.Now)
	p := newprovider.New(newprovider.Config{
		Client: cloud, Types: catalogue, Store: idempotent.NewFile(filepath.Join(folder, "journal.json")), Now: time.Now,
	})
	cloud.SellOut(sky.Offer{Size: "box", Zone: "attic", Spot: true}, true)
	launch, err := p.Create(context.Background(), claim("first"))
	fmt.Println(launch.ID, launch.Type, launch.Refused, err)
	// Output: sky://m-00000001 bigbox [box (karpenter.sh/capacity-type in (spot), topology.kubernetes.io/zone in (attic)): sky: sold-out] <nil>
}
