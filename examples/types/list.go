package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/label"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
	"github.com/joinery-sdk/joinery/instancetypes/kwok"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// entry is a type that is listed, with those of its offerings that match.
type entry struct {
	instancetypes.InstanceType
	price float64 // the least of an available offering; +Inf = none
}

// list finds the types and orders them; notes are for stderr.
func (o *options) list(market *pipeline.Market, ask requirements.Set, read *manifests.Snapshot) ([]entry, []string, error) {
	pool, notes, err := o.source(market, ask, read)
	if err != nil {
		return nil, nil, err
	}
	if err := known(ask, pool.Types); err != nil {
		return nil, nil, inputs.Bad(err)
	}
	asked := ask
	if len(o.Files) > 0 {
		// Keys of the pool's own are no property of a type.
		own := pool.NodeRequirements()
		if asked, err = ask.Intersect(own.Restrict(keys(pool.Types))); err != nil {
			return nil, nil, inputs.Bad(fmt.Errorf("--requirement against pool %s: %w", pool.Name, err))
		}
	}
	var entries []entry
	for _, t := range pool.Types {
		if e, ok := match(t, asked); ok && (!o.buyable || !math.IsInf(e.price, 1)) {
			entries = append(entries, e)
		}
	}
	if len(entries) == 0 {
		notes = append(notes, why(market, ask, pool.Types)...)
	}
	o.order(entries)
	if o.limit > 0 && len(entries) > o.limit {
		notes = append(notes, terminal.Plural(len(entries)-o.limit, "more type"))
		entries = entries[:o.limit]
	}
	return entries, notes, nil
}

// match cuts a type down to the offerings that ask admits; false if it has some and none is.
func match(t instancetypes.InstanceType, ask requirements.Set) (entry, bool) {
	e := entry{InstanceType: t, price: math.Inf(1)}
	if len(t.Offerings) == 0 {
		return e, ask.Compatible(t.Requirements, requirements.Keys{})
	}
	e.Offerings = nil
	for _, offering := range t.Offerings {
		if !(instancetypes.PriceQuery{Type: t, Offering: offering}).Matches(ask) {
			continue
		}
		e.Offerings = append(e.Offerings, offering)
		if offering.Available {
			e.price = min(e.price, offering.Price)
		}
	}
	return e, len(e.Offerings) > 0
}

// keys are the labels that a type of the catalogue may have; the pool's name is none.
func keys(types []instancetypes.InstanceType) requirements.Keys {
	names := slices.Collect(ec2.WellKnown().Union(kwok.WellKnown(types)).All())
	return requirements.KeysOf(slices.DeleteFunc(names, func(key string) bool { return key == instancetypes.LabelNodePool })...)
}

// source is the pool of the manifests, or one that stands for the flags.
func (o *options) source(market *pipeline.Market, ask requirements.Set, read *manifests.Snapshot) (scheduling.Pool, []string, error) {
	s, err := o.fromFlags(ask)
	if err != nil {
		return scheduling.Pool{}, nil, err
	}
	var notes []string
	if read != nil {
		if s, err = o.pick(read, s); err != nil {
			return scheduling.Pool{}, nil, inputs.Bad(err)
		}
		notes = read.Notes
	}
	pools, _, err := market.Pools(s)
	if err != nil {
		return scheduling.Pool{}, nil, inputs.Bad(err)
	}
	return pools[0], notes, nil
}

// fromFlags is a cluster of one pool with one node class that say what the flags say.
func (o *options) fromFlags(ask requirements.Set) (*manifests.Snapshot, error) {
	family, err := ec2.ParseFamily(o.family)
	if err != nil {
		return nil, inputs.Bad(fmt.Errorf("--ami-family: %w", err))
	}
	class := nodeclass.NodeClass{Name: "flags", Family: family, RAID0: o.raid0}
	if o.disk != "" {
		q, err := resources.Parse(o.disk)
		if err != nil || q.Sign() <= 0 {
			return nil, inputs.Bad(fmt.Errorf("--disk %q: want a size such as 50Gi", o.disk))
		}
		class.BlockDevices = []nodeclass.BlockDevice{{Root: true, Bytes: resources.Request(corev1.ResourceEphemeralStorage, q)}}
	}
	kubelet := &nodepool.Kubelet{}
	for _, f := range []struct {
		name  string
		value int32
		into  **int32
	}{{"max-pods", o.maxPods, &kubelet.MaxPods}, {"pods-per-core", o.podsPerCore, &kubelet.PodsPerCore}} {
		if f.value < 0 {
			return nil, inputs.Bad(fmt.Errorf("--%s %d: want 0 or more", f.name, f.value))
		}
		if f.value > 0 {
			*f.into = &f.value
		}
	}
	settings := map[string]string{}
	for _, f := range []struct{ flag, key, value string }{
		{"reserved-enis", "aws.reservedENIs", strconv.Itoa(int(o.reservedENIs))}, {"vm-memory-overhead", "aws.vmMemoryOverheadPercent", o.memoryOverhead},
	} {
		if f.value == "" {
			continue
		}
		settings[f.key] = f.value
		if _, err := (ec2.Settings{}).WithGlobal(map[string]string{f.key: f.value}); err != nil {
			return nil, inputs.Bad(fmt.Errorf("--%s %s", f.flag, strings.TrimPrefix(err.Error(), "ec2: global settings: "+f.key+": ")))
		}
	}
	pool := nodepool.NodePool{Name: "flags", Kind: "NodePool", APIVersion: nodepool.V1, Kubelet: kubelet, Requirements: ask}
	pool.NodeClass = nodepool.NodeClassRef{Group: label.Group, Kind: "EC2NodeClass", Name: class.Name}
	return &manifests.Snapshot{NodePools: []nodepool.NodePool{pool}, NodeClasses: []manifests.NodeClass{{APIVersion: label.Group + "/v1", Kind: pool.NodeClass.Kind, Name: class.Name, Value: class}}, Settings: settings}, nil
}

// pick is the cluster with only the pool that is asked for. A cluster with node classes alone is
// listed for its class.
func (o *options) pick(read, flags *manifests.Snapshot) (*manifests.Snapshot, error) {
	s := *read
	if len(read.NodePools) > 0 && (o.maxPods > 0 || o.podsPerCore > 0) {
		return nil, errors.New("the manifests have a pool, which says what its kubelets do: leave out --max-pods and --pods-per-core")
	}
	var names []string
	for _, p := range read.NodePools {
		names = append(names, p.Name)
	}
	switch {
	case o.pool != "":
		i := slices.Index(names, o.pool)
		if i < 0 {
			hint := ""
			if near, ok := requirements.Nearest(o.pool, names); ok {
				hint = fmt.Sprintf(" (did you mean %q?)", near)
			}
			return nil, fmt.Errorf("--pool %q: the manifests have %s%s", o.pool, cmp.Or(strings.Join(names, ", "), "no pool"), hint)
		}
		s.NodePools = read.NodePools[i : i+1]
	case len(names) == 1:
	case len(names) > 1:
		return nil, fmt.Errorf("the manifests have several pools: choose one by --pool: %s", strings.Join(names, ", "))
	case len(read.NodeClasses) == 1:
		s.NodePools = slices.Clone(flags.NodePools)
		class := read.NodeClasses[0]
		group, _, _ := strings.Cut(class.APIVersion, "/")
		s.NodePools[0].NodeClass = nodepool.NodeClassRef{Group: group, Kind: class.Kind, Name: class.Name}
	default:
		return nil, errors.New("the manifests have neither a pool nor one node class")
	}
	return &s, nil
}

// known refuses keys that no type of the catalogue speaks of.
func known(ask requirements.Set, types []instancetypes.InstanceType) error {
	all := keys(types)
	names := slices.Collect(all.All())
	var errs []error
	for r := range ask.All() {
		if all.Contains(r.Key()) {
			continue
		}
		hint := ""
		if near, ok := requirements.Nearest(r.Key(), names); ok {
			hint = fmt.Sprintf(" (did you mean %q?)", near)
		} else if near := bySuffix(r.Key(), names); near != "" {
			hint = fmt.Sprintf(" (did you mean %q?)", near)
		}
		errs = append(errs, fmt.Errorf("--requirement: no type has the label %q%s", r.Key(), hint))
	}
	return errors.Join(errs...)
}

// bySuffix finds the key by its last part, such as instance-family.
func bySuffix(key string, names []string) string {
	_, last, ok := strings.Cut(key, "/")
	if !ok {
		last = key
	}
	for _, name := range names {
		if _, own, _ := strings.Cut(name, "/"); own == last || own == "instance-"+last {
			return name
		}
	}
	return ""
}

// why says which values nobody has, and the nearest ones.
func why(market *pipeline.Market, ask requirements.Set, types []instancetypes.InstanceType) []string {
	notes := []string{"no type satisfies all requirements"}
	for r := range ask.All() {
		values, finite := r.Values()
		if !finite {
			continue
		}
		have := map[string]bool{}
		for _, t := range types {
			own, _ := t.Requirements.Get(r.Key()).Values()
			for _, v := range own {
				have[v] = true
			}
		}
		list := slices.Sorted(maps.Keys(have))
		for _, v := range values {
			switch elsewhere := market.Elsewhere(r.Key(), v); {
			case have[v]:
			case elsewhere != "":
				notes = append(notes, elsewhere)
			default:
				note := fmt.Sprintf("%s: no type has %q", r.Key(), v)
				if near, ok := requirements.Nearest(v, list); ok {
					note += fmt.Sprintf(" (did you mean %q?)", near)
				}
				notes = append(notes, note)
			}
		}
	}
	return notes
}

// order sorts by the flag, then price, then name.
func (o *options) order(entries []entry) {
	size := func(e entry, name corev1.ResourceName) int64 {
		for _, s := range e.Breakdown() {
			if s.Resource == name {
				return s.Allocatable
			}
		}
		return 0
	}
	slices.SortStableFunc(entries, func(a, b entry) int {
		first := 0
		switch o.sort {
		case "cpu":
			first = cmp.Compare(size(a, corev1.ResourceCPU), size(b, corev1.ResourceCPU))
		case "memory":
			first = cmp.Compare(size(a, corev1.ResourceMemory), size(b, corev1.ResourceMemory))
		case "name":
			return strings.Compare(a.Name, b.Name)
		}
		return cmp.Or(first, cmp.Compare(a.price, b.price), strings.Compare(a.Name, b.Name))
	})
}
