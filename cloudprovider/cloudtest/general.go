package cloudtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
)

func generalCases() []testCase {
	return []testCase{
		{"context-done", "A call whose context is done before it begins fails with the error of the context and no code, and Create then makes no instance.", contextDone},
		{"errors-closed", "Every failure that the cloud reports is one of the closed list of errors, and exactly one, except internal errors, whose outcome is unknown.", errorsClosed},
		{"lost-read", "A call that could not read something, because a reply of the cloud was lost, asks again or fails without a code. It never takes the loss for an answer.", lostReads},
		{"all-at-once", "All methods may be called concurrently.", allAtOnce},
		{"arguments", "Arguments are left as they are.", arguments},
		{"results", "Results belong to the caller, who may change them without any effect on later results.", results},
	}
}

func contextDone(ctx context.Context, p *probe) error {
	claim, launch, err := p.launch(ctx)
	if err != nil {
		return err
	}
	fresh, err := p.claim(ctx)
	if err != nil {
		return err
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	provider := p.h.Provider
	for _, call := range []struct {
		name string
		do   func() error
	}{
		{"InstanceTypes", func() error { _, err := provider.InstanceTypes(done, p.h.Pool); return err }},
		{"Create", func() error { _, err := provider.Create(done, fresh); return err }},
		{"Get", func() error { _, err := provider.Get(done, launch.ID); return err }},
		{"List", func() error { _, err := provider.List(done); return err }},
		{"Drifted", func() error { _, err := provider.Drifted(done, launch.ID); return err }},
		{"Delete", func() error { return provider.Delete(done, launch.ID) }},
	} {
		err := p.retry(ctx, call.do)
		coded := slices.ContainsFunc(cloudprovider.Codes(), func(code error) bool { return errors.Is(err, code) })
		if coded || !errors.Is(err, context.Canceled) {
			return fmt.Errorf("%s with a cancelled context returned the error %w", call.name, orNil(err))
		}
	}
	if err := p.count(ctx, fresh, 0); err != nil {
		return err
	}
	if _, err := p.create(ctx, fresh); err != nil {
		return fmt.Errorf("the context of Create was cancelled, and the same claim failed afterwards: %w", err)
	}
	return p.count(ctx, claim, 1)
}

// orNil returns err, or an error with the text "nil", so that the result can always be wrapped.
func orNil(err error) error {
	if err == nil {
		return errors.New("nil")
	}
	return err
}

func errorsClosed(ctx context.Context, p *probe) error {
	invalid, err := p.claim(ctx)
	if err != nil {
		return err
	}
	invalid.Candidates = nil
	provider := p.h.Provider
	for _, call := range []struct {
		name string
		do   func() error
	}{
		{"Get of an unknown id", func() error { _, err := provider.Get(ctx, noInstance); return err }},
		{"Delete of an unknown id", func() error { return provider.Delete(ctx, noInstance) }},
		{"Drifted of an unknown id", func() error { _, err := provider.Drifted(ctx, noInstance); return err }},
		{"Create of an invalid claim", func() error { _, err := provider.Create(ctx, invalid); return err }},
	} {
		if err := oneCode(call.name, p.retry(ctx, call.do)); err != nil {
			return err
		}
	}
	if p.h.Exhaust == nil {
		return nil
	}
	scarce, err := p.claim(ctx)
	if err != nil {
		return err
	}
	restore, err := p.exhaust(ctx, scarce.Candidates[0])
	if err != nil {
		return err
	}
	defer restore()
	_, err = p.create(ctx, scarce)
	return oneCode("Create without capacity", err)
}

func oneCode(what string, err error) error {
	if err == nil {
		return fmt.Errorf("%s succeeded", what)
	}
	var codes []error
	for _, code := range cloudprovider.Codes() {
		if errors.Is(err, code) {
			codes = append(codes, code)
		}
	}
	var detail *cloudprovider.Error
	switch {
	case len(codes) != 1:
		return fmt.Errorf("%s failed with %d codes %q: %w", what, len(codes), codes, err)
	case !errors.As(err, &detail):
		return fmt.Errorf("%s failed with an error that is not a *cloudprovider.Error: %w", what, err)
	}
	return nil
}

func allAtOnce(ctx context.Context, p *probe) error {
	const workers = 6
	errs := make([]error, workers)
	var group sync.WaitGroup
	for i := range workers {
		group.Go(func() { errs[i] = p.oneLife(ctx, i%2 == 0) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	list, err := p.list(ctx)
	if err != nil {
		return err
	}
	ids := map[string]bool{}
	for _, i := range list {
		ids[i.ID] = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	unique := map[string]bool{}
	stay := 0
	for _, id := range p.made {
		if unique[id] {
			return fmt.Errorf("two claims got the instance %q", id)
		}
		if unique[id] = true; ids[id] {
			stay++
		}
	}
	if stay != workers/2 {
		return fmt.Errorf("%d instances were made at the same time and half of them deleted; List shows %d instead of %d", workers, stay, workers/2)
	}
	return nil
}

// oneLife calls every method once.
func (p *probe) oneLife(ctx context.Context, end bool) error {
	_, launch, err := p.launch(ctx)
	if err != nil {
		return err
	}
	if _, err := p.types(ctx); err != nil {
		return err
	}
	// The cloud may lag: only a wrong answer is a fault, not a missing one.
	if have, err := p.get(ctx, launch.ID); err == nil && have.ID != launch.ID {
		return fmt.Errorf("Get of %q returned %q", launch.ID, have.ID)
	}
	if _, err := patiently(ctx, p, func() ([]cloudprovider.Instance, error) { return p.h.Provider.List(ctx) }); err != nil {
		return fmt.Errorf("List failed: %w", err)
	}
	if _, err := p.h.Provider.Drifted(ctx, launch.ID); err != nil && !errors.Is(err, cloudprovider.ErrNotFound) && cloudprovider.Advise(err).Retry != cloudprovider.RetrySame {
		return fmt.Errorf("Drifted failed: %w", err)
	}
	if end {
		if err := p.delete(ctx, launch.ID); err != nil {
			return fmt.Errorf("Delete failed: %w", err)
		}
	}
	return nil
}

func arguments(ctx context.Context, p *probe) error {
	two, err := p.candidates(ctx, 2)
	if err != nil {
		return err
	}
	slices.Reverse(two) // a provider that sorts by price would change this
	claim, err := p.claim(ctx, two...)
	if err != nil {
		return err
	}
	claim.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m")}
	claim.Taints = []corev1.Taint{
		{Key: "cloudtest.example.com/z", Effect: corev1.TaintEffectNoSchedule},
		{Key: "cloudtest.example.com/a", Effect: corev1.TaintEffectNoSchedule},
	}
	kept := claim.Clone()
	pool := p.h.Pool
	labels, annotations := maps.Clone(pool.Labels), maps.Clone(pool.Annotations)
	if _, err := p.create(ctx, claim); err != nil {
		return fmt.Errorf("Create failed: %w", err)
	}
	if _, err := p.types(ctx); err != nil {
		return err
	}
	if !claim.Equal(kept) {
		return fmt.Errorf("Create changed its claim: %+v instead of %+v", claim, kept)
	}
	if !maps.Equal(labels, pool.Labels) || !maps.Equal(annotations, pool.Annotations) {
		return errors.New("InstanceTypes changed its pool")
	}
	// The provider must also not depend on what the caller does with them afterwards.
	if len(claim.Candidates) > 1 {
		claim.Candidates[0], claim.Candidates[1] = claim.Candidates[1], claim.Candidates[0]
	}
	claim.Labels["cloudtest.example.com/later"] = "changed"
	if _, err := p.create(ctx, kept); err != nil {
		return fmt.Errorf("Create kept its argument, which the caller has changed since: %w", err)
	}
	return nil
}

func results(ctx context.Context, p *probe) error {
	claim, launch, err := p.launch(ctx)
	if err != nil {
		return err
	}
	want := describeInstance(launch.Instance)
	spoilInstance(launch.Instance)
	again, err := p.create(ctx, claim)
	if err != nil {
		return fmt.Errorf("Create failed: %w", err)
	}
	if have := describeInstance(again.Instance); have != want {
		return fmt.Errorf("what Create returned was changed, and now it returns %s instead of %s", have, want)
	}
	spoilInstance(again.Instance)
	list, err := p.list(ctx)
	if err != nil {
		return err
	}
	for _, i := range list {
		spoilInstance(i)
	}
	have, err := p.get(ctx, launch.ID)
	if err != nil {
		return fmt.Errorf("Get failed: %w", err)
	}
	if have := describeInstance(have); have != want {
		return fmt.Errorf("what List returned was changed, and Get says %s instead of %s", have, want)
	}
	spoilInstance(have)
	if have, err = p.get(ctx, launch.ID); err != nil || describeInstance(have) != want {
		return fmt.Errorf("what Get returned was changed, and it says %s instead of %s, error %w", describeInstance(have), want, orNil(err))
	}
	types, err := p.types(ctx)
	if err != nil {
		return err
	}
	text := describeTypes(types)
	spoilTypes(types)
	if types, err = p.types(ctx); err != nil {
		return err
	}
	if have := describeTypes(types); have != text {
		return fmt.Errorf("what InstanceTypes returned was changed, and now it says: %s", difference(text, have))
	}
	return nil
}

func spoilInstance(i cloudprovider.Instance) {
	for key := range i.Labels {
		i.Labels[key] = "spoilt"
	}
	spoilList(i.Capacity)
	spoilList(i.Allocatable)
}

func spoilList(list corev1.ResourceList) {
	for name := range list {
		list[name] = resource.MustParse("424242")
	}
}

func spoilTypes(types []instancetypes.InstanceType) {
	for i := range types {
		for j := range types[i].Offerings {
			types[i].Offerings[j] = instancetypes.Offering{Requirements: requirements.Impossible(), Price: 424242}
		}
		spoilList(types[i].Capacity)
		spoilList(types[i].Overhead.KubeReserved)
		spoilList(types[i].Overhead.SystemReserved)
		spoilList(types[i].Overhead.EvictionThreshold)
		types[i].Name = "spoilt"
	}
}
