// Package interruption is what clouds say about machines that they take back: events, where they come from, and what to do
// about them.
package interruption

import (
	"context"
	"time"
)

// Source is implemented by providers that learn beforehand, or at least at all, that the cloud takes
// machines back.
type Source interface {
	// Interruptions returns events that have not been confirmed yet, oldest first, and a cursor. Passing that cursor to
	// the next call confirms these events; an empty cursor confirms nothing. Without events it waits until there are some
	// or for a time of the provider's choice, and may then return none. Events may come twice and out of order.
	Interruptions(ctx context.Context, cursor string) (events []Event, next string, err error)
}

// Kind says what the cloud is about to do.
type Kind string

// The kinds of interruptions.
const (
	// SpotInterrupted machines are taken away at the end of the notice.
	SpotInterrupted Kind = "SpotInterrupted"
	// RebalanceRecommended machines are likely to be taken away; nothing is certain.
	RebalanceRecommended Kind = "RebalanceRecommended"
	// ReservationInterrupted machines lose the reservation that they run on.
	ReservationInterrupted Kind = "ReservationInterrupted"
	// MaintenanceScheduled machines are stopped or started anew by the cloud at the given time.
	MaintenanceScheduled Kind = "MaintenanceScheduled"
	// InstanceStopping machines are being stopped or have been.
	InstanceStopping Kind = "InstanceStopping"
	// InstanceTerminating machines are being deleted or have been, not necessarily by Delete.
	InstanceTerminating Kind = "InstanceTerminating"
	// InstanceImpaired machines fail the cloud's own checks.
	InstanceImpaired Kind = "InstanceImpaired"
)

// Event is one thing that a cloud said about one machine. The zero value says nothing.
type Event struct {
	// ID tells events apart: an event that is delivered again has the same.
	ID string
	// Instance is the id that Create returned.
	Instance string
	// Kind says what happens, At when it was announced.
	Kind Kind
	At   time.Time
	// Deadline is when it happens at the earliest; the zero time if that is not known.
	Deadline time.Time
}

// Response is what a caller should do about a machine that is interrupted.
type Response string

// The responses, from least to most urgent.
const (
	// Ignore: tell people, change nothing.
	Ignore Response = "Ignore"
	// Drain: take no more pods, let those that run leave in their own time, then delete.
	Drain Response = "Drain"
	// Force: delete now, for the machine does not answer or will not be there.
	Force Response = "Force"
)

// Respond is the response to a kind. Kinds that are not listed here are ignored, for they are of a later version.
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

// Refuses reports whether the event also says that the offering of the machine cannot be had for now, so that the next
// plan should do without it (availability.Ledger.Refuse).
func (k Kind) Refuses() bool {
	return k == SpotInterrupted || k == ReservationInterrupted
}
