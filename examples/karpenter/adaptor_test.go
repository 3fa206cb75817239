package karpenter_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	kwok "sigs.k8s.io/karpenter/kwok/apis/v1alpha1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karp "sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/availability"
	"github.com/joinery-sdk/joinery/cloudprovider/cloudtest"
	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/examples/karpenter"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/requirements/kube"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

func quantity(s string) resource.Quantity { return resource.MustParse(s) }

func cloud(t *testing.T, config memcloud.Config) *memcloud.Cloud {
	t.Helper()
	config.Types = sample()
	c, err := memcloud.New(config)
	require.NoError(t, err)
	return c
}

func adaptor(t *testing.T, p cloudprovider.Provider, o karpenter.Options) *karpenter.CloudProvider {
	t.Helper()
	c, err := karpenter.AsKarpenter(t.Context(), p, o)
	require.NoError(t, err)
	return c
}

// asks is a claim of Karpenter's for any of the types.
func asks(name string, types ...string) *karpv1.NodeClaim {
	c := claimOf(cloudprovider.NodeClaim{Name: name, Token: name + "-uid", Pool: "default"})
	for i, r := range c.Spec.Requirements {
		if r.Key == corev1.LabelInstanceTypeStable {
			c.Spec.Requirements[i].Values = types
		}
	}
	return c
}

// failing is a provider whose calls fail.
type failing struct {
	cloudprovider.Provider
	err error
}

func (f failing) Create(context.Context, cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
	return cloudprovider.Launch{}, f.err
}

func (f failing) Get(context.Context, string) (cloudprovider.Instance, error) {
	return cloudprovider.Instance{}, f.err
}
func (f failing) Delete(context.Context, string) error { return f.err }
func (f failing) Drifted(context.Context, string) (cloudprovider.Drift, error) {
	return cloudprovider.Drift{}, f.err
}

func TestErrorsOfCreate(t *testing.T) {
	lost := errors.New("connection reset")
	for code, want := range map[error]string{
		cloudprovider.ErrInsufficientCapacity: "insufficient capacity", cloudprovider.ErrQuota: "insufficient capacity",
		cloudprovider.ErrNotFound: "insufficient capacity", cloudprovider.ErrInvalidSpec: "create: InvalidSpec",
		cloudprovider.ErrUnauthorized: "create: Unauthorized", cloudprovider.ErrUnsupported: "create: Unsupported",
		cloudprovider.ErrNotReady: "create: NotReady", cloudprovider.ErrThrottled: "create: Throttled",
		lost: "none", context.Canceled: "none",
	} {
		t.Run(code.Error(), func(t *testing.T) {
			err := code
			if slices.Contains(cloudprovider.Codes(), code) {
				err = &cloudprovider.Error{Code: code, Op: "create", Subject: "a", Err: errors.New("the cloud's own words")}
			}
			_, err = adaptor(t, failing{cloud(t, memcloud.Config{}), err}, karpenter.Options{}).Create(t.Context(), asks("a", "box.small"))
			require.ErrorIs(t, err, code, "the cause stays")
			have := "none"
			create, is := errors.AsType[*karp.CreateError](err)
			switch {
			case karp.IsInsufficientCapacityError(err):
				have = "insufficient capacity"
			case karp.IsNodeClassNotReadyError(err):
				have = "node class not ready"
			case karp.IsNodeClaimNotFoundError(err):
				have = "not found"
			case is:
				have = "create: " + create.ConditionReason
				assert.Contains(t, create.ConditionMessage, "the cloud's own words")
			}
			assert.Equal(t, want, have)
		})
	}
}

func TestErrorsOfTheOthers(t *testing.T) {
	for _, test := range []struct {
		err   error
		found bool
	}{{&cloudprovider.Error{Code: cloudprovider.ErrNotFound}, false}, {&cloudprovider.Error{Code: cloudprovider.ErrThrottled}, true}, {errors.New("lost"), true}} {
		c := adaptor(t, failing{cloud(t, memcloud.Config{}), test.err}, karpenter.Options{})
		_, get := c.Get(t.Context(), "id")
		_, drifted := c.IsDrifted(t.Context(), asks("a"))
		for _, err := range []error{get, drifted, c.Delete(t.Context(), asks("a"))} {
			require.ErrorIs(t, err, test.err)
			assert.Equal(t, !test.found, karp.IsNodeClaimNotFoundError(err), "%v", err)
		}
	}
}

func TestALaunch(t *testing.T) {
	cloud := cloud(t, memcloud.Config{Image: "image-1", Boot: time.Minute, Shutdown: time.Minute})
	c := adaptor(t, cloud, karpenter.Options{})
	claim := asks("a", "box.large", "crate.small")
	claim.Labels["example.com/team"] = "core"
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: quantity("1500m")}
	made, err := c.Create(t.Context(), claim)
	require.NoError(t, err)
	machine := cloud.Truth()[0]
	assert.Equal(t, "a-uid", machine.Token)
	assert.Equal(t, "default", machine.Pool)
	assert.Equal(t, "box.large", machine.Type, "the cheapest that fits")
	assert.Equal(t, "core", machine.Labels["example.com/team"])
	assert.Equal(t, machine.Labels, made.Labels)
	assert.Equal(t, karpv1.NodeClaimStatus{ProviderID: machine.ID, ImageID: "image-1", Capacity: machine.Capacity, Allocatable: machine.Allocatable}, made.Status)

	again, err := c.Create(t.Context(), claim)
	require.NoError(t, err)
	assert.Equal(t, made.Status.ProviderID, again.Status.ProviderID)
	claim.Status.ProviderID = machine.ID
	reason, err := c.IsDrifted(t.Context(), claim)
	require.NoError(t, err)
	assert.Empty(t, reason)
	cloud.SetImage("image-2")
	reason, err = c.IsDrifted(t.Context(), claim)
	require.NoError(t, err)
	assert.Equal(t, karp.DriftReason("ImageDrift"), reason)

	require.NoError(t, c.Delete(t.Context(), claim))
	got, err := c.Get(t.Context(), machine.ID)
	require.NoError(t, err)
	assert.NotNil(t, got.DeletionTimestamp, "it is on its way out")
	list, err := c.List(t.Context())
	require.NoError(t, err)
	assert.NotNil(t, list[0].DeletionTimestamp)
	cloud.Settle()
	assert.True(t, karp.IsNodeClaimNotFoundError(c.Delete(t.Context(), claim)))
}

func available(t *testing.T, c *karpenter.CloudProvider, name string) bool {
	t.Helper()
	types, err := c.GetInstanceTypes(t.Context(), &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: karpv1.NodePoolSpec{Template: karpv1.NodeClaimTemplate{
		Spec: karpv1.NodeClaimTemplateSpec{NodeClassRef: &karpv1.NodeClassReference{Group: "g", Kind: "K", Name: "n"}},
	}}})
	require.NoError(t, err)
	require.Len(t, types, len(sample()), "all are listed, whether or not they can be had")
	i := slices.IndexFunc(types, func(x *karp.InstanceType) bool { return x.Name == name })
	return len(types[i].Offerings.Available()) > 0
}

func TestWhatWasRefusedIsNotOffered(t *testing.T) {
	cloud, now := cloud(t, memcloud.Config{}), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := adaptor(t, cloud, karpenter.Options{Now: func() time.Time { return now }, Policy: availability.Policy{First: time.Minute, Quota: time.Hour}})
	require.NoError(t, cloud.SetCapacity("box.small", sample()[0].Offerings[0].Requirements, 0))
	assert.True(t, available(t, c, "box.small"), "nobody knows yet")
	_, err := c.Create(t.Context(), asks("a", "box.small", "box.large"))
	require.NoError(t, err)
	assert.Equal(t, "box.large", cloud.Truth()[0].Type)
	assert.False(t, available(t, c, "box.small"), "a success says what was refused before it")
	_, err = c.Create(t.Context(), asks("b", "box.small"))
	assert.True(t, karp.IsInsufficientCapacityError(err), "%v", err)
	now = now.Add(2 * time.Minute)
	assert.True(t, available(t, c, "box.small"))
	_, err = c.Create(t.Context(), asks("b", "box.small"))
	require.True(t, karp.IsInsufficientCapacityError(err), "%v", err)
	assert.False(t, available(t, c, "box.small"), "a failure says what was refused")
	c.Refuse(cloudprovider.Refusal{Type: "crate.large", Offering: sample()[3].Offerings[0].Requirements})
	assert.False(t, available(t, c, "crate.large"))

	cloud.SetQuota(memcloud.Quota{Name: "nodes", Limit: 1})
	_, err = c.Create(t.Context(), asks("c", "box.large"))
	require.True(t, karp.IsInsufficientCapacityError(err), "%v", err)
	assert.False(t, available(t, c, "box.large"), "a quota blocks")
	require.NoError(t, cloud.Delete(t.Context(), cloud.Truth()[0].ID))
	gone := asks("a")
	gone.Status.ProviderID = "memcloud://i-00000001"
	require.True(t, karp.IsNodeClaimNotFoundError(c.Delete(t.Context(), gone)))
	assert.True(t, available(t, c, "box.large"), "until something that counted towards it is gone")
}

// asking writes down what it is asked for, and gives no answer.
type asking struct {
	cloudprovider.Provider
	claims []cloudprovider.NodeClaim
}

func (a *asking) Create(_ context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
	a.claims = append(a.claims, claim)
	return cloudprovider.Launch{}, errors.New("connection reset")
}

func TestTheSameIsAskedFor(t *testing.T) {
	provider, now := &asking{Provider: cloud(t, memcloud.Config{})}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := adaptor(t, provider, karpenter.Options{Now: func() time.Time { return now }, Policy: availability.Policy{First: 24 * time.Hour, Longest: 24 * time.Hour}})
	for range 2 {
		_, err := c.Create(t.Context(), asks("a", "box.small", "box.large"))
		require.ErrorContains(t, err, "connection reset")
		c.Refuse(cloudprovider.Refusal{Type: "box.small", Offering: sample()[0].Offerings[0].Requirements})
	}
	assert.Len(t, provider.claims[0].Candidates, 2)
	assert.True(t, provider.claims[0].Equal(provider.claims[1]))
	now = now.Add(2 * time.Hour) // long after Karpenter has given up
	for _, name := range []string{"b", "a"} {
		_, err := c.Create(t.Context(), asks(name, "box.small", "box.large"))
		require.ErrorContains(t, err, "connection reset")
	}
	assert.Len(t, provider.claims[3].Candidates, 1, "it is forgotten")
}

// What was asked for without an answer is asked for again word by word, though other offerings can be had by now; a process that was
// started anew finds the machine in the list.
func TestALostAnswer(t *testing.T) {
	cloud := cloud(t, memcloud.Config{})
	claim := asks("a", "box.small", "box.large")
	losing := adaptor(t, cloudtest.Inject(cloud, cloudtest.Nth(cloudtest.OpCreate, 1, cloudtest.LoseReply())), karpenter.Options{})
	_, err := losing.Create(t.Context(), claim)
	require.ErrorIs(t, err, cloudtest.ErrLostReply)
	losing.Refuse(cloudprovider.Refusal{Type: "box.small", Offering: sample()[0].Offerings[0].Requirements})
	made, err := losing.Create(t.Context(), claim)
	require.NoError(t, err)
	require.Len(t, cloud.Truth(), 1)

	anew := adaptor(t, cloud, karpenter.Options{})
	anew.Refuse(cloudprovider.Refusal{Type: "box.large", Offering: sample()[1].Offerings[0].Requirements})
	again, err := anew.Create(t.Context(), claim)
	require.NoError(t, err)
	assert.Equal(t, made.Status.ProviderID, again.Status.ProviderID)
	other := asks("b", "box.small")
	other.UID = claim.UID
	_, err = anew.Create(t.Context(), other)
	require.ErrorIs(t, err, cloudprovider.ErrInvalidSpec, "a machine of another claim is not handed out")
}

func TestNodeClasses(t *testing.T) {
	class := &kwok.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	api := fake.NewClientBuilder().Build()
	c := adaptor(t, cloud(t, memcloud.Config{}), karpenter.Options{Client: api, Classes: []status.Object{&kwok.KWOKNodeClass{}}})
	_, err := c.Create(t.Context(), asks("a", "box.small"))
	require.True(t, karp.IsNodeClassNotReadyError(err), "it does not exist: %v", err)
	require.NoError(t, api.Create(t.Context(), class))
	class.StatusConditions().SetFalse(status.ConditionReady, "Images", "no image was found")
	require.NoError(t, api.Update(t.Context(), class))
	_, err = c.Create(t.Context(), asks("a", "box.small"))
	require.True(t, karp.IsNodeClassNotReadyError(err), "%v", err)
	assert.ErrorContains(t, err, "no image was found")
	class.StatusConditions().SetTrue(status.ConditionReady)
	require.NoError(t, api.Update(t.Context(), class))
	_, err = c.Create(t.Context(), asks("a", "box.small"))
	require.NoError(t, err)

	c.GetSupportedNodeClasses()[0].SetName("read into")
	assert.Empty(t, c.GetSupportedNodeClasses()[0].GetName())
	assert.Empty(t, adaptor(t, cloud(t, memcloud.Config{}), karpenter.Options{}).GetSupportedNodeClasses())
}

func TestName(t *testing.T) {
	cloud := cloud(t, memcloud.Config{})
	assert.Equal(t, "sample", adaptor(t, cloud, karpenter.Options{Name: "sample"}).Name())
	assert.Equal(t, "joinery", adaptor(t, cloud, karpenter.Options{}).Name())
}

func TestAPoolThatCannotBeRead(t *testing.T) {
	_, err := adaptor(t, cloud(t, memcloud.Config{}), karpenter.Options{}).GetInstanceTypes(t.Context(), &karpv1.NodePool{})
	require.ErrorContains(t, err, "NodePool")
}

// market is a provider that only sells.
type market struct {
	cloudprovider.Provider
	types []instancetypes.InstanceType
}

func (m market) InstanceTypes(context.Context, nodepool.NodePool) ([]instancetypes.InstanceType, error) {
	return m.types, nil
}

// counted is a market that counts who asks.
type counted struct {
	market
	asked []string
}

func (c *counted) InstanceTypes(_ context.Context, pool nodepool.NodePool) ([]instancetypes.InstanceType, error) {
	c.asked = append(c.asked, pool.NodeClass.Name)
	return c.types, nil
}

// Karpenter asks for the catalogue at every simulation; the cloud is asked now and then.
func TestTheCatalogueIsKeptForAWhile(t *testing.T) {
	provider, now := &counted{market: market{types: sample()}}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := adaptor(t, provider, karpenter.Options{Now: func() time.Time { return now }})
	provider.asked = nil
	pool := func(class string) *karpv1.NodePool {
		p := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		p.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "g", Kind: "K", Name: class}
		return p
	}
	look := func(class string) []*karp.InstanceType {
		list, err := c.GetInstanceTypes(t.Context(), pool(class))
		require.NoError(t, err)
		return list
	}
	first := look("one")
	slices.Reverse(first) // the list is the caller's
	assert.Equal(t, "box.small", look("one")[0].Name)
	assert.Equal(t, []string{"one"}, provider.asked)
	look("two")
	assert.Equal(t, []string{"one", "two"}, provider.asked, "another class has another catalogue")
	now = now.Add(6 * time.Second)
	look("one")
	assert.Equal(t, []string{"one", "two", "one"}, provider.asked)
	c.Refuse(cloudprovider.Refusal{Type: "box.small", Offering: sample()[0].Offerings[0].Requirements})
	assert.Empty(t, look("one")[0].Offerings.Available(), "what is refused is left out at once")
}

// Karpenter finds in the converted catalogue what the library finds in its own, for requirements at random over all of EC2.
func TestTheSameOfferings(t *testing.T) {
	region, err := catalogue.Load("us-east-1")
	require.NoError(t, err)
	types, err := ec2.Types(region, ec2.Settings{})
	require.NoError(t, err)
	few := sample() // a catalogue in which some types lack most labels
	for i := 0; i < len(types); i += 13 {
		few = append(few, types[i])
	}
	types = few
	reserved := types[len(types)-1]
	reserved.Name = "reserved.large"
	reserved.Requirements = requirements.MustOf(requirements.In(corev1.LabelInstanceTypeStable, reserved.Name))
	reserved.Offerings = []instancetypes.Offering{
		{Requirements: requirements.MustParse("karpenter.sh/capacity-type=reserved, topology.kubernetes.io/zone=us-east-1a, karpenter.k8s.aws/capacity-reservation-id=cr-1"), Available: true, ReservationCount: 3},
		{Requirements: requirements.MustParse("karpenter.sh/capacity-type=on-demand, topology.kubernetes.io/zone=us-east-1b"), Price: 2, Available: true, Commitment: "plan"},
		{Requirements: requirements.MustParse("karpenter.sh/capacity-type=on-demand, topology.kubernetes.io/zone=us-east-1b"), Price: 1, Available: true},
		{Requirements: requirements.MustParse("karpenter.sh/capacity-type=on-demand, topology.kubernetes.io/zone=us-east-1c"), Price: 1},
	}
	types = append(types, reserved)
	c := adaptor(t, market{types: types}, karpenter.Options{})
	list, err := c.GetInstanceTypes(t.Context(), nil)
	require.NoError(t, err)
	for i, x := range list {
		want, have := types[i].Allocatable(), x.Allocatable()
		for name := range want {
			require.Zero(t, cmp.Compare(want.Name(name, resource.DecimalSI).MilliValue(), have.Name(name, resource.DecimalSI).MilliValue()), "%s of %s", name, x.Name)
		}
	}
	var labels []map[string]string
	for _, x := range types {
		for _, o := range x.Offerings {
			all := x.Requirements.Labels()
			maps.Copy(all, o.Requirements.Labels())
			labels = append(labels, all)
		}
	}
	chance := rand.New(rand.NewPCG(1, 2))
	hits := 0
	for range 300 {
		ask := requirements.Set{}
		one := labels[chance.IntN(len(labels))]
		keys := slices.Sorted(func(yield func(string) bool) {
			for key := range one {
				if !yield(key) {
					return
				}
			}
		})
		for range 1 + chance.IntN(4) {
			key := keys[chance.IntN(len(keys))]
			other := labels[chance.IntN(len(labels))][key]
			r := []requirements.Requirement{
				requirements.In(key, one[key], other), requirements.NotIn(key, one[key]), requirements.Exists(key), requirements.DoesNotExist(key),
				requirements.In(key, one[key]), requirements.NotIn(key, other),
			}[chance.IntN(6)]
			if !ask.Has(key) { // "present" and "not 5" are together "absent or not 5" to Karpenter, which is not our affair
				ask, err = ask.Intersect(requirements.MustOf(r))
				require.NoError(t, err)
			}
		}
		cpu := resource.NewQuantity(int64(chance.IntN(8)), resource.DecimalSI)
		requests := corev1.ResourceList{corev1.ResourceCPU: *cpu}
		var want, have []string
		for _, x := range cloudprovider.CandidatesOf(types, ask, requests, requirements.Keys{}) {
			want = append(want, cloudprovider.Candidate{Type: x.Type, Offering: present(x.Offering)}.String())
		}
		expressions, ok := kube.Expressions(ask)
		require.True(t, ok)
		theirs := scheduling.NewNodeSelectorRequirements(expressions...)
		for _, x := range list {
			allocatable := x.Allocatable()
			if x.Requirements.Intersects(theirs) != nil || allocatable.Cpu().Cmp(*cpu) < 0 {
				continue
			}
			for _, o := range x.Offerings.Available() {
				if theirs.IsCompatible(o.Requirements, scheduling.AllowUndefinedWellKnownLabels) {
					have = append(have, cloudprovider.Candidate{Type: x.Name, Offering: present(setOf(o.Requirements))}.String())
				}
			}
		}
		slices.Sort(want)
		slices.Sort(have)
		require.Empty(t, difference(want, have), "%s finds %d of ours and %d of Karpenter's", ask, len(want), len(have))
		hits += len(want)
	}
	assert.Greater(t, hits, 5000, "the requirements must find something")
}

// difference is the first element of sorted lists that only one of them has.
func difference(want, have []string) string {
	for i := range max(len(want), len(have)) {
		switch {
		case i >= len(want) || i < len(have) && have[i] < want[i]:
			return "only Karpenter has " + have[i]
		case i >= len(have) || want[i] < have[i]:
			return "only the library has " + want[i]
		}
	}
	return ""
}

// present is what an offering says but for the labels that it only says are absent.
func present(offering requirements.Set) requirements.Set {
	return requirements.FromLabels(offering.Labels())
}

func TestReservationsAndCommitments(t *testing.T) {
	offering := func(text string, price float64, available bool, count int) instancetypes.Offering {
		return instancetypes.Offering{Requirements: requirements.MustParse(text), Price: price, Available: available, ReservationCount: count}
	}
	x := sample()[0]
	x.Requirements, _ = x.Requirements.Intersect(requirements.MustOf(requirements.DoesNotExist(instancetypes.LabelReservationID))) // the offering decides
	x.Offerings = []instancetypes.Offering{
		offering("karpenter.sh/capacity-type=on-demand, topology.kubernetes.io/zone=zone-1", 3, true, 0),
		offering("karpenter.sh/capacity-type=on-demand, topology.kubernetes.io/zone=zone-1", 2, true, 5),
		offering("karpenter.sh/capacity-type=on-demand, topology.kubernetes.io/zone=zone-1", 1, false, 0),
		offering("karpenter.sh/capacity-type=on-demand, topology.kubernetes.io/zone=zone-2", 1, false, 0),
		offering("karpenter.sh/capacity-type=reserved, topology.kubernetes.io/zone=zone-1, karpenter.k8s.aws/capacity-reservation-id=cr-1", 0, true, 4),
	}
	list, err := adaptor(t, market{types: []instancetypes.InstanceType{x}}, karpenter.Options{}).GetInstanceTypes(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, list[0].Offerings, 3)
	assert.InDelta(t, 2, list[0].Offerings[0].Price, 0, "the cheapest that can be had")
	assert.Equal(t, "cr-1", list[0].Offerings[2].ReservationID())
	assert.Equal(t, 4, list[0].Offerings[2].ReservationCapacity)
	assert.Equal(t, corev1.NodeSelectorOpDoesNotExist, list[0].Offerings[0].Requirements.Get(instancetypes.LabelReservationID).Operator())
	wanting := scheduling.NewRequirements(scheduling.NewRequirement(instancetypes.LabelReservationID, corev1.NodeSelectorOpIn, "cr-1"))
	require.NoError(t, list[0].Requirements.Intersects(wanting))
	assert.Equal(t, []string{"zone-1"}, list[0].Requirements.Get(corev1.LabelTopologyZone).Values(), "a zone without anything to have is no domain")
}

func TestWhatCannotBeWritten(t *testing.T) {
	x := sample()[0]
	x.Requirements = requirements.Impossible()
	_, err := adaptor(t, market{types: []instancetypes.InstanceType{x}}, karpenter.Options{}).GetInstanceTypes(t.Context(), nil)
	require.ErrorContains(t, err, `type "box.small"`)
}

// An adaptor is thin, or it is something else.
func TestItIsSmall(t *testing.T) {
	lines := 0
	for _, name := range []string{"adaptor.go", "errors.go", "repair.go", "types.go"} {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		for line := range strings.Lines(string(data)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				lines++
			}
		}
	}
	assert.LessOrEqual(t, lines, 500)
}

func ExampleAsKarpenter() {
	cloud, err := memcloud.New(memcloud.Config{Types: sample()})
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := karpenter.AsKarpenter(context.Background(), cloud, karpenter.Options{Classes: []status.Object{&kwok.KWOKNodeClass{}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	claim, err := c.Create(context.Background(), asks("default-x", "box.small", "box.large"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(claim.Status.ProviderID, claim.Labels[corev1.LabelInstanceTypeStable])
	// Output: memcloud://i-00000001 box.small
}
