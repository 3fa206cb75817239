package aws

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/discovery"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/record"
	"github.com/joinery-sdk/joinery/cloudprovider/interruption"
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
	if err != nil {
		return cloudprovider.Drift{}, err
	}
	s, err := p.shelf(ctx, rec.NodeClass)
	if err != nil {
		return cloudprovider.Drift{}, api.Outcome("drifted", id, err)
	}
	return s.drift(f), nil
}

func (s *shelf) drift(f *found) cloudprovider.Drift {
	is := func(reason, format string, args ...any) cloudprovider.Drift {
		return cloudprovider.Drift{Reason: reason, Detail: fmt.Sprintf(format, args...)}
	}
	if now := classHash(s.class); f.hash != "" && f.hash != now {
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
	if !slices.Equal(have, want) {
		return is(SecurityGroupDrift, "security groups %s instead of %s", strings.Join(have, ", "), strings.Join(want, ", "))
	}
	subnet := aws.ToString(f.raw.SubnetId)
	if !slices.ContainsFunc(s.subnets, func(n discovery.Subnet) bool { return n.ID == subnet }) {
		return is(SubnetDrift, "subnet %s is not selected any more", subnet)
	}
	if id := aws.ToString(f.raw.CapacityReservationId); id != "" && !slices.ContainsFunc(s.reserved, func(r ec2.Reservation) bool { return r.ID == id }) {
		return is(CapacityReservationDrift, "reservation %s is not selected any more", id)
	}
	return cloudprovider.Drift{}
}

// Interruptions reads the queue of the options. Messages about instances that are not the cluster's are taken out of the queue.
func (p *Provider) Interruptions(ctx context.Context, cursor string) ([]interruption.Event, string, error) {
	if p.events == nil {
		return nil, "", &cloudprovider.Error{Code: cloudprovider.ErrUnsupported, Op: "interruptions", Err: errors.New("the provider was given no queue")}
	}
	events, next, dropped, err := p.events.Read(ctx, cursor, p.owns)
	if err != nil {
		return nil, "", api.Outcome("interruptions", p.options.Queue, err)
	}
	if dropped > 0 {
		p.notes.set("queue", fmt.Sprintf("the last reading of queue %q dropped %d message(s) that are malformed, or of no machine of ours", p.options.Queue, dropped))
	}
	return events, next, nil
}

// owns finds the provider ids of instances that are the cluster's own, by memory, or else by reading.
func (p *Provider) owns(ctx context.Context, ids []string) (map[string]string, error) {
	out := map[string]string{}
	var unknown []string
	for _, bare := range ids {
		if e, ok := p.memory.Of(bare); ok {
			out[bare] = e.Instance.ID
		} else {
			unknown = append(unknown, bare)
		}
	}
	if len(unknown) == 0 {
		return out, nil
	}
	for i, r := range p.describe(ctx, "", unknown) {
		if r.Err != nil {
			return nil, r.Err
		}
		if r.Value != nil {
			out[unknown[i]] = r.Value.instance.ID
		}
	}
	return out, nil
}
