package describe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// ReadReservations reads the output of `aws ec2 describe-capacity-reservations`, one page or several
// in sequence. The result is, by id, how many instances can still be launched into each capacity
// reservation: none if its state is not active. If an id appears several times, the last one counts.
func ReadReservations(data []byte) (map[string]int, error) {
	out := map[string]int{}
	dec := json.NewDecoder(bytes.NewReader(data))
	pages := 0
	for ; dec.More(); pages++ {
		var page struct {
			CapacityReservations *[]struct {
				CapacityReservationID  string `json:"CapacityReservationId"`
				State                  string
				AvailableInstanceCount *int
			}
		}
		if err := dec.Decode(&page); err != nil {
			return nil, fmt.Errorf("describe: %w", syntax(err))
		}
		if page.CapacityReservations == nil {
			return nil, errors.New(`describe: no list "CapacityReservations": want the JSON that "aws ec2 describe-capacity-reservations" prints`)
		}
		for i, r := range *page.CapacityReservations {
			if r.CapacityReservationID == "" || r.AvailableInstanceCount == nil || *r.AvailableInstanceCount < 0 {
				return nil, fmt.Errorf("describe: CapacityReservations[%d] (%s): want CapacityReservationId and AvailableInstanceCount, 0 or more", i, r.CapacityReservationID)
			}
			if out[r.CapacityReservationID] = *r.AvailableInstanceCount; r.State != "active" {
				out[r.CapacityReservationID] = 0
			}
		}
	}
	if pages == 0 {
		return nil, errors.New(`describe: empty input: want the JSON that "aws ec2 describe-capacity-reservations" prints`)
	}
	return out, nil
}
