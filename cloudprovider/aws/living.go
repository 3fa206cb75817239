package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/discovery"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/launch"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/record"
	"github.com/joinery-sdk/joinery/cloudprovider/interruption"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

// Reasons of drift, in the order in which they are checked.
const (
	// NodeClassDrift: a static field of the node class has changed.
	NodeClassDrift = "NodeClassDrift"
	// AMIDrift: the image is not the one that the class now selects for the type.
	AMIDrift = "AMIDrift"
	// SecurityGroupDrift: the groups are not those that the class selects.
	SecurityGroupDrift = "SecurityGroupDrift"
	// SubnetDrift: the subnet is not among those that the class selects.
	SubnetDrift = "SubnetDrift"
	// CapacityReservationDrift: the reservation is not among those that the class selects.
	CapacityReservationDrift = "CapacityReservationDrift"
	// PlacementGroupDrift: the placement group is not the one that the class now selects.
	PlacementGroupDrift = "PlacementGroupDrift"
)

// Drifted compares the instance with what its node class selects now.
func (p *Provider) Drifted(ctx context.Context, id string) (cloudprovider.Drift, error) {
	f, err := p.get(ctx, id)
	if err != nil {
		return cloudprovider.Drift{}, api.Outcome("drifted", id, err)
	}
	if f.raw.InstanceId == nil { // launched a moment ago
		return cloudprovider.Drift{}, nil
	}
	if len(f.rec.Claims) == 0 { // memory knows it, but nothing says which class it belongs to
		return cloudprovider.Drift{}, api.Outcome("drifted", id, &cloudprovider.Error{Code: cloudprovider.ErrNotReady, Err: errUnreadable})
	}
	s, err := p.resolvedClass(ctx, f.rec.NodeClass, f.rec.Pool)
	if err != nil {
		return cloudprovider.Drift{}, api.Outcome("drifted", id, err)
	}
	return s.drift(f), nil
}

func (s *resolvedClass) drift(f *found) cloudprovider.Drift {
	is := func(reason, format string, args ...any) cloudprovider.Drift {
		return cloudprovider.Drift{Reason: reason, Detail: fmt.Sprintf(format, args...)}
	}
	if f.rec.ClassHash != "" && f.rec.Version <= record.Version && f.rec.ClassHash != record.ClassHash(s.class) {
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
	if id := f.reservation(); id != "" && !slices.ContainsFunc(s.reserved, func(r ec2.Reservation) bool { return r.ID == id }) {
		return is(CapacityReservationDrift, "reservation %s is not selected any more", id)
	}
	if have := aws.ToString(f.raw.Placement.GroupId); have != s.placed.ID && s.placed.ID != "" {
		return is(PlacementGroupDrift, "placement group %q instead of %s", have, s.placed.ID)
	}
	return cloudprovider.Drift{}
}

// Interruptions reads the queue of the options. With [Options].StatusChecks it also reads what EC2
// says about the machines. Messages about instances of others are removed from the queue. Without a
// queue and StatusChecks, it fails with ErrUnsupported.
func (p *Provider) Interruptions(ctx context.Context, cursor string) (list []interruption.Event, next string, err error) {
	defer func() { err = api.Outcome("interruptions", cmp.Or(p.options.Queue, p.options.Cluster), err) }()
	if p.options.Queue == "" && !p.options.StatusChecks {
		return nil, "", &cloudprovider.Error{Code: cloudprovider.ErrUnsupported, Err: errors.New("the provider has no queue and does not ask for status checks")}
	}
	r, err := p.events.Read(ctx, cursor, machines{p})
	if err != nil {
		return nil, "", err
	}
	var unread error
	// Without history, the ends of capacity blocks of an earlier process's machines are known only
	// from the next reading on.
	if p.options.StatusChecks && !p.historyRead.Load() {
		_, unread = p.list(ctx)
	}
	if r.Dropped > 0 {
		p.notes.set("queue", fmt.Sprintf("messages that the last reading of queue %q dropped, because they are malformed or about other machines: %d", p.options.Queue, r.Dropped))
	}
	p.notes.set("events", note("some sources of interruptions could not be read", errors.Join(unread, r.Failed)))
	return r.Events, r.Cursor, nil
}

// machines are the machines that events are about.
type machines struct{ p *Provider }

// Owns finds the provider ids of the cluster's own instances, in memory or by reading. Machines
// with an unreadable record are left out.
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

// Reserved returns the reservations of the machines in memory.
func (m machines) Reserved() map[string]string {
	out := map[string]string{}
	for _, e := range m.p.memory.Living() {
		if id, ok := e.Instance.Offering.Get(instancetypes.LabelReservationID).Single(); ok {
			out[e.Instance.ID] = id
		}
	}
	return out
}

// learn keeps the smallest memory that nodes of a type have reported, in MiB, and reports whether
// it is a new one. What hypervisor and firmware keep for themselves is not published.
func (p *Provider) learn(typ string, mib int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old, ok := p.learned[typ]; ok && old <= mib {
		return false
	}
	p.learned[typ] = mib
	return true
}

// Registered learns from a node that has joined how much memory machines of its type have; before
// that the catalogue only has an estimate. It also tags the machine with the name of its node, and
// of its claim if it was launched together with others, so that people see them. A name that the
// node class or someone else gave it stays. It implements cloudprovider.RegistrationHook.
func (p *Provider) Registered(ctx context.Context, id string, node *corev1.Node) error {
	if node == nil {
		return api.Outcome("registered", id, invalid(fmt.Errorf("no node")))
	}
	if have := node.Spec.ProviderID; have != id {
		return api.Outcome("registered", id, invalid(fmt.Errorf("node %q belongs to instance %q", node.Name, have)))
	}
	f, err := p.get(ctx, id)
	if err != nil {
		return api.Outcome("registered", id, err)
	}
	q, ok := node.Status.Capacity[corev1.ResourceMemory]
	if !ok || q.Sign() <= 0 {
		return &cloudprovider.Error{Code: cloudprovider.ErrNotReady, Op: "registered", Subject: id, Err: fmt.Errorf("node %q does not report its memory yet", node.Name)}
	}
	if p.learn(f.instance.Type, resources.Capacity(corev1.ResourceMemory, q)>>20) {
		p.resolved.Forget()
	}
	return api.Outcome("registered", id, p.name(ctx, f, node.Name))
}

// name adds those tags that a machine does not have yet.
func (p *Provider) name(ctx context.Context, f *found, node string) error {
	if p.options.DryRun {
		return nil
	}
	if f.raw.InstanceId == nil {
		return &cloudprovider.Error{Code: cloudprovider.ErrNotReady, RetryAfter: time.Second, Err: errors.New("EC2 does not show the new instance everywhere yet")}
	}
	if err := p.checkZone(ctx, f.instance.ID); err != nil {
		return err
	}
	have := tagsOf(f.raw)
	tags := map[string]string{"Name": short(node), p.options.tagClaim(): short(f.instance.Claim)}
	maps.DeleteFunc(tags, func(key, value string) bool { return have[key] != "" || value == "" })
	if len(tags) == 0 {
		return nil
	}
	_, err := p.clients.EC2.CreateTags(ctx, &sdk.CreateTagsInput{Resources: []string{aws.ToString(f.raw.InstanceId)}, Tags: launch.Tags(tags)})
	return err
}

// Learned returns the memory in MiB that nodes have reported, the smallest for each instance type,
// in a new map. Keep it and pass it to the next provider in its options, so that a restart forgets
// nothing.
func (p *Provider) Learned() map[string]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.learned)
}

const (
	mostTags        = 50  // on one machine, by EC2
	mostTagValue    = 256 // characters
	nameTags        = 2   // the names of node and claim, once the node has joined
	sealCharsOfEach = 12  // characters that a machine takes in the seal
)

// sealTags returns how many tags the seal of this many claims takes.
func sealTags(claims int) int { return (sealCharsOfEach*claims + mostTagValue - 1) / mostTagValue }

func short(text string) string { return text[:min(len(text), mostTagValue)] }
