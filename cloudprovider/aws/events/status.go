package events

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/discovery"
	"github.com/joinery-sdk/joinery/cloudprovider/interruption"
)

// The times of status checks and capacity blocks.
const (
	// Every is how often EC2 is asked.
	Every = time.Minute
	// Impaired is how long a check must have failed, because shorter failures end by themselves.
	Impaired = 2 * time.Minute
	// BlockNotice is how long before the end of a capacity block its machines are announced.
	BlockNotice = 40 * time.Minute
	// BlockEnding is how long before the end of a capacity block EC2 begins to end its machines.
	BlockEnding = 30 * time.Minute
)

// check asks EC2 if it was not asked for a minute, and forgets what has ended.
func (s *Source) check(ctx context.Context, of Fleet) error {
	now := time.Now()
	if !s.options.StatusChecks || !s.asked.IsZero() && now.Sub(s.asked) < Every {
		return nil
	}
	found, err := s.ask(ctx, of, now)
	if err != nil {
		return err
	}
	s.asked = now
	for _, e := range found {
		s.hold(e.ID, "", []interruption.Event{e})
	}
	s.held = slices.DeleteFunc(s.held, func(h held) bool {
		return h.handle == "" && !slices.ContainsFunc(found, func(e interruption.Event) bool { return e.ID == h.id })
	})
	return nil
}

// Checks asks EC2 now and remembers nothing, for callers that only look.
func (s *Source) Checks(ctx context.Context, of Fleet) ([]interruption.Event, error) {
	return s.ask(ctx, of, time.Now())
}

func (s *Source) ask(ctx context.Context, of Fleet, now time.Time) ([]interruption.Event, error) {
	var events []interruption.Event
	// Filters with different names narrow each other, and most machines are healthy. So each kind
	// of trouble is requested separately.
	for _, f := range []types.Filter{
		{Name: aws.String("instance-status.status"), Values: []string{string(types.SummaryStatusImpaired)}},
		{Name: aws.String("system-status.status"), Values: []string{string(types.SummaryStatusImpaired)}},
		{Name: aws.String("event.code"), Values: []string{
			string(types.EventCodeInstanceReboot), string(types.EventCodeInstanceRetirement), string(types.EventCodeInstanceStop),
			string(types.EventCodeSystemMaintenance), string(types.EventCodeSystemReboot),
		}},
	} {
		found, err := api.All(ctx, ec2.NewDescribeInstanceStatusPaginator(s.clients.EC2, &ec2.DescribeInstanceStatusInput{Filters: []types.Filter{f}, MaxResults: aws.Int32(1000)}),
			func(o *ec2.DescribeInstanceStatusOutput) []types.InstanceStatus { return o.InstanceStatuses })
		if err != nil {
			return nil, err
		}
		for _, i := range found {
			events = append(append(events, impaired(i, now)...), scheduled(i, now)...)
		}
	}
	mine, err := owners(ctx, of, events)
	if err != nil {
		return nil, err
	}
	events = own(mine, events)
	blocks, err := s.blocks(ctx, of.Reserved(), now)
	if err != nil {
		return nil, err
	}
	return append(events, blocks...), nil
}

// impaired returns an event if a machine's checks have failed for long enough.
func impaired(s types.InstanceStatus, now time.Time) []interruption.Event {
	var since time.Time
	for _, summary := range []*types.InstanceStatusSummary{s.InstanceStatus, s.SystemStatus} {
		if summary == nil || summary.Status != types.SummaryStatusImpaired {
			continue
		}
		for _, d := range summary.Details {
			if at := aws.ToTime(d.ImpairedSince); !at.IsZero() && (since.IsZero() || at.Before(since)) {
				since = at
			}
		}
	}
	if since.IsZero() || now.Sub(since) < Impaired {
		return nil
	}
	id := aws.ToString(s.InstanceId)
	return []interruption.Event{{ID: fmt.Sprintf("impaired/%s/%d", id, since.Unix()), Instance: id, Kind: interruption.InstanceImpaired, At: since.UTC()}}
}

// scheduled returns the events of a machine that have not been carried out.
func scheduled(s types.InstanceStatus, now time.Time) []interruption.Event {
	var out []interruption.Event
	id := aws.ToString(s.InstanceId)
	for _, e := range s.Events {
		// EC2 shows events for a week after their end, and only their text says so.
		if text := aws.ToString(e.Description); strings.HasPrefix(text, "[Completed]") || strings.HasPrefix(text, "[Canceled]") {
			continue
		}
		at := aws.ToTime(e.NotBefore).UTC()
		name := cmp.Or(aws.ToString(e.InstanceEventId), fmt.Sprintf("%s-%d", e.Code, at.Unix()))
		out = append(out, interruption.Event{ID: "scheduled/" + id + "/" + name, Instance: id, Kind: interruption.MaintenanceScheduled, At: now, Deadline: at})
	}
	return out
}

// blocks announces the machines of capacity blocks that end soon.
func (s *Source) blocks(ctx context.Context, reserved map[string]string, now time.Time) ([]interruption.Event, error) {
	if len(reserved) == 0 {
		return nil, nil
	}
	machines := map[string][]string{}
	for _, machine := range slices.Sorted(maps.Keys(reserved)) {
		machines[reserved[machine]] = append(machines[reserved[machine]], machine)
	}
	var out []interruption.Event
	found, err := discovery.DescribeReservations(ctx, s.clients, slices.Collect(maps.Keys(machines)), nil)
	if err != nil {
		return nil, err
	}
	for _, r := range found {
		end := aws.ToTime(r.EndDate).UTC()
		if r.ReservationType != types.CapacityReservationTypeCapacityBlock || r.EndDate == nil || now.Before(end.Add(-BlockNotice)) {
			continue
		}
		id := aws.ToString(r.CapacityReservationId)
		for _, machine := range machines[id] {
			out = append(out, interruption.Event{
				ID: "block/" + id + "/" + machine, Instance: machine, Kind: interruption.ReservationInterrupted,
				At: end.Add(-BlockNotice), Deadline: end.Add(-BlockEnding),
			})
		}
	}
	return out, nil
}
