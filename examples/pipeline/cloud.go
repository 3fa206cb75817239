package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/label"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// cloud is the cloud whose machines a pool buys.
type cloud struct {
	group string // group of its node classes, or domain of its labels
	auto  bool   // EKS Auto Mode
	ec2   bool
}

// otherDomains are domains of labels that only nodes of other clouds have, in addition to those
// that start with "karpenter.".
func otherDomains() []string {
	return []string{"kubernetes.azure.com", "cloud.google.com", "oci.oraclecloud.com", "node.alibabacloud.com", "cluster.x-k8s.io"}
}

// cloudOf returns the cloud of the pool. The group of its node class decides, or the kind if older
// manifests name no group. Without either, the domains of its requirements and labels decide. A
// pool without any of these buys from EC2.
func cloudOf(pool nodepool.NodePool) cloud {
	switch group := pool.NodeClass.Group; {
	case group == label.Group:
		return cloud{group: group, ec2: true}
	case group == ec2.AutoGroup:
		return cloud{group: group, ec2: true, auto: true}
	case group != "":
		return cloud{group: group}
	}
	if kind := pool.NodeClass.Kind; kind != "" && kind != "EC2NodeClass" && kind != "AWSNodeTemplate" {
		return cloud{group: kind}
	}
	for r := range pool.NodeRequirements().All() {
		domain, _, named := strings.Cut(r.Key(), "/")
		foreign := strings.HasPrefix(domain, "karpenter.") && domain != "karpenter.sh" && domain != label.Group || slices.Contains(otherDomains(), domain)
		if named && foreign && pool.NodeClass.Kind == "" {
			return cloud{group: domain}
		}
	}
	return cloud{group: label.Group, ec2: true}
}

// foreign returns the remark on a pool of another cloud.
func (c cloud) foreign() string {
	return "nodes of " + c.group + " are not bought, because this catalogue is EC2's (give that of their cloud with --instance-types)"
}

// remarks collects what there is to say about pools. A remark on many pools is one note. The zero
// value is ready for use.
type remarks struct {
	texts []string
	pools map[string][]nodepool.NodePool // by text
}

func (r *remarks) add(pool nodepool.NodePool, texts ...string) {
	if r.pools == nil {
		r.pools = map[string][]nodepool.NodePool{}
	}
	for _, text := range texts {
		if len(r.pools[text]) == 0 {
			r.texts = append(r.texts, text)
		}
		if !slices.ContainsFunc(r.pools[text], func(p nodepool.NodePool) bool { return p.Kind == pool.Kind && p.Name == pool.Name }) {
			r.pools[text] = append(r.pools[text], pool)
		}
	}
}

// notes returns the notes in the order of their first pools.
func (r *remarks) notes() []string {
	const most = 5
	var out []string
	for _, text := range r.texts {
		pools := r.pools[text]
		var names []string
		for i, pool := range pools {
			name := pool.Name
			if i == 0 || pools[i-1].Kind != pool.Kind {
				name = pool.Kind + " " + name
			}
			names = append(names, name)
		}
		more := ""
		if n := len(names) - most; n > 0 {
			names, more = names[:most], fmt.Sprintf(" and %d more", n)
		}
		out = append(out, strings.Join(names, ", ")+more+": "+text)
	}
	return out
}

// unsold returns notes on values that the pool lists and no type has, with the closest existing
// value. Numbers may come from a bound, such as Lt ["16"], so they are noted only if no type has
// any of them.
func (m *Market) unsold(pool nodepool.NodePool, types []instancetypes.InstanceType) []string {
	var out []string
	for r := range pool.Requirements.All() {
		asked, finite := r.Values()
		if !finite || r.AllowsAbsent() {
			continue
		}
		sold := m.values(r.Key(), types)
		if r.Key() == instancetypes.LabelCapacityType { // what is reserved depends on the node class, see unresolved
			sold = append(sold, instancetypes.CapacityTypeReserved)
		}
		some := slices.ContainsFunc(asked, func(v string) bool { return slices.Contains(sold, v) })
		for _, v := range asked {
			_, err := strconv.Atoi(v)
			number := err == nil
			if len(sold) == 0 || slices.Contains(sold, v) || some && number {
				continue
			}
			text := m.Elsewhere(r.Key(), v)
			if text == "" {
				text = "no type of this catalogue has " + r.Key() + " " + v
				if near, ok := requirements.Nearest(v, sold); ok && !number && !slices.Contains(asked, near) {
					text += fmt.Sprintf(" (did you mean %q?)", near)
				}
			}
			out = append(out, text)
		}
	}
	const most = 5
	return first(out, most)
}

// unresolved returns a note if a pool that lists the capacity type reserved can never get it, because
// nothing says which capacity reservations there are. A pool that allows every capacity type does
// not ask for reservations, so only a class with selectors is noted for it.
func unresolved(pool nodepool.NodePool, class *nodeclass.NodeClass) []string {
	const head = "nothing is bought as karpenter.sh/capacity-type reserved: "
	switch {
	case class != nil && len(class.Status.Reservations) > 0:
	case class != nil && len(class.CapacityReservations) > 0:
		return []string{fmt.Sprintf("%sthe capacityReservationSelectorTerms of %s %s are not resolved: it has no status.capacityReservations, which the object in the cluster has", head, class.Kind, class.Name)}
	case !pool.Requirements.Has(instancetypes.LabelCapacityType) || class != nil && class.Kind == nodeclass.AutoKind:
	case class == nil:
		return []string{head + "the input lacks the node class of the pool, whose status lists capacity reservations"}
	default:
		return []string{fmt.Sprintf("%s%s %s has no capacityReservationSelectorTerms", head, class.Kind, class.Name)}
	}
	return nil
}

// reserved returns the types with the capacity reservations of the node class as offerings, and
// notes on reservations that cannot be bought.
//
// Nodes that run in a reservation do not reduce its count. The count is what EC2 still launches into
// it, so it does not include machines that exist, and like every count of an offering it is of
// further nodes. A reservation that is full, or of which no count is known, is an offering that
// cannot be bought: the nodes that run in it have a price, and if one of them goes, its place can be
// taken.
func (m *Market) reserved(types []instancetypes.InstanceType, class *nodeclass.NodeClass) ([]instancetypes.InstanceType, []string) {
	if class == nil {
		return types, nil
	}
	now := m.now
	if now.IsZero() {
		now = time.Now()
	}
	var unused []string
	for _, r := range class.Status.Reservations {
		next := ec2.Reservation{ID: r.ID, InstanceType: r.InstanceType, Zone: r.Zone, Block: r.Type == "capacity-block", Interruptible: r.Interruptible}
		count, known := m.free[r.ID]
		if !known && r.Free != nil {
			count, known = *r.Free, true
		}
		next.Count = count
		why, with := "", types
		switch zones := class.Zones(); {
		case r.State != "active":
			why = "its state is " + r.State
		case r.Type != "default" && !next.Block:
			why = "its type is " + r.Type + ": want default or capacity-block"
		case !r.End.IsZero() && !r.End.After(now):
			why = "it ended at " + r.End.UTC().Format(time.RFC3339)
		case len(zones) > 0 && !slices.Contains(zones, r.Zone):
			why = "it is in " + r.Zone + ", where the class has no subnet"
		default:
			var err error
			if with, err = ec2.Reserve(types, next); err != nil {
				why, with = cmp.Or(m.Elsewhere(corev1.LabelInstanceTypeStable, r.InstanceType), m.Elsewhere(corev1.LabelTopologyZone, r.Zone), strings.TrimPrefix(err.Error(), fmt.Sprintf("ec2: reservation %q: ", r.ID))), types
			} else if !known {
				why = "how many of its instances are free is not known: Karpenter does not write it to the class; add --aws with what aws ec2 describe-capacity-reservations printed"
			}
		}
		if types = with; why != "" {
			unused = append(unused, fmt.Sprintf("capacity reservation %s of %s %s is not used: %s", r.ID, class.Kind, class.Name, why))
		}
	}
	return types, unused
}

// values returns the values of a label that the types have. It returns none if some type leaves the
// label undecided or no type has it.
func (m *Market) values(key string, types []instancetypes.InstanceType) []string {
	seen := map[string]bool{}
	for i := range types {
		if !types[i].Requirements.Has(key) {
			continue
		}
		values, finite := types[i].Requirements.Get(key).Values()
		if !finite {
			return nil
		}
		for _, v := range values {
			seen[v] = true
		}
	}
	out := make([]string, 0, len(seen))
	for v := range seen {
		out = append(out, v)
	}
	slices.Sort(out)
	return out
}

// attachments returns the flags of the EBS CSI driver, if its DaemonSet is among the manifests.
func attachments(daemons []*appsv1.DaemonSet) ec2.Attachments {
	var out ec2.Attachments
	for _, d := range daemons {
		for i := range d.Spec.Template.Spec.Containers {
			c := &d.Spec.Template.Spec.Containers[i]
			if c.Name != "ebs-plugin" {
				continue
			}
			for _, arg := range slices.Concat(c.Command, c.Args) {
				name, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
				n, err := strconv.ParseInt(value, 10, 32)
				switch {
				case err != nil:
				case name == "volume-attach-limit":
					out.Limit = &n
				case name == "reserved-volume-attachments":
					out.Reserved = &n
				}
			}
		}
	}
	return out
}
