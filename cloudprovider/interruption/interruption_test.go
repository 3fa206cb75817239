package interruption_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/joinery-sdk/joinery/cloudprovider/interruption"
)

func TestRespond(t *testing.T) {
	for kind, want := range map[interruption.Kind]interruption.Response{
		interruption.SpotInterrupted:        interruption.Drain,
		interruption.ReservationInterrupted: interruption.Drain,
		interruption.MaintenanceScheduled:   interruption.Drain,
		interruption.InstanceStopping:       interruption.Drain,
		interruption.InstanceTerminating:    interruption.Drain,
		interruption.InstanceImpaired:       interruption.Force,
		interruption.RebalanceRecommended:   interruption.Ignore,
		"OfTheFuture":                       interruption.Ignore,
	} {
		assert.Equal(t, want, kind.Respond(), kind)
		refuses := kind == interruption.SpotInterrupted || kind == interruption.ReservationInterrupted
		assert.Equal(t, refuses, kind.Refuses(), kind)
	}
}

// queue is a source with two events, confirmed by the cursor "2".
type queue struct{}

func (queue) Interruptions(_ context.Context, cursor string) ([]interruption.Event, string, error) {
	if cursor == "2" {
		return nil, "2", nil
	}
	return []interruption.Event{
		{ID: "1", Instance: "i-1", Kind: interruption.SpotInterrupted},
		{ID: "2", Instance: "i-2", Kind: interruption.RebalanceRecommended},
	}, "2", nil
}

func ExampleSource() {
	var source interruption.Source = queue{}
	cursor := ""
	for range 2 {
		events, next, err := source.Interruptions(context.Background(), cursor)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, e := range events {
			fmt.Println(e.Instance, e.Kind, e.Kind.Respond())
		}
		cursor = next // only now, that the events are dealt with
	}
	// Output:
	// i-1 SpotInterrupted Drain
	// i-2 RebalanceRecommended Ignore
}

func ExampleKind_Refuses() {
	fmt.Println(interruption.SpotInterrupted.Refuses(), interruption.InstanceImpaired.Refuses())
	// Output: true false
}
