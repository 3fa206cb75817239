package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider/interruption"
)

// envelope is the outer object of every EventBridge event.
type envelope struct {
	Version    string          `json:"version"`
	ID         string          `json:"id"`
	Source     string          `json:"source"`
	DetailType string          `json:"detail-type"`
	Time       time.Time       `json:"time"`
	Detail     json.RawMessage `json:"detail"`
}

// Parse reads a message of EventBridge, with or without the wrapper of SNS. The events name
// instances by their bare ids. A valid message of no interest has no events. The error says that
// the message is malformed.
func Parse(body string) ([]interruption.Event, error) {
	var m envelope
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		return nil, errors.New("events: the message is not an event of EventBridge")
	}
	var wrapped struct{ Type, Message string }
	if json.Unmarshal([]byte(body), &wrapped) == nil && wrapped.Type == "Notification" && json.Unmarshal([]byte(wrapped.Message), &m) != nil {
		return nil, errors.New("events: the notification of SNS does not contain an event of EventBridge")
	}
	switch {
	case m.ID == "" || m.Source == "" || m.DetailType == "" || m.Time.IsZero():
		return nil, errors.New("events: the event lacks its id, source, detail-type or time")
	case m.Version != "" && m.Version != "0":
		return nil, fmt.Errorf("events: the event has the version %q: want 0", m.Version)
	}
	switch m.Source {
	case "aws.ec2":
		return m.ofEC2()
	case "aws.health":
		return m.ofHealth()
	default:
		return nil, nil
	}
}

func (m envelope) ofEC2() ([]interruption.Event, error) {
	var d struct {
		Instance string `json:"instance-id"`
		State    string `json:"state"`
	}
	kind := map[string]interruption.Kind{
		"EC2 Spot Instance Interruption Warning":                 interruption.SpotInterrupted,
		"EC2 Instance Rebalance Recommendation":                  interruption.RebalanceRecommended,
		"EC2 Capacity Reservation Instance Interruption Warning": interruption.ReservationInterrupted,
		"EC2 Instance State-change Notification":                 interruption.InstanceStopping,
	}[m.DetailType]
	if kind == "" {
		return nil, nil
	}
	if json.Unmarshal(m.Detail, &d) != nil || !strings.HasPrefix(d.Instance, "i-") {
		return nil, errors.New("events: the event names no instance")
	}
	e := interruption.Event{ID: m.ID, Instance: d.Instance, Kind: kind, At: m.Time}
	switch kind {
	case interruption.InstanceStopping:
		switch d.State {
		case "stopping", "stopped":
		case "shutting-down", "terminated":
			e.Kind = interruption.InstanceTerminating
		default:
			return nil, nil
		}
	case interruption.SpotInterrupted:
		e.Deadline = m.Time.Add(2 * time.Minute) // the notice that Spot promises
	default:
	}
	return []interruption.Event{e}, nil
}

// ofHealth reads scheduled changes of EC2, which may name many instances.
func (m envelope) ofHealth() ([]interruption.Event, error) {
	var d struct {
		Service  string `json:"service"`
		Category string `json:"eventTypeCategory"`
		Start    string `json:"startTime"`
		Status   string `json:"statusCode"`
		Entities []struct {
			Value string `json:"entityValue"`
		} `json:"affectedEntities"`
	}
	if m.DetailType != "AWS Health Event" {
		return nil, nil
	}
	if json.Unmarshal(m.Detail, &d) != nil {
		return nil, errors.New("events: the health event has no detail of the known form")
	}
	if d.Service != "EC2" || d.Category != "scheduledChange" || d.Status == "closed" {
		return nil, nil
	}
	// If the start cannot be read, the deadline is unknown.
	var deadline time.Time
	for _, layout := range []string{time.RFC1123, time.RFC3339} {
		if at, err := time.Parse(layout, d.Start); err == nil {
			deadline = at.UTC()
		}
	}
	var events []interruption.Event
	for _, entity := range d.Entities {
		if strings.HasPrefix(entity.Value, "i-") {
			events = append(events, interruption.Event{
				ID: m.ID + "/" + entity.Value, Instance: entity.Value, Kind: interruption.MaintenanceScheduled, At: m.Time, Deadline: deadline,
			})
		}
	}
	return events, nil
}
