// Package interruption is about machines that the cloud takes back: the events, their source, and
// how to respond to them.
package interruption

import (
	"context"
	"time"
)

// Source is implemented by providers that learn, in advance or afterwards, that the cloud takes
// machines back.
type Source interface {
	// Interruptions returns the events that are not confirmed yet, oldest first, and a cursor. To
	// confirm these events, pass the cursor to the next call; an empty cursor confirms nothing.
	// Begin with an empty cursor after a restart: a cursor that the source did not give may be an
	// error (cloudprovider.ErrInvalidSpec) or confirm nothing. If there are no events, the call
	// waits for one or for a time of the provider's choice, and may then return none. Events may
	// come twice and out of order.
	Interruptions(ctx context.Context, cursor string) (events []Event, next string, err error)
}

// Kind says what the cloud is about to do.
type Kind string

// The kinds of interruptions.
const (
	// SpotInterrupted machines are removed at the end of the notice.
	SpotInterrupted Kind = "SpotInterrupted"
	// RebalanceRecommended machines are likely to be removed, but that is not certain.
	RebalanceRecommended Kind = "RebalanceRecommended"
	// ReservationInterrupted machines lose the reservation that they run on.
	ReservationInterrupted Kind = "ReservationInterrupted"
	// MaintenanceScheduled machines will be stopped or restarted by the cloud at the given time.
	MaintenanceScheduled Kind = "MaintenanceScheduled"
	// InstanceStopping machines are being stopped or have been stopped.
	InstanceStopping Kind = "InstanceStopping"
	// InstanceTerminating machines are being deleted or have been deleted, not necessarily by
	// Delete.
	InstanceTerminating Kind = "InstanceTerminating"
	// InstanceImpaired machines fail the cloud's own checks.
	InstanceImpaired Kind = "InstanceImpaired"
)

// Event is one message of a cloud about one machine. The zero value says nothing.
type Event struct {
	// ID identifies the event: an event that is delivered again has the same id.
	ID string
	// Instance is the id that Create returned.
	Instance string
	// Kind says what happens. At is when it was announced.
	Kind Kind
	At   time.Time
	// Deadline is the earliest time at which it happens, or the zero time if that is not known.
	Deadline time.Time
}

// Response is what a caller should do about an interrupted machine.
type Response string

// The responses, from least to most urgent.
const (
	// Ignore: inform people and change nothing.
	Ignore Response = "Ignore"
	// Drain: accept no more pods, let the running ones leave in their own time, then delete.
	Drain Response = "Drain"
	// Force: delete now, because the machine does not respond.
	Force Response = "Force"
)

// Respond returns the response to a kind. Unknown kinds come from a later version and are ignored.
func (k Kind) Respond() Response {
	switch k {
	case SpotInterrupted, ReservationInterrupted, MaintenanceScheduled, InstanceStopping, InstanceTerminating:
		return Drain
	case InstanceImpaired:
		return Force
	case RebalanceRecommended:
		return Ignore
	default:
		return Ignore
	}
}

// Refuses reports whether the event also says that the machine's offering is unavailable for now.
// Then the next plan should do without it (availability.Ledger.Refuse).
func (k Kind) Refuses() bool {
	return k == SpotInterrupted || k == ReservationInterrupted
}
