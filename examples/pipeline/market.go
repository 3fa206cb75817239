package pipeline

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/describe"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
	"github.com/joinery-sdk/joinery/instancetypes/kwok"
	"github.com/joinery-sdk/joinery/instancetypes/pricing"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Market is what can be bought and the price list that applies. It is immutable.
type Market struct {
	// List names the price list. Date is its date, YYYY-MM-DD, or empty if the list has none.
	List, Date string
	// Notes are remarks on the prices.
	Notes []string

	region *catalogue.Region            // EC2
	layers []instancetypes.PriceSource  // on top of the region's prices
	fixed  []instancetypes.InstanceType // anything else
	free   map[string]int               // instances that a capacity reservation has left, by id
	now    time.Time                    // see At
}

// At returns the market at a moment: capacity reservations that have ended by then are not used. The
// moment of other markets is that of the call of Pools.
func (m *Market) At(now time.Time) *Market {
	out := *m
	out.now = now
	return &out
}

// EC2Market returns the market of a region of the embedded EC2 catalogue.
func EC2Market(region string) (*Market, error) {
	r, err := catalogue.Load(region)
	if err != nil {
		return nil, err
	}
	return ec2Market(r), nil
}

// DescribedMarket is EC2Market with the output of `aws ec2 describe-instance-types` in place of the
// embedded descriptions.
func DescribedMarket(region string, answer []byte) (*Market, error) {
	live, err := describe.Read(answer)
	if err != nil {
		return nil, err
	}
	r, err := catalogue.Load(region)
	if err != nil {
		return nil, err
	}
	return ec2Market(ec2.WithDescriptions(r, live)), nil
}

func ec2Market(r catalogue.Region) *Market {
	m := &Market{List: "EC2 on-demand " + r.Name, Date: r.OnDemandDate, Notes: []string{spotNote(r)}, region: &r}
	if r.ZonesAssumed {
		m.Notes = append(m.Notes, zonesNote(r))
	}
	return m
}

// spotNote says what the spot prices of a catalogue's region are.
func spotNote(r catalogue.Region) string {
	if r.SpotDate == "" {
		return fmt.Sprintf("there are no spot prices of %s, so nothing is bought as spot", r.Name)
	}
	return "spot prices are estimates of " + r.SpotDate
}

func zonesNote(r catalogue.Region) string {
	return fmt.Sprintf("it is not known which zones of %s offer a type; each is taken to be offered in all of them", r.Name)
}

// KWOKMarket returns the market of a catalogue in the format of Karpenter's KWOK provider.
func KWOKMarket(name string, file []byte) (*Market, error) {
	types, err := kwok.Read(file)
	if err != nil {
		return nil, err
	}
	return &Market{List: name, fixed: types}, nil
}

// Len returns the number of instance types.
func (m *Market) Len() int {
	if m.region != nil {
		return len(m.region.Offers)
	}
	return len(m.fixed)
}

// Pools gives each pool what it can buy: the types under the settings of its node class and kubelet
// and under its provider's defaults. Overlays correct prices and capacity. Pools with the same
// settings share one slice of types. A pool of another cloud than EC2 has no types, unless the
// catalogue is a file. The capacity reservations in the status of a node class are offerings of its
// pools, see [ec2.Reserve]; a catalogue from a file has its own.
//
// The notes name such pools, settings that differ from the AWS provider's, and what is not for
// sale. The error joins all faults.
func (m *Market) Pools(s *manifests.Snapshot) (out []scheduling.Pool, notes []string, err error) {
	out = make([]scheduling.Pool, 0, len(s.NodePools))
	bare, tables := map[string]table{}, map[string]table{} // without and with the corrections of overlays
	var said remarks
	applied := map[string]bool{} // by the name of an overlay
	for _, pool := range s.NodePools {
		correction, err := CorrectionOf(s, pool)
		if err != nil {
			return nil, nil, err
		}
		for _, name := range correction.Overlays {
			applied[name] = true
		}
		owner := cloudOf(pool)
		switch {
		case m.region == nil:
			found, ok := tables[correction.Key]
			if !ok {
				found.types = correction.Apply(m.fixed)
				tables[correction.Key] = found
			}
			out = append(out, scheduling.Pool{NodePool: nodepool.Apply(pool, nodepool.LinuxByDefault), Types: found.types})
			continue
		case !owner.ec2:
			said.add(pool, owner.foreign())
			out = append(out, scheduling.Pool{NodePool: nodepool.Apply(pool, nodepool.LinuxByDefault)})
			continue
		}
		class, settings, err := m.settings(s, pool)
		if err != nil {
			return nil, nil, located(s, pool, err)
		}
		note := func(texts ...string) { said.add(pool, texts...) }
		if owner.auto {
			note("EKS Auto Mode: prices are EC2's, without the fee that AWS adds")
			settings = ec2.AutoSettings(settings)
		} else {
			note(settings.Notes()...)
		}
		if class != nil && class.Kubelet != nil {
			if names := class.Kubelet.Unplanned(); len(names) > 0 {
				note(fmt.Sprintf("sizes of nodes do not depend on the kubelet's %s of %s %s", strings.Join(names, ", "), class.Kind, class.Name))
			}
		}
		if settings.Family.IsWindows() {
			note("prices are those of Linux; the licence of Windows is not in them")
		}
		pool = withEC2Defaults(pool, class)
		key := fmt.Sprintf("%t %+v", owner.auto, describedSettings(settings))
		if class != nil && len(class.Status.Reservations) > 0 {
			key += " " + class.Kind + " " + class.Name
		}
		found, ok := tables[key+"\n"+correction.Key]
		if !ok {
			if found, ok = bare[key]; !ok {
				if found, err = m.table(owner, settings, class); err != nil {
					return nil, nil, located(s, pool, err)
				}
				bare[key] = found
			}
			found.types = correction.Apply(found.types)
			tables[key+"\n"+correction.Key] = found
		}
		note(m.unsold(pool, found.types)...)
		if pool.Requirements.Get(instancetypes.LabelCapacityType).Contains(instancetypes.CapacityTypeReserved) {
			note(unresolved(pool, class)...)
			note(found.unused...)
		}
		out = append(out, scheduling.Pool{NodePool: pool, Types: revived(found.types, pool)})
	}
	var errs []error
	for _, pool := range out {
		errs = append(errs, located(s, pool.NodePool, (&scheduling.Snapshot{Pools: []scheduling.Pool{pool}}).Check()))
	}
	notes = said.notes()
	for _, o := range s.NodeOverlays {
		if !applied[o.Name] && len(s.NodePools) > 0 {
			notes = append(notes, fmt.Sprintf("NodeOverlay %s changes nothing: no pool has the name and labels that it requires", o.Name))
		}
	}
	return out, notes, errors.Join(errs...)
}

// table is what pools with the same settings can buy. unused says which capacity reservations of
// their node class cannot be bought, and why.
type table struct {
	types  []instancetypes.InstanceType
	unused []string
}

// table returns what pools of a region can buy, without the corrections of overlays.
func (m *Market) table(owner cloud, settings ec2.Settings, class *nodeclass.NodeClass) (table, error) {
	types, err := ec2.Types(*m.region, settings)
	if err != nil {
		return table{}, err
	}
	if len(m.layers) > 0 {
		types = instancetypes.Reprice(types, m.layers...)
	}
	types, unused := m.reserved(types, class)
	if owner.auto { // it renames labels of reservations, too
		types = ec2.AutoMode(types)
	}
	return table{types, unused}, nil
}

// Correction is what NodeOverlays do to the instance types of a pool, see [CorrectionOf]. The zero
// value does nothing.
type Correction struct {
	// Overlays names the overlays that the name and labels of the pool meet.
	Overlays []string
	// Key is equal for pools whose types are corrected alike.
	Key string

	layer pricing.Overlays
}

// CorrectionOf returns what the NodeOverlays of the manifests do to the types of a pool. To their
// requirements, the name and the labels of the pool are labels of every type. The error joins
// overlays that contradict each other.
func CorrectionOf(s *manifests.Snapshot, pool nodepool.NodePool) (Correction, error) {
	var out Correction
	labels := requirements.KubernetesAliases().Labels(pool.PoolLabels())
	var list []pricing.Overlay
	for _, o := range s.NodeOverlays {
		overlay, ok := pricing.Overlay{
			Name: o.Name, Weight: o.Weight, Match: o.Requirements, Price: o.Price, Adjustment: o.Adjustment, Percent: o.Percent, Capacity: o.Capacity,
		}.On(labels)
		if ok {
			list, out.Overlays = append(list, overlay), append(out.Overlays, o.Name)
			out.Key += o.Name + " " + overlay.Match.String() + "\n"
		}
	}
	var err error
	out.layer, err = pricing.NewOverlays(list...)
	return out, err
}

// Apply returns the types with corrected prices and resources. The result is new, unless there is
// nothing to correct.
func (c Correction) Apply(types []instancetypes.InstanceType) []instancetypes.InstanceType {
	if len(c.Overlays) == 0 {
		return types
	}
	return instancetypes.Reprice(c.layer.Extend(types), c.layer)
}

// settings returns the settings of the pool's node class or inline provider, combined with those of
// its kubelet.
func (m *Market) settings(s *manifests.Snapshot, pool nodepool.NodePool) (*nodeclass.NodeClass, ec2.Settings, error) {
	var class *nodeclass.NodeClass
	if pool.Provider != nil {
		inline, err := nodeclass.DecodeProvider(pool.Provider)
		if err != nil {
			return nil, ec2.Settings{}, err
		}
		class = &inline
	}
	if c, ok := s.ClassOf(pool); ok && class == nil {
		if decoded, ok := c.Value.(nodeclass.NodeClass); ok {
			class = &decoded
		}
	}
	if class == nil && cloudOf(pool).auto {
		auto := nodeclass.Auto()
		class = &auto
	}
	var out ec2.Settings
	if class != nil {
		out = class.Settings()
	}
	out.Attachments = attachments(s.DaemonSets)
	out, err := out.WithGlobal(s.Settings)
	if err != nil {
		return nil, out, err
	}
	if k := pool.Kubelet; k != nil {
		out.Kubelet = ec2.Kubelet{
			MaxPods: k.MaxPods, PodsPerCore: k.PodsPerCore, KubeReserved: k.KubeReserved, SystemReserved: k.SystemReserved,
			EvictionHard: k.EvictionHard, EvictionSoft: k.EvictionSoft,
		}
	}
	if pool.APIVersion == nodepool.V1Alpha5 {
		out.SoftEviction, out.LegacyLabels = true, true
	}
	return class, out, nil
}

// describedSettings returns the settings in a form that prints by value, to find out whether two
// pools share their types.
func describedSettings(s ec2.Settings) any {
	text, err := json.Marshal(struct {
		Family   ec2.Family
		Kubelet  ec2.Kubelet
		Disks    []ec2.BlockDevice
		Flags    []bool
		Numbers  []int64
		Volumes  ec2.Attachments
		VMMemory string
	}{
		s.Family, s.Kubelet, s.BlockDevices,
		[]bool{s.RAID0, s.PrefixDelegation, s.FractionalGPU, s.NoPodENI, s.NoENIDensity, s.SoftEviction, s.LegacyLabels},
		[]int64{s.ReservedENIs, s.EFAOnly, s.EFAOnlyFirstCard},
		s.Attachments,
		fmt.Sprintf("%p", s.VMMemory),
	})
	if err != nil { // plain data can always be marshalled
		panic(err)
	}
	return string(text)
}

// withEC2Defaults adds the defaults of the AWS provider and the zones of the subnets that its
// controller has found.
func withEC2Defaults(pool nodepool.NodePool, class *nodeclass.NodeClass) nodepool.NodePool {
	if pool.APIVersion == nodepool.V1Alpha5 {
		labels := requirements.KubernetesAliases().Labels(pool.Labels)
		asked, err := pool.Requirements.Intersect(requirements.FromLabels(labels))
		if err == nil {
			added := ec2.ProvisionerDefaults(asked)
			if set, err := pool.Requirements.Intersect(added); err == nil {
				pool.Requirements = set
			}
		}
	} else {
		pool = nodepool.Apply(pool, nodepool.LinuxByDefault)
	}
	if class != nil {
		if zones := class.Zones(); len(zones) > 0 {
			if set, err := pool.Requirements.Intersect(requirements.MustOf(requirements.In(corev1.LabelTopologyZone, zones...))); err == nil {
				pool.Requirements = set
			}
		}
	}
	return pool
}

// revived makes retired types available to pools that name them.
func revived(types []instancetypes.InstanceType, pool nodepool.NodePool) []instancetypes.InstanceType {
	named := slices.ContainsFunc(slices.Collect(ec2.Naming().All()), pool.Requirements.Has)
	if !named {
		return types
	}
	return instancetypes.Revive(types, pool.Requirements, ec2.Naming())
}

// Elsewhere returns a note that names the regions that have an instance type or a zone that this
// market lacks. key is the label, and value the type or zone. The note is empty if no other region
// has it, or if the market is not EC2's.
func (m *Market) Elsewhere(key, value string) string {
	if m.region == nil {
		return ""
	}
	switch key {
	case corev1.LabelInstanceTypeStable:
		if regions := catalogue.RegionsOf(value); len(regions) > 0 && !slices.Contains(regions, m.region.Name) {
			return fmt.Sprintf("%s is not offered in %s, but in %s", value, m.region.Name, strings.Join(first(regions, 5), ", "))
		}
	case corev1.LabelTopologyZone:
		for _, region := range catalogue.Regions() {
			if region != m.region.Name && strings.HasPrefix(value, region) && len(value) == len(region)+1 {
				return fmt.Sprintf("%s is a zone of region %s; this plan is for %s (--region %s)", value, region, m.region.Name, region)
			}
		}
	}
	return ""
}

func first(list []string, n int) []string {
	if len(list) <= n {
		return list
	}
	return append(slices.Clone(list[:n]), fmt.Sprintf("%d more", len(list)-n))
}

// ReadOptions says how programs and tests read files: with the decoders of EC2's node classes, and
// with the classes assumed that files may leave out.
func ReadOptions() *manifests.Options {
	return &manifests.Options{Classes: NodeClassDecoders(), Assume: true}
}

// NodeClassDecoders returns the decoders of EC2's node classes, for [manifests.Options].
func NodeClassDecoders() map[string]manifests.ClassDecoder {
	decode := func(raw json.RawMessage) (any, error) {
		class, err := nodeclass.Decode(raw)
		if err != nil {
			return nil, err
		}
		return class, nil
	}
	auto := func(raw json.RawMessage) (any, error) {
		class, err := nodeclass.DecodeAuto(raw)
		if err != nil {
			return nil, err
		}
		return class, nil
	}
	return map[string]manifests.ClassDecoder{"AWSNodeTemplate": decode, "EC2NodeClass": decode, nodeclass.AutoKind: auto}
}

// Refusal says in one line why pods of a class have no place. It names the region that has a type
// or zone that they require, or else the reason of the pool that came closest. There must be a
// reason.
func (m *Market) Refusal(class *scheduling.Class, reasons []scheduling.Reason) string {
	for set := range class.Required.All() {
		for req := range set.All() {
			values, _ := req.Values()
			for _, v := range values {
				if text := m.Elsewhere(req.Key(), v); text != "" {
					return text
				}
			}
		}
	}
	if len(reasons) == 1 {
		return reasons[0].String()
	}
	// Where every pool fails alike, say it once.
	same := true
	for _, r := range reasons {
		same = same && r.Detail == reasons[0].Detail
	}
	if same {
		return "every pool: " + reasons[0].Detail
	}
	// The pool that came closest has the most to say.
	best := slices.MaxFunc(reasons, func(a, b scheduling.Reason) int {
		return cmp.Or(cmp.Compare(btoi(a.Pool != ""), btoi(b.Pool != "")), cmp.Compare(a.Stage.Depth(), b.Stage.Depth()))
	})
	return best.String()
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
