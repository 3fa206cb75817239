package aws

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/batch"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/launch"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/memory"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/record"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/label"
	"github.com/joinery-sdk/joinery/requirements"
)

// found is an instance as EC2 describes it, with what its tags record.
type found struct {
	raw      types.Instance
	instance cloudprovider.Instance
	identity string
	rec      record.Batch // what the machine was launched for; without claims, it cannot be read
}

// Get reads the instance, together with others that are requested at the same time. An ended
// machine is not found, and the error says why it ended.
func (p *Provider) Get(ctx context.Context, id string) (cloudprovider.Instance, error) {
	f, err := p.get(ctx, id)
	if err != nil {
		return cloudprovider.Instance{}, api.Outcome("get", id, err)
	}
	return f.instance.Clone(), nil
}

func (p *Provider) get(ctx context.Context, id string) (*found, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	bare := memory.Bare(id)
	if bare == "" {
		return nil, &cloudprovider.Error{Code: cloudprovider.ErrNotFound, Err: errors.New("want an id such as aws:///us-east-1a/i-0123456789abcdef0")}
	}
	e, known := p.memory.Of(bare)
	live, remembered := known && e.State == memory.Live, &found{instance: e.Instance, identity: e.Identity}
	if live && e.Instance.ID == id {
		if away, err := p.shiftedAway(ctx, id); away || err != nil {
			return remembered, err
		}
	}
	asked := time.Now()
	f, err := p.reads.Do(ctx, "", bare)
	if err != nil {
		return nil, err
	}
	if f == nil && live && asked.Sub(e.Checked) <= p.options.Lag {
		return remembered, nil // it was launched a moment ago: EC2's readers do not know it yet
	}
	if f == nil {
		p.memory.MarkTerminated(bare, "", time.Now())
		return nil, &cloudprovider.Error{Code: cloudprovider.ErrNotFound}
	}
	if why, ended := endOf(f.raw); ended {
		p.memory.MarkTerminated(bare, why, time.Now())
		return nil, &cloudprovider.Error{Code: cloudprovider.ErrNotFound, Err: errors.New(why)}
	}
	if f.instance.ID != id {
		return nil, &cloudprovider.Error{Code: cloudprovider.ErrNotFound, Err: fmt.Errorf("the instance is %q", f.instance.ID)}
	}
	return f, nil
}

// describe reads instances by their ids. The result is nil for instances that EC2 does not show or
// that do not belong to the cluster.
func (p *Provider) describe(ctx context.Context, _ string, ids []string) []batch.Result[*found] {
	out := make([]batch.Result[*found], len(ids))
	list, err := p.readBy(ctx, "instance-id", slices.Compact(slices.Sorted(slices.Values(ids)))...) // by filter, because naming an unknown id would make the whole call fail
	known := readerOf(list)
	if fleets := p.bareFleets(list); err == nil && len(fleets) > 0 { // others of the fleet may know more
		var mates []types.Instance
		mates, err = p.readBy(ctx, "tag:"+record.KeyFleet, fleets...)
		known = readerOf(append(mates, list...))
	}
	for i, id := range ids {
		at, ok := slices.BinarySearchFunc(list, id, func(raw types.Instance, id string) int { return strings.Compare(aws.ToString(raw.InstanceId), id) })
		if out[i].Err = err; err == nil && ok {
			out[i].Value, out[i].Err = p.recall(ctx, list[at], known)
		}
	}
	return out
}

// readCluster reads instances that have the cluster's tag and pass the filters.
func (p *Provider) readCluster(ctx context.Context, filters ...types.Filter) ([]types.Instance, error) {
	return p.read(ctx, append([]types.Filter{{Name: aws.String("tag:" + ClusterTag), Values: []string{p.options.Cluster}}}, filters...))
}

// read reads instances by filters, in the order of their ids.
func (p *Provider) read(ctx context.Context, filters []types.Filter) ([]types.Instance, error) {
	reservations, err := api.All(ctx, sdk.NewDescribeInstancesPaginator(p.clients.EC2, &sdk.DescribeInstancesInput{Filters: filters, MaxResults: aws.Int32(1000)}),
		func(o *sdk.DescribeInstancesOutput) []types.Reservation { return o.Reservations })
	if err != nil {
		return nil, err
	}
	var list []types.Instance
	for _, r := range reservations {
		list = append(list, r.Instances...)
	}
	slices.SortFunc(list, func(a, b types.Instance) int {
		return strings.Compare(aws.ToString(a.InstanceId), aws.ToString(b.InstanceId))
	})
	return list, nil
}

// mostValues is the maximum number of values in a filter.
const mostValues = 200

// readBy reads the instances that match one of the filter's values, with as many values in a call
// as a filter takes.
func (p *Provider) readBy(ctx context.Context, filter string, values ...string) ([]types.Instance, error) {
	var list []types.Instance
	for chunk := range slices.Chunk(values, mostValues) {
		some, err := p.read(ctx, []types.Filter{{Name: aws.String(filter), Values: chunk}})
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	return list, nil
}

// bareFleets returns the fleets of the cluster's machines whose own tags have no readable record.
func (p *Provider) bareFleets(raws []types.Instance) []string {
	var fleets []string
	for _, raw := range raws {
		tags := tagsOf(raw)
		if _, ours, err := record.Read(tags); (!ours || err != nil) && p.ofThisCluster(tags) && tags[record.KeyFleet] != "" {
			fleets = append(fleets, tags[record.KeyFleet])
		}
	}
	slices.Sort(fleets)
	return slices.Compact(fleets)
}

// ofThisCluster reports whether something with these tags belongs to the cluster.
func (p *Provider) ofThisCluster(tags map[string]string) bool {
	return tags[ClusterTag] == p.options.Cluster || tags[launch.OwnCluster] == p.options.Cluster
}

func tagsOf(i types.Instance) map[string]string {
	out := make(map[string]string, len(i.Tags))
	for _, t := range i.Tags {
		out[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return out
}

// errUnreadable marks a machine whose tags hold a record that cannot be read.
var errUnreadable = errors.New("its tags cannot be read: it is left alone, and its claim is not known; repair its tags or terminate it by hand")

// recall makes an instance from EC2's answer and from memory or tags. It returns nil if the machine
// has no owner yet, or is not ours.
func (p *Provider) recall(ctx context.Context, raw types.Instance, records *record.Reader) (*found, error) {
	bare, tags := aws.ToString(raw.InstanceId), tagsOf(raw)
	rec, ours, err := records.Batch(tags)
	f := &found{raw: raw, rec: rec}
	if e, ok := p.memory.Of(bare); ok && e.State == memory.Live {
		f.instance, f.identity = e.Instance, e.Identity
		if raw.LaunchTime != nil {
			f.instance.Created = raw.LaunchTime.UTC()
			p.memory.Made(bare, f.instance.Created)
		}
		f.instance.State = stateOf(raw)
		f.partition()
		return f, nil
	}
	unreadable := func(err error) (*found, error) {
		return nil, &cloudprovider.Error{Code: cloudprovider.ErrNotReady, Err: fmt.Errorf("instance %q: %w (%w)", bare, errUnreadable, err)}
	}
	if !ours && tags[launch.OwnCluster] == p.options.Cluster && stateOf(raw) != cloudprovider.Terminating {
		return unreadable(errors.New("its record was removed"))
	}
	if !ours || !p.ofThisCluster(tags) {
		return nil, nil
	}
	if err == nil && p.memory.IsOpen(rec.ID) { // its claim is unknown until the fleet has been answered
		return nil, nil
	}
	if err != nil {
		return unreadable(err)
	}
	at := 0
	if len(rec.Claims) > 1 {
		seal, _, err := records.Seal(rec, tags)
		if err != nil {
			return unreadable(err)
		}
		if at = slices.Index(seal, bare); at < 0 || at >= len(rec.Claims) {
			return nil, nil
		}
	}
	claim := cloudprovider.NodeClaim{Name: rec.Claims[at].Name, Token: rec.Claims[at].Token, Pool: rec.Pool, Labels: rec.Labels}
	if claim.Requirements, err = requirements.Parse(rec.Requirements); err != nil {
		return unreadable(err)
	}
	f.identity = rec.Of(at)
	f.instance = cloudprovider.Instance{
		ID: memory.ProviderID(aws.ToString(raw.Placement.AvailabilityZone), bare), Claim: claim.Name, Pool: claim.Pool, Token: claim.Token,
		Type: string(raw.InstanceType), ImageID: aws.ToString(raw.ImageId), State: stateOf(raw), Created: rec.CreatedAt(), Labels: maps.Clone(rec.Labels),
	}
	if raw.LaunchTime != nil {
		f.instance.Created = raw.LaunchTime.UTC()
	}
	if err := p.complete(ctx, f, claim, rec.NodeClass); err != nil {
		return nil, err
	}
	return f, nil
}

// readerOf returns a reader of the records of all these machines.
func readerOf(raws []types.Instance) *record.Reader {
	all := make([]map[string]string, len(raws))
	for i, raw := range raws {
		all[i] = tagsOf(raw)
	}
	return record.NewReader(all...)
}

// complete adds what the catalogue knows about the instance's type. If its class or type is gone,
// nothing is added.
func (p *Provider) complete(ctx context.Context, f *found, claim cloudprovider.NodeClaim, class string) error {
	s, err := p.resolvedClass(ctx, class, claim.Pool)
	if err != nil {
		if cloudprovider.Advise(err).Unknown || errors.Is(err, cloudprovider.ErrThrottled) {
			return err
		}
		return nil
	}
	t, ok := s.find(f.instance.Type)
	if !ok {
		return nil
	}
	t = bought(t, f.raw.EnclaveOptions != nil && aws.ToBool(f.raw.EnclaveOptions.Enabled))
	f.instance.Capacity, f.instance.Allocatable = t.Capacity.DeepCopy(), t.Allocatable()
	kind := instancetypes.CapacityTypeOnDemand
	reservation := ""
	switch {
	case f.raw.InstanceLifecycle == types.InstanceLifecycleTypeSpot:
		kind = instancetypes.CapacityTypeSpot
	case f.reservation() != "":
		kind, reservation = instancetypes.CapacityTypeReserved, f.reservation()
	}
	for _, o := range t.Offerings {
		id, _ := o.Requirements.Get(instancetypes.LabelReservationID).Single()
		if zoneOf(o) != aws.ToString(f.raw.Placement.AvailabilityZone) || o.CapacityType() != kind || id != reservation {
			continue
		}
		f.instance.Offering = o.Requirements
		if labels, err := cloudprovider.NodeLabels(claim, t, o.Requirements); err == nil {
			f.instance.Labels = labels
		}
		f.partition()
		return nil
	}
	return nil
}

// reservation returns the capacity reservation into which the machine was launched, or an empty
// string. An open reservation of the account takes in any machine whose launch template does not
// forbid it. Such a machine is still on-demand, because its class never selected the reservation.
func (f *found) reservation() string {
	if s := f.raw.CapacityReservationSpecification; s == nil || s.CapacityReservationPreference != types.CapacityReservationPreferenceCapacityReservationsOnly {
		return ""
	}
	return aws.ToString(f.raw.CapacityReservationId)
}

// partition records the partition of a placement group that EC2 has chosen.
func (f *found) partition() {
	if n := f.raw.Placement; n != nil && aws.ToInt32(n.PartitionNumber) > 0 {
		f.instance.Labels = maps.Clone(f.instance.Labels)
		f.instance.Labels[label.PlacementGroupPartition] = strconv.Itoa(int(aws.ToInt32(n.PartitionNumber)))
	}
}

// stateOf returns the state of an instance. A stopped instance still exists, and would never be
// ended if it were not shown.
func stateOf(i types.Instance) cloudprovider.InstanceState {
	if i.State == nil {
		return cloudprovider.Pending
	}
	switch i.State.Name {
	case types.InstanceStateNamePending:
		return cloudprovider.Pending
	case types.InstanceStateNameShuttingDown, types.InstanceStateNameTerminated:
		return cloudprovider.Terminating
	default:
		return cloudprovider.Running
	}
}
