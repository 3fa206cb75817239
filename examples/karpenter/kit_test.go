package karpenter_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karp "sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/availability"
	"github.com/joinery-sdk/joinery/cloudprovider/cloudtest"
	"github.com/joinery-sdk/joinery/cloudprovider/idempotent"
	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/examples/karpenter"
	"github.com/joinery-sdk/joinery/examples/newprovider"
	"github.com/joinery-sdk/joinery/examples/newprovider/sky"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/requirements/kube"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// excepted are the obligations that a provider behind the adaptor does not keep, and why; nothing else may be broken.
var excepted = map[string]map[string]string{
	"memcloud": {
		"create-invalid":       "Karpenter's claims name no candidates, so none of them can be outside of the catalogue",
		"create-foreign-token": "the token is the claim's UID, which the API server gives to one claim, whose spec cannot change",
	},
	"newprovider": {
		"create-invalid":       "Karpenter's claims name no candidates, so none of them can be outside of the catalogue",
		"create-foreign-token": "the token is the claim's UID, which the API server gives to one claim, whose spec cannot change",
	},
}

// The kit speaks to a provider through Karpenter's interface: what it sees there is what Karpenter sees.
func TestTheKitThroughTheAdaptor(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) cloudtest.Harness{"memcloud": memory, "newprovider": remote} {
		t.Run(name, func(t *testing.T) {
			h := open(t)
			losing := &forgetful{Provider: h.Provider}
			var under cloudprovider.Provider = losing
			reopen := h.Reopen
			h.Provider = adapt(t, under)
			h.LoseReply = func(context.Context) (func(), error) {
				losing.next.Store(true)
				return func() { losing.next.Store(false) }, nil
			}
			h.Reopen = func(ctx context.Context) (cloudprovider.Provider, error) {
				if reopen != nil {
					var err error
					if under, err = reopen(ctx); err != nil {
						return nil, err
					}
				}
				return adapt(t, under), nil
			}
			broken := map[string]string{}
			for _, v := range violations(h.Check(t.Context())) {
				broken[v.Case] = v.Error()
			}
			for _, seen := range slices.Sorted(maps.Keys(broken)) {
				assert.Contains(t, excepted[name], seen, broken[seen])
			}
			for known := range excepted[name] {
				assert.Contains(t, broken, known, "it is kept after all")
			}
		})
	}
}

// forgetful loses the reply to a launch, or to an end, when it is told to.
type forgetful struct {
	cloudprovider.Provider
	next atomic.Bool
}

func (f *forgetful) Create(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
	launch, err := f.Provider.Create(ctx, claim)
	if f.next.Swap(false) {
		return cloudprovider.Launch{}, cloudtest.ErrLostReply
	}
	return launch, err
}

func (f *forgetful) Delete(ctx context.Context, id string) error {
	err := f.Provider.Delete(ctx, id)
	if f.next.Swap(false) && err == nil {
		return cloudtest.ErrLostReply
	}
	return err
}

func (f *forgetful) RepairPolicies() []cloudprovider.RepairPolicy {
	if adviser, ok := f.Provider.(cloudprovider.RepairAdviser); ok {
		return adviser.RepairPolicies()
	}
	return nil
}

// A kit that finds nothing wrong with an adaptor that is wrong proves nothing.
func TestTheKitSeesThroughTheAdaptor(t *testing.T) {
	h := memory(t)
	cloud := h.Provider
	for name, spoil := range map[string]cloudprovider.Provider{
		"create-idempotent": spoilt{Provider: cloud, claim: func(c cloudprovider.NodeClaim) cloudprovider.NodeClaim { c.Token += time.Now().String(); return c }},
		"list-owners":       spoilt{Provider: cloud, instance: func(i cloudprovider.Instance) cloudprovider.Instance { i.Pool = "another"; return i }},
	} {
		t.Run(name, func(t *testing.T) {
			h.Provider = adapt(t, spoil)
			var seen []string
			for _, v := range violations(h.Check(t.Context())) {
				seen = append(seen, v.Case)
			}
			assert.Contains(t, seen, name)
		})
	}
}

// spoilt changes what goes in and out.
type spoilt struct {
	cloudprovider.Provider
	claim    func(cloudprovider.NodeClaim) cloudprovider.NodeClaim
	instance func(cloudprovider.Instance) cloudprovider.Instance
}

func (s spoilt) Create(ctx context.Context, c cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
	if s.claim != nil {
		c = s.claim(c)
	}
	return s.Provider.Create(ctx, c)
}

func (s spoilt) List(ctx context.Context) ([]cloudprovider.Instance, error) {
	list, err := s.Provider.List(ctx)
	for i := range list {
		if s.instance != nil {
			list[i] = s.instance(list[i])
		}
	}
	return list, err
}

func violations(err error) []*cloudtest.Violation {
	if v, ok := errors.AsType[*cloudtest.Violation](err); ok && !isJoined(err) {
		return []*cloudtest.Violation{v}
	}
	var out []*cloudtest.Violation
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			out = append(out, violations(e)...)
		}
	}
	return out
}

func isJoined(err error) bool { _, ok := err.(interface{ Unwrap() []error }); return ok }

// offerings are of one zone each, so that Karpenter's requirements can name them one by one.
func sample() []instancetypes.InstanceType {
	var out []instancetypes.InstanceType
	for i, name := range []string{"box.small", "box.large", "crate.small", "crate.large"} {
		out = append(out, instancetypes.InstanceType{
			Name:         name,
			Requirements: requirements.MustOf(requirements.In(corev1.LabelInstanceTypeStable, name), requirements.In(corev1.LabelArchStable, "amd64"), requirements.In(corev1.LabelOSStable, "linux")),
			Capacity:     corev1.ResourceList{corev1.ResourceCPU: quantity(fmt.Sprint(2 << (i % 2))), corev1.ResourceMemory: quantity("8Gi"), corev1.ResourcePods: quantity("110")},
			Overhead:     instancetypes.Overhead{KubeReserved: corev1.ResourceList{corev1.ResourceCPU: quantity("100m")}, EvictionThreshold: corev1.ResourceList{corev1.ResourceMemory: quantity("100Mi")}},
			Offerings: []instancetypes.Offering{{
				Requirements: requirements.MustParse(fmt.Sprintf("karpenter.sh/capacity-type=%s, topology.kubernetes.io/zone=zone-%d", []string{"spot", "on-demand"}[i/2], i%2)),
				Price:        1 + float64(i), Available: true,
			}},
		})
	}
	return out
}

func memory(t *testing.T) cloudtest.Harness {
	cloud, err := memcloud.New(memcloud.Config{Types: sample(), Boot: time.Minute, Shutdown: time.Minute})
	require.NoError(t, err)
	return cloudtest.Harness{
		Provider: cloud,
		Now:      cloud.Clock().Now,
		Settle:   func(context.Context) error { cloud.Settle(); return nil },
		Exhaust: func(_ context.Context, c cloudprovider.Candidate) (func(), error) {
			return func() { assert.NoError(t, cloud.SetCapacity(c.Type, c.Offering, -1)) }, cloud.SetCapacity(c.Type, c.Offering, 0)
		},
		Block: func(context.Context) (func(), error) {
			cloud.SetQuota(memcloud.Quota{Name: "nodes", Limit: 0})
			return func() { cloud.SetQuota(memcloud.Quota{Name: "nodes", Limit: 1000}) }, nil
		},
	}
}

func remote(t *testing.T) cloudtest.Harness {
	cloud, path := sky.New(0, time.Now), filepath.Join(t.TempDir(), "journal.json")
	open := func() cloudprovider.Provider {
		return newprovider.New(newprovider.Config{Client: cloud, Types: sample, Store: idempotent.NewFile(path), Now: time.Now})
	}
	return cloudtest.Harness{
		Provider: open(),
		Reopen:   func(context.Context) (cloudprovider.Provider, error) { return open(), nil },
		Foreign: func(ctx context.Context) (string, func(context.Context) (bool, error), error) {
			m, err := cloud.CreateMachine(ctx, sky.Machine{Offer: sky.Offer{Size: "box.small", Zone: "zone-0", Spot: true}})
			return m.ID, func(ctx context.Context) (bool, error) {
				_, err := cloud.GetMachine(ctx, m.ID)
				return err == nil, nil
			}, err
		},
		Exhaust: func(_ context.Context, c cloudprovider.Candidate) (func(), error) {
			cloud.SellOut(newprovider.OfferOf(c), true)
			return func() { cloud.SellOut(newprovider.OfferOf(c), false) }, nil
		},
		Block: func(context.Context) (func(), error) {
			cloud.Quota(0)
			return func() { cloud.Quota(-1) }, nil
		},
	}
}

// adapt hides a provider behind Karpenter's interface, and makes a provider of that again. Refusals and catalogues count for a moment
// only, for the kit changes the cloud's capacity behind the adaptor's back.
func adapt(t *testing.T, p cloudprovider.Provider) cloudprovider.Provider {
	c, err := karpenter.AsKarpenter(t.Context(), p, karpenter.Options{Refresh: 1, Policy: availability.Policy{First: 1, Longest: 1, Quota: 1}})
	require.NoError(t, err)
	return through{c}
}

// through is a provider that has nothing but Karpenter's interface to work with.
type through struct{ karp.CloudProvider }

// back is the provider's error, if Karpenter's predicates say of the wrapped one what the documentation of the adaptor promises.
func back(err error) error {
	detail, ok := errors.AsType[*cloudprovider.Error](err)
	if !ok {
		return err
	}
	_, create := errors.AsType[*karp.CreateError](err)
	switch {
	case karp.IsInsufficientCapacityError(err) != (cloudprovider.Advise(err).Retry == cloudprovider.RetryElsewhere || errors.Is(err, cloudprovider.ErrNotFound) && detail.Op == "create"),
		karp.IsNodeClaimNotFoundError(err) != (errors.Is(err, cloudprovider.ErrNotFound) && detail.Op != "create"),
		create != (errors.Is(err, cloudprovider.ErrInvalidSpec) && detail.Op == "create"), karp.IsNodeClassNotReadyError(err):
		return fmt.Errorf("not in Karpenter's terms: %v", err)
	}
	return detail
}

func (p through) InstanceTypes(ctx context.Context, _ nodepool.NodePool) ([]instancetypes.InstanceType, error) {
	list, err := p.GetInstanceTypes(ctx, nil)
	out := make([]instancetypes.InstanceType, len(list))
	for i, shared := range list {
		var t karp.InstanceType // Karpenter shares types; the kit writes to them
		shared.DeepCopyInto(&t)
		out[i] = instancetypes.InstanceType{
			Name: t.Name, Requirements: setOf(t.Requirements), Capacity: t.Capacity,
			Overhead: instancetypes.Overhead{KubeReserved: t.Overhead.KubeReserved, SystemReserved: t.Overhead.SystemReserved, EvictionThreshold: t.Overhead.EvictionThreshold},
		}
		for _, o := range t.Offerings {
			out[i].Offerings = append(out[i].Offerings, instancetypes.Offering{Requirements: setOf(o.Requirements), Price: o.Price, Available: o.Available, ReservationCount: o.ReservationCapacity})
		}
	}
	return out, back(err)
}

func setOf(rs scheduling.Requirements) requirements.Set {
	var b requirements.Builder
	for _, r := range rs.NodeSelectorRequirements() {
		one, err := requirements.New(r.Key, requirements.Operator(r.Operator), r.Values...)
		if err != nil {
			panic(err)
		}
		b.Add(one)
	}
	set, err := b.Set()
	if err != nil {
		panic(err)
	}
	return set
}

func (p through) Create(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
	made, err := p.CloudProvider.Create(ctx, claimOf(claim))
	if err != nil {
		return cloudprovider.Launch{}, back(err)
	}
	i, err := p.instance(ctx, made)
	return cloudprovider.Launch{Instance: i}, err
}

// claimOf says in requirements what a claim says in candidates: the types, and the values of the labels of offerings.
func claimOf(claim cloudprovider.NodeClaim) *karpv1.NodeClaim {
	values := map[string][]string{corev1.LabelInstanceTypeStable: {}}
	for _, c := range claim.Candidates {
		values[corev1.LabelInstanceTypeStable] = append(values[corev1.LabelInstanceTypeStable], c.Type)
		for r := range c.Offering.All() {
			value, _ := r.Single()
			values[r.Key()] = append(values[r.Key()], value)
		}
	}
	list, ok := kube.Expressions(claim.Requirements)
	if !ok {
		list = []corev1.NodeSelectorRequirement{{Key: "example.com/impossible", Operator: corev1.NodeSelectorOpIn}}
	}
	for key, v := range values {
		slices.Sort(v)
		list = append(list, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: slices.Compact(v)})
	}
	out := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: claim.Name, UID: types.UID(claim.Token), Labels: maps.Clone(claim.Labels)}}
	metav1.SetMetaDataLabel(&out.ObjectMeta, karpv1.NodePoolLabelKey, claim.Pool)
	for _, r := range list {
		out.Spec.Requirements = append(out.Spec.Requirements, karpv1.NodeSelectorRequirementWithMinValues{Key: r.Key, Operator: r.Operator, Values: r.Values})
	}
	out.Spec.Resources.Requests = claim.Requests
	out.Spec.Taints, out.Spec.StartupTaints = claim.Taints, claim.StartupTaints
	out.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"}
	return out
}

// instance is what Karpenter was told of a machine. The offering is the one that the labels name.
func (p through) instance(ctx context.Context, claim *karpv1.NodeClaim) (cloudprovider.Instance, error) {
	out := cloudprovider.Instance{
		ID: claim.Status.ProviderID, Claim: claim.Name, Token: string(claim.UID), Pool: claim.Labels[karpv1.NodePoolLabelKey],
		Type: claim.Labels[corev1.LabelInstanceTypeStable], Labels: claim.Labels, ImageID: claim.Status.ImageID, Created: claim.CreationTimestamp.Time,
		Capacity: claim.Status.Capacity, Allocatable: claim.Status.Allocatable, State: cloudprovider.Running,
	}
	if claim.DeletionTimestamp != nil {
		out.State = cloudprovider.Terminating
	}
	list, err := p.InstanceTypes(ctx, nodepool.NodePool{})
	for _, t := range list {
		for _, o := range t.Offerings {
			if t.Name == out.Type && o.Requirements.Matches(out.Labels) {
				out.Offering = o.Requirements
			}
		}
	}
	return out, err
}

func (p through) Get(ctx context.Context, id string) (cloudprovider.Instance, error) {
	claim, err := p.CloudProvider.Get(ctx, id)
	if err != nil {
		return cloudprovider.Instance{}, back(err)
	}
	return p.instance(ctx, claim)
}

func (p through) List(ctx context.Context) ([]cloudprovider.Instance, error) {
	list, err := p.CloudProvider.List(ctx)
	if err != nil {
		return nil, back(err)
	}
	out := make([]cloudprovider.Instance, len(list))
	for i, claim := range list {
		if out[i], err = p.instance(ctx, claim); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(out, func(a, b cloudprovider.Instance) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

func (p through) Delete(ctx context.Context, id string) error {
	return back(p.CloudProvider.Delete(ctx, &karpv1.NodeClaim{Status: karpv1.NodeClaimStatus{ProviderID: id}}))
}

func (p through) Drifted(ctx context.Context, id string) (cloudprovider.Drift, error) {
	reason, err := p.IsDrifted(ctx, &karpv1.NodeClaim{Status: karpv1.NodeClaimStatus{ProviderID: id}})
	return cloudprovider.Drift{Reason: string(reason)}, back(err)
}

func (p through) RepairPolicies() []cloudprovider.RepairPolicy {
	var out []cloudprovider.RepairPolicy
	for _, r := range p.CloudProvider.RepairPolicies() {
		if r.ReasonRegex == "" { // what Karpenter needs, and nothing falls back on
			continue
		}
		out = append(out, cloudprovider.RepairPolicy{
			Condition: r.ConditionType, Status: r.ConditionStatus, Reason: strings.TrimPrefix(r.ReasonRegex, "^"), Toleration: r.TolerationDuration,
			Grace: r.TerminationGracePeriod, Priority: r.Priority, Reboot: r.Action == karp.RebootNode,
		})
	}
	return out
}
