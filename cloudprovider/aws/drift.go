package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/discovery"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/record"
	"github.com/joinery-sdk/joinery/cloudprovider/interruption"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
)

// Reasons of drift, in the order in which they are looked for.
const (
	// NodeClassDrift: a static field of the node class has changed.
	NodeClassDrift = "NodeClassDrift"
	// AMIDrift: the image is not the one that the class means for the type today.
	AMIDrift = "AMIDrift"
	// SecurityGroupDrift: the groups are not those that the class selects.
	SecurityGroupDrift = "SecurityGroupDrift"
	// SubnetDrift: the subnet is not among those that the class selects.
	SubnetDrift = "SubnetDrift"
	// CapacityReservationDrift: the reservation is not among those that the class selects.
	CapacityReservationDrift = "CapacityReservationDrift"
	// PlacementGroupDrift: the placement group is not the one that the class means today.
	PlacementGroupDrift = "PlacementGroupDrift"
)

// Drifted compares the instance with what its node class means today.
func (p *Provider) Drifted(ctx context.Context, id string) (cloudprovider.Drift, error) {
	f, err := p.get(ctx, id)
	if err != nil {
		return cloudprovider.Drift{}, api.Outcome("drifted", id, err)
	}
	if f.raw.InstanceId == nil { // launched a moment ago
		return cloudprovider.Drift{}, nil
	}
	rec, _, err := record.Read(tagsOf(f.raw))
	if err != nil { // it is known from memory, but nothing says of which class it is
		return cloudprovider.Drift{}, api.Outcome("drifted", id, &cloudprovider.Error{Code: cloudprovider.ErrNotReady, Err: fmt.Errorf("%w (%w)", errUnreadable, err)})
	}
	s, err := p.resolvedClass(ctx, rec.NodeClass)
	if err != nil {
		return cloudprovider.Drift{}, api.Outcome("drifted", id, err)
	}
	return s.drift(f), nil
}

func (s *resolvedClass) drift(f *found) cloudprovider.Drift {
	is := func(reason, format string, args ...any) cloudprovider.Drift {
		return cloudprovider.Drift{Reason: reason, Detail: fmt.Sprintf(format, args...)}
	}
	if now := s.hash(); f.hash != "" && f.hash != now {
		if s.foreign.Name != "" {
			return is(NodeClassDrift, "node class %q or its launch template %q was changed since", s.class.Name, s.foreign.Name)
		}
		return is(NodeClassDrift, "node class %q was changed since", s.class.Name)
	}
	image := aws.ToString(f.raw.ImageId)
	if t, ok := s.find(f.instance.Type); ok {
		if want, ok := discovery.ImageFor(s.images, t.Requirements); !ok || want.ID != image {
			return is(AMIDrift, "image %s instead of %s", image, want.ID)
		}
	}
	var have, want []string
	for _, g := range f.raw.SecurityGroups {
		have = append(have, aws.ToString(g.GroupId))
	}
	for _, g := range s.groups {
		want = append(want, g.ID)
	}
	slices.Sort(have)
	if !slices.Equal(have, want) && (s.foreign.Name == "" || len(want) > 0) {
		return is(SecurityGroupDrift, "security groups %s instead of %s", strings.Join(have, ", "), strings.Join(want, ", "))
	}
	subnet := aws.ToString(f.raw.SubnetId)
	if !slices.ContainsFunc(s.subnets, func(n discovery.Subnet) bool { return n.ID == subnet }) {
		return is(SubnetDrift, "subnet %s is not selected any more", subnet)
	}
	if id := f.reservation(); id != "" && !slices.ContainsFunc(s.reserved, func(r ec2.Reservation) bool { return r.ID == id }) {
		return is(CapacityReservationDrift, "reservation %s is not selected any more", id)
	}
	if have := aws.ToString(f.raw.Placement.GroupId); have != s.placed.ID && s.placed.ID != "" {
		return is(PlacementGroupDrift, "placement group %q instead of %s", have, s.placed.ID)
	}
	return cloudprovider.Drift{}
}

// Interruptions reads the queue of the options, and with [Options].StatusChecks what EC2 says of the machines itself. Messages about instances that are
// not the cluster's are taken out of the queue.
func (p *Provider) Interruptions(ctx context.Context, cursor string) ([]interruption.Event, string, error) {
	list, next, err := p.interruptions(ctx, cursor)
	return list, next, api.Outcome("interruptions", cmp.Or(p.options.Queue, p.options.Cluster), err)
}

func (p *Provider) interruptions(ctx context.Context, cursor string) ([]interruption.Event, string, error) {
	if p.options.Queue == "" && !p.options.StatusChecks {
		return nil, "", &cloudprovider.Error{Code: cloudprovider.ErrUnsupported, Err: errors.New("the provider was given no queue, and is not to ask for status checks")}
	}
	r, err := p.events.Read(ctx, cursor, machines{p})
	if err != nil {
		return nil, "", err
	}
	var unread error
	if p.options.StatusChecks && !p.memory.KnowsHistory() { // the ends of the capacity blocks of an earlier process's machines are known from the next reading on
		_, unread = p.list(ctx)
	}
	if r.Dropped > 0 {
		p.notes.set("queue", fmt.Sprintf("the last reading of queue %q dropped %d message(s) that are malformed, or of no machine of ours", p.options.Queue, r.Dropped))
	}
	p.notes.set("events", note("some sources of interruptions could not be read", errors.Join(unread, r.Failed)))
	return r.Events, r.Cursor, nil
}

// machines are what events are about.
type machines struct{ p *Provider }

// Owns finds the provider ids of instances that are the cluster's own, by memory, or else by reading. Machines whose record is unreadable are left out.
func (m machines) Owns(ctx context.Context, ids []string) (map[string]string, error) {
	out := map[string]string{}
	var unknown []string
	for _, bare := range ids {
		if e, ok := m.p.memory.Of(bare); ok {
			out[bare] = e.Instance.ID
		} else {
			unknown = append(unknown, bare)
		}
	}
	if len(unknown) == 0 {
		return out, nil
	}
	for i, r := range m.p.describe(ctx, "", unknown) {
		if r.Err != nil && !errors.Is(r.Err, errUnreadable) {
			return out, r.Err
		}
		if r.Value != nil {
			out[unknown[i]] = r.Value.instance.ID
		}
	}
	return out, nil
}

// Reserved are those that memory knows.
func (m machines) Reserved() map[string]string {
	out := map[string]string{}
	for _, i := range m.p.memory.Living() {
		if id, ok := i.Offering.Get(instancetypes.LabelReservationID).Single(); ok {
			out[i.ID] = id
		}
	}
	return out
}
