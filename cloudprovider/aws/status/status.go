// Package status asks EC2 for what happens to machines and no queue tells in time: status checks that fail, scheduled events, and the end of capacity
// blocks. What it finds are typed events, each delivered until it is confirmed.
package status

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/interruption"
)

const (
	// Every is how often EC2 is asked.
	Every = time.Minute
	// Impaired is how long a check must have failed: shorter failures mend themselves.
	Impaired = 2 * time.Minute
	// BlockNotice is how long before the end of a capacity block its machines are announced.
	BlockNotice = 40 * time.Minute
	// BlockEnding is how long before the end of a capacity block EC2 begins to end its machines.
	BlockEnding = 30 * time.Minute
)

// Fleet is whose machines are watched.
type Fleet interface {
	// Owns finds the provider ids of those machines that are the caller's own, by EC2's ids.
	Owns(ctx context.Context, ids []string) (map[string]string, error)
	// Reserved are the capacity reservations of the caller's machines, by provider id.
	Reserved() map[string]string
}

// Watch remembers what was delivered. It is safe for concurrent use; make one by [New].
type Watch struct {
	clients *api.Clients
	clock   api.Clock

	mu     sync.Mutex
	asked  time.Time
	serial int
	held   map[string]*item // by the event's id
}

type item struct {
	event     interruption.Event
	serial    int
	confirmed bool
}

// New has not asked yet.
func New(clients *api.Clients, clock api.Clock) *Watch {
	return &Watch{clients: clients, clock: clock, held: map[string]*item{}}
}

// Look returns the events that are not confirmed, oldest first, and the serial that confirms them. EC2 is asked if it was not for a minute. Serial
// confirms what earlier calls delivered up to it; 0 confirms nothing. What is confirmed is not delivered again as long as it lasts.
func (w *Watch) Look(ctx context.Context, serial int, of Fleet) ([]interruption.Event, int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, i := range w.held {
		i.confirmed = i.confirmed || i.serial <= serial
	}
	now := w.clock.Time()
	if w.asked.IsZero() || now.Sub(w.asked) >= Every {
		found, err := w.ask(ctx, of, now)
		if err != nil {
			return nil, 0, err
		}
		w.asked = now
		w.keep(found)
	}
	var out []interruption.Event
	for _, i := range w.held {
		if !i.confirmed {
			out = append(out, i.event)
		}
	}
	slices.SortFunc(out, func(a, b interruption.Event) int { return cmp.Or(a.At.Compare(b.At), strings.Compare(a.ID, b.ID)) })
	return out, w.serial, nil
}

// keep takes over what was found; what is over is forgotten.
func (w *Watch) keep(found []interruption.Event) {
	still := map[string]bool{}
	for _, e := range found {
		still[e.ID] = true
		if w.held[e.ID] == nil {
			w.serial++
			w.held[e.ID] = &item{event: e, serial: w.serial}
		}
	}
	for id := range w.held {
		if !still[id] {
			delete(w.held, id)
		}
	}
}

func (w *Watch) ask(ctx context.Context, of Fleet, now time.Time) ([]interruption.Event, error) {
	var events []interruption.Event
	// Filters of different names narrow each other, and healthy machines are many: so each trouble is asked for alone.
	for _, f := range []types.Filter{
		{Name: aws.String("instance-status.status"), Values: []string{string(types.SummaryStatusImpaired)}},
		{Name: aws.String("system-status.status"), Values: []string{string(types.SummaryStatusImpaired)}},
		{Name: aws.String("event.code"), Values: []string{
			string(types.EventCodeInstanceReboot), string(types.EventCodeInstanceRetirement), string(types.EventCodeInstanceStop),
			string(types.EventCodeSystemMaintenance), string(types.EventCodeSystemReboot),
		}},
	} {
		pages := ec2.NewDescribeInstanceStatusPaginator(w.clients.EC2, &ec2.DescribeInstanceStatusInput{Filters: []types.Filter{f}, MaxResults: aws.Int32(1000)})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return nil, err
			}
			for _, s := range page.InstanceStatuses {
				if aws.ToString(f.Name) == "event.code" {
					events = append(events, scheduled(s, now)...)
				} else {
					events = append(events, impaired(s, now)...)
				}
			}
		}
	}
	events, err := own(ctx, of, events)
	if err != nil {
		return nil, err
	}
	blocks, err := w.blocks(ctx, of.Reserved(), now)
	if err != nil {
		return nil, err
	}
	return append(events, blocks...), nil
}

// impaired says since when a machine's checks have failed, if that is long enough.
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

// scheduled are the events of a machine that have not been carried out.
func scheduled(s types.InstanceStatus, now time.Time) []interruption.Event {
	var out []interruption.Event
	id := aws.ToString(s.InstanceId)
	for _, e := range s.Events {
		// EC2 shows events for a week after their end, and says so only in words.
		if text := aws.ToString(e.Description); strings.HasPrefix(text, "[Completed]") || strings.HasPrefix(text, "[Canceled]") {
			continue
		}
		at := aws.ToTime(e.NotBefore).UTC()
		name := cmp.Or(aws.ToString(e.InstanceEventId), fmt.Sprintf("%s-%d", e.Code, at.Unix()))
		out = append(out, interruption.Event{ID: "scheduled/" + id + "/" + name, Instance: id, Kind: interruption.MaintenanceScheduled, At: now, Deadline: at})
	}
	return out
}

// own keeps the events of the caller's own machines, each once, under their provider ids.
func own(ctx context.Context, of Fleet, events []interruption.Event) ([]interruption.Event, error) {
	var ids []string
	for _, e := range events {
		ids = append(ids, e.Instance)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	slices.Sort(ids)
	mine, err := of.Owns(ctx, slices.Compact(ids))
	if err != nil {
		return nil, err
	}
	var out []interruption.Event
	for _, e := range events {
		if id, ok := mine[e.Instance]; ok && !slices.ContainsFunc(out, func(have interruption.Event) bool { return have.ID == e.ID }) {
			e.Instance = id
			out = append(out, e)
		}
	}
	return out, nil
}

// blocks announces the machines of capacity blocks that end soon.
func (w *Watch) blocks(ctx context.Context, reserved map[string]string, now time.Time) ([]interruption.Event, error) {
	machines := map[string][]string{}
	var ids []string
	for machine, id := range reserved {
		if machines[id] == nil {
			ids = append(ids, id)
		}
		machines[id] = append(machines[id], machine)
	}
	slices.Sort(ids)
	var out []interruption.Event
	for chunk := range slices.Chunk(ids, 200) { // the most values that a filter takes
		pages := ec2.NewDescribeCapacityReservationsPaginator(w.clients.EC2, &ec2.DescribeCapacityReservationsInput{
			Filters: []types.Filter{{Name: aws.String("capacity-reservation-id"), Values: chunk}}, MaxResults: aws.Int32(500),
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return nil, err
			}
			for _, r := range page.CapacityReservations {
				end := aws.ToTime(r.EndDate).UTC()
				if r.ReservationType != types.CapacityReservationTypeCapacityBlock || r.EndDate == nil || now.Before(end.Add(-BlockNotice)) {
					continue
				}
				id := aws.ToString(r.CapacityReservationId)
				slices.Sort(machines[id])
				for _, machine := range machines[id] {
					out = append(out, interruption.Event{
						ID: "block/" + id + "/" + machine, Instance: machine, Kind: interruption.ReservationInterrupted,
						At: end.Add(-BlockNotice), Deadline: end.Add(-BlockEnding),
					})
				}
			}
		}
	}
	return out, nil
}
