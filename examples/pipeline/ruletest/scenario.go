package ruletest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/kwok"
	"github.com/joinery-sdk/joinery/scheduling"
)

// Scenario is what a test plans: a cluster, what may be bought for it, and pods. It is a value:
// every method returns a new one and does not change its receiver, so tests can share a base and
// add to it. Planning reports everything that is wrong with it at once. The zero value is an empty
// cluster that buys from EC2 in us-east-1.
type Scenario struct {
	files       []manifests.File
	types       []json.RawMessage
	region      string
	constraints []scheduling.Constraint
	ignoreSoft  bool
	softPrice   *float64
	now         time.Time
	errs        []error
}

// Object is something that a scenario can contain: a [Workload], a [NodePool], a [Node] or an
// [InstanceType].
type Object interface {
	// manifest returns the object as JSON. ours says that it is an entry of the test's catalogue,
	// and not an object of a cluster.
	manifest() (text json.RawMessage, ours bool, err error)
}

// New returns a scenario with the given objects.
func New(objects ...Object) Scenario { return Scenario{}.Add(objects...) }

// Add adds objects. If there is an [InstanceType] among them, pools buy from the added types and no
// longer from EC2.
func (s Scenario) Add(objects ...Object) Scenario {
	s.files, s.types, s.errs = slices.Clone(s.files), slices.Clone(s.types), slices.Clone(s.errs)
	for i, o := range objects {
		if o == nil {
			s.errs = append(s.errs, fmt.Errorf("ruletest: object %d of Add is nil; leave it out", i))
			continue
		}
		text, ours, err := o.manifest()
		switch {
		case err != nil:
			s.errs = append(s.errs, err)
		case ours:
			s.types = append(s.types, text)
		default:
			s.files = append(s.files, manifests.File{Name: "object", Data: text})
		}
	}
	return s
}

// Manifests adds the objects of a YAML or JSON text, which may have many documents.
func (s Scenario) Manifests(text string) Scenario {
	s.files = append(slices.Clone(s.files), manifests.File{Name: "manifests", Data: []byte(text)})
	return s
}

// Files adds the objects of YAML or JSON files. Of a directory it reads what [Scenario.FS] reads.
// The same files give the same plan as in provision and gate with their default flags: what files
// may leave out, such as a StorageClass, is assumed, and [Plan.Notes] says so. CapacityBuffers,
// which provision plans after all pods, are left out.
func (s Scenario) Files(names ...string) Scenario {
	s.files, s.errs = slices.Clone(s.files), slices.Clone(s.errs)
	for _, name := range names {
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			before, errs := len(s.files), len(s.errs)
			s = s.FS(os.DirFS(name), ".")
			if len(s.files) == before && len(s.errs) == errs {
				s.errs = append(s.errs, fmt.Errorf("ruletest: %s: no file below it ends in .yaml, .yml or .json", name))
			}
			for i := range s.files[before:] {
				s.files[before+i].Name = filepath.Join(name, s.files[before+i].Name)
			}
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			s.errs = append(s.errs, fmt.Errorf("ruletest: %w", err))
			continue
		}
		s.files = append(s.files, manifests.File{Name: name, Data: data})
	}
	return s
}

// FS adds the manifests of a file system: the files that match the patterns of [fs.Glob]. Of a
// directory it reads the *.yaml, *.yml and *.json files at any depth, and skips those without a
// Kubernetes object and directories such as .git; see [manifests.Below]. A pattern that matches
// nothing is an error.
func (s Scenario) FS(fsys fs.FS, patterns ...string) Scenario {
	s.files, s.errs = slices.Clone(s.files), slices.Clone(s.errs)
	if fsys == nil {
		s.errs = append(s.errs, errors.New("ruletest: FS needs a file system"))
		return s
	}
	read := func(name string, found bool) {
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			s.errs = append(s.errs, fmt.Errorf("ruletest: %w", err))
		}
		s.files = append(s.files, manifests.File{Name: name, Data: data, Found: found})
	}
	for _, pattern := range patterns {
		names, err := fs.Glob(fsys, pattern)
		if err == nil && len(names) == 0 {
			err = fs.ErrNotExist
		}
		if err != nil {
			s.errs = append(s.errs, fmt.Errorf("ruletest: %s: %w", pattern, err))
		}
		for _, name := range names {
			if info, err := fs.Stat(fsys, name); err == nil && !info.IsDir() {
				read(name, false)
				continue
			}
			below, err := manifests.Below(fsys, name)
			if err != nil {
				s.errs = append(s.errs, fmt.Errorf("ruletest: %s: %w", name, err))
			}
			for _, at := range below {
				read(at, true)
			}
		}
	}
	return s
}

// Region sets the region of the embedded EC2 catalogue from which pools buy. The default is the
// region that nodes, pools and node classes name, or else us-east-1.
func (s Scenario) Region(name string) Scenario {
	s.region = name
	return s
}

// Types lets pools buy from these types and no longer from EC2. They are converted as package kwok
// writes them.
func (s Scenario) Types(types ...instancetypes.InstanceType) Scenario {
	s.types, s.errs = slices.Clone(s.types), slices.Clone(s.errs)
	data, err := kwok.Write(types)
	var list []json.RawMessage
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil {
		s.errs = append(s.errs, fmt.Errorf("ruletest: types: %w", err))
	}
	s.types = append(s.types, list...)
	return s
}

// Constrain adds the caller's own constraints to those of the pods' manifests.
func (s Scenario) Constrain(constraints ...scheduling.Constraint) Scenario {
	s.constraints = append(slices.Clone(s.constraints), constraints...)
	return s
}

// IgnorePreferences plans without soft constraints.
func (s Scenario) IgnorePreferences() Scenario {
	s.ignoreSoft = true
	return s
}

// PreferencePrice plans with this [scheduling.Options.PreferencePrice].
func (s Scenario) PreferencePrice(share float64) Scenario {
	s.softPrice = &share
	return s
}

// At sets the moment for durations of do-not-disrupt annotations and ages of nodes, for rules about
// [RulesCost]. The default is now.
func (s Scenario) At(now time.Time) Scenario {
	s.now = now
	return s
}

// Solve plans the scenario. The error joins everything that is wrong with it.
func (s Scenario) Solve() (*Plan, error) {
	how := pipeline.ReadOptions()
	how.Files = named(s.files)
	m, err := manifests.Read(nil, how)
	if err := errors.Join(append(slices.Clone(s.errs), err)...); err != nil {
		return nil, err
	}
	market, err := s.market(m)
	if err != nil {
		return nil, err
	}
	snapshot, settings, err := pipeline.Snapshot(m, market)
	if err != nil {
		return nil, err
	}
	snapshot, joining := pipeline.Static(snapshot)
	packing := &binpack.Options{}
	packed, err := plan.Make(context.Background(), snapshot, &plan.Options{Scheduling: &scheduling.Options{
		IgnorePreferences: s.ignoreSoft, PreferencePrice: s.softPrice, Constraints: s.constraints,
	}, Packing: packing, Groups: pipeline.Groups(m, snapshot.Pods)})
	if err != nil {
		return nil, err
	}
	now := s.now
	if now.IsZero() {
		now = time.Now()
	}
	out := NewPlan(packed, packing).Guarded(simulate.ObjectsOf(m), now)
	out.notices = slices.Concat(m.Notes, settings, joining)
	return out, nil
}

// Plan is [Scenario.Solve] for a test. If there is no plan, it ends the test.
func (s Scenario) Plan(tb TB) *Plan {
	tb.Helper()
	p, err := s.Solve()
	if err != nil {
		tb.Fatalf("ruletest: the scenario cannot be planned:\n%v", err)
		return nil
	}
	p.tb = tb
	return p
}

// named numbers the files without a name, so that problems can tell them apart.
func named(files []manifests.File) []manifests.File {
	out := slices.Clone(files)
	count := map[string]int{}
	for i, f := range out {
		if f.Name == "object" || f.Name == "manifests" {
			count[f.Name]++
			out[i].Name = fmt.Sprintf("%s %d", f.Name, count[f.Name])
		}
	}
	return out
}

func (s Scenario) market(m *manifests.Snapshot) (*pipeline.Market, error) {
	if len(s.types) == 0 {
		region := s.region
		if region == "" {
			var err error
			if region, err = pipeline.RegionOf(m); err != nil {
				return nil, fmt.Errorf("ruletest: %w, with Scenario.Region", err)
			}
		}
		return pipeline.EC2Market(cmp.Or(region, pipeline.DefaultRegion))
	}
	data, err := json.Marshal(s.types)
	if err != nil {
		return nil, fmt.Errorf("ruletest: types: %w", err)
	}
	return pipeline.KWOKMarket("ruletest", data)
}

// NodePool builds a pool that may buy nodes. It is a value: every method returns a new one. The
// zero value has no name, and planning rejects it.
type NodePool struct {
	name   string
	weight *int
	only   []corev1.NodeSelectorRequirement
	taints []corev1.Taint
	labels map[string]string
	limits map[string]string
	err    error
}

// Pool returns a NodePool (karpenter.sh/v1) that may buy everything.
func Pool(name string) NodePool { return NodePool{name: name} }

// Only restricts what the pool may buy, in the text form of package requirements:
// "karpenter.sh/capacity-type=spot, karpenter.k8s.aws/instance-category in (c,m)".
func (p NodePool) Only(labels string) NodePool {
	list, err := expressions(labels)
	if err != nil {
		p.err = errors.Join(p.err, fmt.Errorf("ruletest: pool %q: %w", p.name, err))
	}
	p.only = append(slices.Clone(p.only), list...)
	return p
}

// Taint adds a taint to the pool's nodes: "dedicated=batch:NoSchedule".
func (p NodePool) Taint(taint string) NodePool {
	p.taints = append(slices.Clone(p.taints), taintOf(taint))
	return p
}

// Label adds a label to the pool's nodes.
func (p NodePool) Label(key, value string) NodePool {
	p.labels = with(p.labels, key, value)
	return p
}

// Weight orders pools, from 1 to 100: pods go to the pool with the greatest weight that can hold
// them.
func (p NodePool) Weight(weight int) NodePool {
	p.weight = &weight
	return p
}

// Limit limits the sum over the pool's nodes: Limit("cpu", "100"), Limit("nodes", "3").
func (p NodePool) Limit(resource, quantity string) NodePool {
	p.limits = with(p.limits, resource, quantity)
	return p
}

func (p NodePool) manifest() (json.RawMessage, bool, error) { //nolint:unparam // an object of a kind with several answers
	if p.err != nil {
		return nil, false, p.err
	}
	type object map[string]any
	if p.only == nil {
		p.only = []corev1.NodeSelectorRequirement{}
	}
	spec := object{"template": object{
		"metadata": object{"labels": p.labels},
		"spec": object{
			"requirements": p.only, "taints": p.taints,
			"nodeClassRef": object{"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
		},
	}}
	if p.weight != nil {
		spec["weight"] = p.weight
	}
	if p.limits != nil {
		spec["limits"] = p.limits
	}
	text, err := json.Marshal(object{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": object{"name": p.name}, "spec": spec})
	return text, false, err
}

// Node builds an existing node. It is a value: every method returns a new one. The zero value has
// no name, and planning rejects it.
type Node struct {
	name   string
	labels map[string]string
	taints []corev1.Taint
	room   corev1.ResourceList
	err    error
}

// ExistingNode returns a ready node with the given allocatable resources: names and quantities
// alternate. Without "pods" there are 110.
func ExistingNode(name string, allocatable ...string) Node {
	n := Node{name: name, labels: map[string]string{corev1.LabelHostname: name}}
	n.room, n.err = quantities(allocatable)
	if n.err != nil {
		n.err = fmt.Errorf("ruletest: node %q: %w", name, n.err)
	}
	if _, ok := n.room[corev1.ResourcePods]; !ok {
		pods, _ := quantities([]string{"pods", "110"})
		maps.Copy(n.room, pods)
	}
	return n
}

// Label adds a label to the node.
func (n Node) Label(key, value string) Node {
	n.labels = with(n.labels, key, value)
	return n
}

// Taint adds a taint to the node: "dedicated=batch:NoSchedule".
func (n Node) Taint(taint string) Node {
	n.taints = append(slices.Clone(n.taints), taintOf(taint))
	return n
}

func (n Node) manifest() (json.RawMessage, bool, error) { //nolint:unparam // an object of a kind with several answers
	if n.err != nil {
		return nil, false, n.err
	}
	text, err := json.Marshal(&corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: n.labels},
		Spec:       corev1.NodeSpec{Taints: n.taints},
		Status: corev1.NodeStatus{
			Capacity: n.room, Allocatable: n.room,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	})
	return text, false, err
}

// InstanceType builds a type for pools to buy, in place of EC2's types. It is a value: every method
// returns a new one. The zero value has no name, and planning rejects it.
type InstanceType struct {
	name   string
	room   corev1.ResourceList
	labels []corev1.NodeSelectorRequirement
	arch   string
	offers []map[string]any
	err    error
}

// Type returns an amd64 machine with Linux and the given resources for pods: names and quantities
// alternate. Without "pods" there are 110.
func Type(name string, allocatable ...string) InstanceType {
	t := InstanceType{name: name, arch: "amd64"}
	t.room, t.err = quantities(allocatable)
	if t.err != nil {
		t.err = fmt.Errorf("ruletest: type %q: %w", name, t.err)
	}
	return t
}

// Label adds a label to the type; "kubernetes.io/arch" is its architecture.
func (t InstanceType) Label(key, value string) InstanceType {
	if key == corev1.LabelArchStable {
		t.arch = value
		return t
	}
	others := slices.DeleteFunc(slices.Clone(t.labels), func(r corev1.NodeSelectorRequirement) bool { return r.Key == key })
	t.labels = append(others, labelled(key, value))
	return t
}

// Offer sells the type in a zone, as "on-demand", "spot" or "reserved", at a price in dollars an
// hour.
func (t InstanceType) Offer(zone, capacityType string, price float64) InstanceType {
	wrong := func(format string, args ...any) {
		t.err = errors.Join(t.err, fmt.Errorf("ruletest: type %q: "+format, append([]any{t.name}, args...)...))
	}
	if zone == "" {
		wrong("an offer needs a zone")
	}
	if !(price >= 0) || math.IsInf(price, 1) {
		wrong("price %v: want dollars an hour, 0 or more", price)
		price = 0
	}
	if kinds := []string{instancetypes.CapacityTypeOnDemand, instancetypes.CapacityTypeSpot, instancetypes.CapacityTypeReserved}; !slices.Contains(kinds, capacityType) {
		wrong("capacity type %q: want one of %s%s", capacityType, strings.Join(kinds, ", "), hint(capacityType, kinds))
	}
	t.offers = append(slices.Clone(t.offers), map[string]any{
		"Price": price, "Available": true, "Requirements": []corev1.NodeSelectorRequirement{
			labelled(corev1.LabelTopologyZone, zone), labelled("karpenter.sh/capacity-type", capacityType),
		},
	})
	return t
}

func labelled(key, value string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}
}

func (t InstanceType) manifest() (json.RawMessage, bool, error) { //nolint:unparam // an object of a kind with several answers
	if t.err != nil {
		return nil, true, t.err
	}
	text, err := json.Marshal(map[string]any{
		"name": t.name, "architecture": t.arch, "operatingSystems": []string{"linux"}, "resources": t.room, "requirements": t.labels, "offerings": t.offers,
	})
	return text, true, err
}

func taintOf(text string) corev1.Taint {
	key, value, effect := splitTaint(strings.TrimSpace(text))
	return corev1.Taint{Key: key, Value: value, Effect: effect}
}

func with(m map[string]string, key, value string) map[string]string {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]string{}
	}
	out[key] = value
	return out
}
