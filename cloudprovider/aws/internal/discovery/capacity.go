package discovery

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	instances "github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
)

// Reservations returns the active capacity reservations that one of the terms selects, by id. Each
// term is a call of its own, because owner and criteria narrow it even if it names ids.
func (f *Finder) Reservations(ctx context.Context, terms []nodeclass.Term) ([]instances.Reservation, error) {
	id := func(r instances.Reservation) string { return r.ID }
	return selected(ctx, f, capacityTTL, "reservations", terms, terms, id, f.reservations)
}

func (f *Finder) reservations(ctx context.Context, t nodeclass.Term) (list []instances.Reservation, err error) {
	filters := []types.Filter{filter("state", "active")}
	if len(t.Owners) > 0 {
		filters = append(filters, filter("owner-id", t.Owners...))
	}
	if t.MatchCriteria != "" {
		filters = append(filters, filter("instance-match-criteria", t.MatchCriteria))
	}
	ids := t.IDs
	t.IDs = nil
	filters = append(filters, slices.Concat(Filters([]nodeclass.Term{t}, "", "tag:Name")...)...)
	all, err := DescribeReservations(ctx, f.clients, ids, filters)
	for _, r := range all {
		list = append(list, instances.Reservation{
			ID: aws.ToString(r.CapacityReservationId), InstanceType: aws.ToString(r.InstanceType), Zone: aws.ToString(r.AvailabilityZone),
			Count: int(aws.ToInt32(r.AvailableInstanceCount)), Block: r.ReservationType == types.CapacityReservationTypeCapacityBlock, Interruptible: aws.ToBool(r.Interruptible),
		})
	}
	return list, err
}

// DescribeReservations reads the capacity reservations that pass the filters and, if ids are given,
// have one of them. The call has no filter for ids. A missing id would make a call fail for all,
// and ids exclude pages. So each id is a call of its own, and a missing one is left out.
func DescribeReservations(ctx context.Context, clients *api.Clients, ids []string, filters []types.Filter) ([]types.CapacityReservation, error) {
	if len(ids) == 0 {
		return api.All(ctx, ec2.NewDescribeCapacityReservationsPaginator(clients.EC2, &ec2.DescribeCapacityReservationsInput{Filters: filters, MaxResults: aws.Int32(500)}),
			func(o *ec2.DescribeCapacityReservationsOutput) []types.CapacityReservation {
				return o.CapacityReservations
			})
	}
	var list []types.CapacityReservation
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		out, err := clients.EC2.DescribeCapacityReservations(ctx, &ec2.DescribeCapacityReservationsInput{CapacityReservationIds: []string{id}, Filters: filters})
		switch {
		case api.Reason(err) == "InvalidCapacityReservationId.NotFound":
		case err != nil:
			return nil, err
		default:
			list = append(list, out.CapacityReservations...)
		}
	}
	return list, nil
}

// Placement is a placement group.
type Placement struct {
	ID, Name, Strategy string
	Partitions         int32
}

// PlacementGroup returns the group by name or id. The error says that there is none.
func (f *Finder) PlacementGroup(ctx context.Context, want nodeclass.PlacementGroup) (Placement, error) {
	return remembered(ctx, f, capacityTTL, key("placement group", want), func(ctx context.Context) (Placement, error) {
		input := &ec2.DescribePlacementGroupsInput{}
		if want.ID != "" {
			input.GroupIds = []string{want.ID}
		} else {
			input.GroupNames = []string{want.Name}
		}
		out, err := f.clients.EC2.DescribePlacementGroups(ctx, input)
		if err != nil {
			return Placement{}, err
		}
		if len(out.PlacementGroups) == 0 {
			return Placement{}, notFound("placement group", want.Name+want.ID, fmt.Errorf("there is none"))
		}
		g := out.PlacementGroups[0]
		return Placement{
			ID: aws.ToString(g.GroupId), Name: aws.ToString(g.GroupName), Strategy: string(g.Strategy), Partitions: aws.ToInt32(g.PartitionCount),
		}, nil
	})
}
