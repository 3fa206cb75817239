package cloudtest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

func catalogueCases() []testCase {
	return []testCase{
		{"catalogue-complete", "InstanceTypes lists every type for every pool name, including types that are sold out now.", catalogueComplete},
		{"catalogue-valid", "The catalogue is valid: names are unique, prices are finite and not negative, allocatable never exceeds capacity.", catalogueValid},
		{"catalogue-labels", "Every type names its architecture and its operating system.", catalogueLabels},
		{"catalogue-offerings", "Every offering names exactly one zone and exactly one capacity type.", catalogueOfferings},
		{"catalogue-stable", "InstanceTypes gives the same answer, in the same order, as long as nothing has changed.", catalogueStable},
		{"catalogue-recovers", "An offering that was unavailable becomes available again by itself once there is capacity.", catalogueRecovers},
	}
}

func catalogueComplete(ctx context.Context, p *probe) error {
	before, err := p.types(ctx)
	if err != nil {
		return err
	}
	if err := p.namedPool(ctx, before); err != nil {
		return err
	}
	first, err := p.candidates(ctx, 1)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(before, func(t instancetypes.InstanceType) bool { return t.Name == first[0].Type })
	for _, o := range before[i].Offerings {
		restore, err := p.exhaust(ctx, cloudprovider.Candidate{Type: before[i].Name, Offering: o.Requirements})
		if err != nil {
			return err
		}
		defer restore()
	}
	if err := p.settle(ctx); err != nil {
		return err
	}
	after, err := p.types(ctx)
	if err != nil {
		return err
	}
	for _, t := range before {
		j := slices.IndexFunc(after, func(a instancetypes.InstanceType) bool { return a.Name == t.Name })
		if j < 0 {
			return fmt.Errorf("type %q is missing after all its offerings were exhausted", t.Name)
		}
		if len(after[j].Offerings) != len(t.Offerings) {
			return fmt.Errorf("type %q has %d offerings instead of %d after all of them were exhausted", t.Name, len(after[j].Offerings), len(t.Offerings))
		}
	}
	return nil
}

// namedPool asks for the types of a pool with a name of its own, which is all that tells it from
// the pool of the harness.
func (p *probe) namedPool(ctx context.Context, types []instancetypes.InstanceType) error {
	if p.h.Pool.Name != "" {
		return nil
	}
	pool := p.h.Pool
	pool.Name = "cloudtest"
	named, err := patiently(ctx, p, func() ([]instancetypes.InstanceType, error) { return p.h.Provider.InstanceTypes(ctx, pool) })
	if err != nil {
		return fmt.Errorf("InstanceTypes of the pool %q failed: %w", pool.Name, err)
	}
	for _, t := range types {
		if !slices.ContainsFunc(named, func(n instancetypes.InstanceType) bool { return n.Name == t.Name }) {
			return fmt.Errorf("type %q is missing for the pool %q, which has no requirements", t.Name, pool.Name)
		}
	}
	return nil
}

func catalogueLabels(ctx context.Context, p *probe) error {
	types, err := p.types(ctx)
	if err != nil {
		return err
	}
	for _, t := range types {
		for _, key := range []string{corev1.LabelArchStable, corev1.LabelOSStable} {
			if values, ok := t.Requirements.Get(key).Values(); !ok || len(values) == 0 {
				return fmt.Errorf("type %q has no %q, so no pod that asks for one can be placed: %q", t.Name, key, t.Requirements)
			}
		}
	}
	return nil
}

func catalogueValid(ctx context.Context, p *probe) error {
	types, err := p.types(ctx)
	if err != nil {
		return err
	}
	if err := instancetypes.Validate(types); err != nil {
		return err
	}
	for _, t := range types {
		allocatable := t.Allocatable()
		for _, name := range resources.Names(allocatable) {
			a, c := allocatable[name], t.Capacity[name]
			if a.Cmp(c) > 0 {
				return fmt.Errorf("type %q has %s allocatable of %s of capacity %s", t.Name, a.String(), name, c.String())
			}
		}
	}
	return nil
}

func catalogueOfferings(ctx context.Context, p *probe) error {
	types, err := p.types(ctx)
	if err != nil {
		return err
	}
	for _, t := range types {
		for i, o := range t.Offerings {
			for _, key := range []string{corev1.LabelTopologyZone, instancetypes.LabelCapacityType} {
				if _, ok := o.Requirements.Get(key).Single(); !ok {
					return fmt.Errorf("offering %d of %q does not name one value of %q: %q", i, t.Name, key, o.Requirements)
				}
			}
		}
	}
	return nil
}

func catalogueStable(ctx context.Context, p *probe) error {
	first, err := p.types(ctx)
	if err != nil {
		return err
	}
	want := describeTypes(first)
	for range 4 {
		again, err := p.types(ctx)
		if err != nil {
			return err
		}
		if have := describeTypes(again); have != want {
			return fmt.Errorf("two answers differ: %s", difference(want, have))
		}
	}
	return nil
}

func catalogueRecovers(ctx context.Context, p *probe) error {
	first, err := p.candidates(ctx, 1)
	if err != nil {
		return err
	}
	restore, err := p.exhaust(ctx, first[0])
	if err != nil {
		return err
	}
	claim, err := p.claim(ctx, first[0])
	if err != nil {
		restore()
		return err
	}
	_, _ = p.create(ctx, claim)
	_ = p.settle(ctx)
	_, _ = p.types(ctx)
	restore()
	if err := p.settle(ctx); err != nil {
		return err
	}
	types, err := p.types(ctx)
	if err != nil {
		return err
	}
	for _, t := range types {
		for _, o := range t.Offerings {
			if t.Name == first[0].Type && o.Requirements.Equal(first[0].Offering) && o.Available {
				return nil
			}
		}
	}
	return fmt.Errorf("%s is still unavailable although there is capacity again", first[0])
}

// describeTypes returns a text that is equal for catalogues with the same meaning.
func describeTypes(types []instancetypes.InstanceType) string {
	var b strings.Builder
	for _, t := range types {
		fmt.Fprintf(&b, "%s {%s} retired=%t capacity%s overhead%s%s%s\n", t.Name, t.Requirements, t.Retired, describeList(t.Capacity),
			describeList(t.Overhead.KubeReserved), describeList(t.Overhead.SystemReserved), describeList(t.Overhead.EvictionThreshold))
		for _, o := range t.Offerings {
			fmt.Fprintf(&b, "%s {%s} price=%g available=%t count=%d commitment=%q\n", t.Name, o.Requirements, o.Price, o.Available, o.ReservationCount, o.Commitment)
		}
	}
	return b.String()
}

func describeList(list corev1.ResourceList) string {
	var b strings.Builder
	b.WriteString("(")
	for _, name := range resources.Names(list) {
		fmt.Fprintf(&b, "%s=%s ", name, resources.Humane(name, resources.Capacity(name, list[name])))
	}
	return b.String() + ")"
}

func describeInstance(i cloudprovider.Instance) string {
	var b strings.Builder
	fmt.Fprintf(&b, "id=%s claim=%s pool=%s token=%s type=%s offering={%s} image=%s labels:",
		i.ID, i.Claim, i.Pool, i.Token, i.Type, i.Offering, i.ImageID)
	for _, key := range sortedKeys(i.Labels) {
		fmt.Fprintf(&b, " %s=%s", key, i.Labels[key])
	}
	return b.String() + " capacity" + describeList(i.Capacity) + " allocatable" + describeList(i.Allocatable)
}

// difference returns the first line in which two texts differ.
func difference(want, have string) string {
	w, h := strings.Split(want, "\n"), strings.Split(have, "\n")
	for i := range max(len(w), len(h)) {
		switch {
		case i >= len(w):
			return fmt.Sprintf("%q is too much", h[i])
		case i >= len(h):
			return fmt.Sprintf("%q is missing", w[i])
		case w[i] != h[i]:
			return fmt.Sprintf("%q instead of %q", h[i], w[i])
		}
	}
	return "nothing"
}
