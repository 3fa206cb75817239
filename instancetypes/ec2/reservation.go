package ec2

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/label"
	"github.com/joinery-sdk/joinery/requirements"
)

// Reservation is capacity held for an account in a zone: an on-demand capacity reservation or a
// capacity block.
type Reservation struct {
	ID, InstanceType, Zone string
	// Count is how many instances are free. 0 keeps the offering but marks it unavailable.
	Count int
	// Price is the price of using it, in US dollars per hour. The reservation is paid whether used
	// or not, so it is usually 0.
	Price float64
	// Block says that it is a capacity block. Interruptible says that its owner may take it back.
	Block, Interruptible bool
}

// Reserve returns the types with the reservations as offerings of capacity type reserved, each with
// its count, before the type's other offerings. Nodes of these types may then have a reservation's
// labels. The error joins a line for each bad reservation: of an unknown type, of a zone that does
// not offer the type, with a negative count or price, or given twice.
func Reserve(types []instancetypes.InstanceType, reservations ...Reservation) ([]instancetypes.InstanceType, error) {
	at := make(map[string]int, len(types))
	names := make([]string, len(types))
	for i, t := range types {
		at[t.Name], names[i] = i, t.Name
	}
	out := slices.Clone(types)
	seen := map[string]bool{}
	var errs []error
	for _, r := range reservations {
		i, known := at[r.InstanceType]
		switch {
		case r.ID == "" || r.Count < 0 || !(r.Price >= 0):
			errs = append(errs, fmt.Errorf("ec2: reservation %q: want an id, and no negative count or price", r.ID))
		case seen[r.ID]:
			errs = append(errs, fmt.Errorf("ec2: reservation %q is given twice", r.ID))
		case !known:
			hint := ""
			if near, ok := requirements.Nearest(r.InstanceType, names); ok {
				hint = fmt.Sprintf(" (did you mean %q?)", near)
			}
			errs = append(errs, fmt.Errorf("ec2: reservation %q: no instance type %q%s", r.ID, r.InstanceType, hint))
		default:
			t, ok := r.add(out[i])
			if !ok {
				errs = append(errs, fmt.Errorf("ec2: reservation %q: %s is not offered in zone %q", r.ID, r.InstanceType, r.Zone))
				continue
			}
			seen[r.ID] = true
			out[i] = t
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

// add puts the reservation before the type's other offerings and allows its labels for the type.
func (r Reservation) add(t instancetypes.InstanceType) (instancetypes.InstanceType, bool) {
	i := slices.IndexFunc(t.Offerings, func(o instancetypes.Offering) bool {
		zone, _ := o.Requirements.Get(corev1.LabelTopologyZone).Single()
		return zone == r.Zone
	})
	if i < 0 {
		return t, false
	}
	kind := "default"
	if r.Block {
		kind = "capacity-block"
	}
	own := []requirements.Requirement{
		requirements.In(instancetypes.LabelCapacityType, instancetypes.CapacityTypeReserved),
		requirements.In(instancetypes.LabelReservationID, r.ID),
		requirements.In(label.ReservationType, kind),
		requirements.In(label.ReservationInterruptible, strconv.FormatBool(r.Interruptible)),
	}
	var keys []string
	var offering, whole requirements.Builder
	for _, q := range own {
		keys = append(keys, q.Key())
		offering.Add(q)
		whole.Add(t.Requirements.Get(q.Key()).Union(q))
	}
	offering.AddSet(t.Offerings[i].Requirements.Without(requirements.KeysOf(keys...)))
	whole.AddSet(t.Requirements.Without(requirements.KeysOf(keys...)))
	sold, err := offering.Set()
	types, errType := whole.Set()
	if err != nil || errType != nil { // an impossible type stays impossible
		return t, false
	}
	t.Requirements = types
	t.Offerings = slices.Insert(slices.Clone(t.Offerings), 0, instancetypes.Offering{
		Requirements: sold, Price: r.Price, Available: r.Count > 0, Full: r.Count == 0, ReservationCount: r.Count,
		List: &instancetypes.PriceList{Name: "capacity reservation " + r.ID},
	})
	return t, true
}
