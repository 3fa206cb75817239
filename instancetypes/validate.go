package instancetypes

import (
	"errors"
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

// Ceilings of what a catalogue may claim: far above any machine, low enough that sums over a cluster stay in int64.
const (
	maxCPU   = 1_000_000 * 1000 // a million cores
	maxOther = 1 << 55          // 32 PiB, or as many devices
	maxPrice = 1_000_000
)

// InvalidError is a fault in a catalogue. Path leads from the list of types to the fault: "[3].offerings[0].price".
type InvalidError struct {
	Path   string
	Type   string // the instance type's name, if it has one
	Detail string
}

// Error is "instancetypes: path (type): detail".
func (e *InvalidError) Error() string {
	if e.Type == "" {
		return fmt.Sprintf("instancetypes: %s: %s", e.Path, e.Detail)
	}
	return fmt.Sprintf("instancetypes: %s (%s): %s", e.Path, e.Type, e.Detail)
}

// Validate refuses a catalogue that cannot be planned with: nameless or duplicate types, impossible requirements,
// negative, infinite or absurd prices and sizes, duplicate offerings. The error joins one [*InvalidError] for each fault.
// Cost is linear in the catalogue.
func Validate(types []InstanceType) error {
	var errs []error
	first := make(map[string]int, len(types))
	for i, t := range types {
		v := validator{at: fmt.Sprintf("[%d]", i), name: t.Name}
		if t.Name == "" {
			v.bad("name", "empty: want the name of the instance type")
		} else if j, twice := first[t.Name]; twice {
			v.bad("name", "%q is the name of [%d], too", t.Name, j)
		} else {
			first[t.Name] = i
		}
		if t.Requirements.IsImpossible() {
			v.bad("requirements", "contradict each other: no node can have them")
		}
		v.list("capacity", t.Capacity)
		v.list("overhead.kubeReserved", t.Overhead.KubeReserved)
		v.list("overhead.systemReserved", t.Overhead.SystemReserved)
		v.list("overhead.evictionThreshold", t.Overhead.EvictionThreshold)
		v.offerings(t.Offerings)
		errs = append(errs, v.errs...)
	}
	return errors.Join(errs...)
}

type validator struct {
	at, name string
	errs     []error
}

func (v *validator) bad(path, format string, args ...any) {
	v.errs = append(v.errs, &InvalidError{Path: v.at + "." + path, Type: v.name, Detail: fmt.Sprintf(format, args...)})
}

func (v *validator) list(path string, list corev1.ResourceList) {
	for _, name := range resources.Names(list) {
		ceiling := int64(maxOther)
		if name == corev1.ResourceCPU {
			ceiling = maxCPU
		}
		q := list[name]
		switch n := resources.Request(name, q); {
		case name == "":
			v.bad(path, "a resource without name")
		case n < 0:
			v.bad(path+"["+string(name)+"]", "%s: want no negative quantity", q.String())
		case n > ceiling:
			v.bad(path+"["+string(name)+"]", "%s: no machine is that large", q.String())
		}
	}
}

func (v *validator) offerings(offerings []Offering) {
	first := make(map[string]int, len(offerings))
	for i, o := range offerings {
		at := fmt.Sprintf("offerings[%d]", i)
		switch {
		case math.IsNaN(o.Price) || math.IsInf(o.Price, 0):
			v.bad(at+".price", "%v: want a finite price in US dollars per hour", o.Price)
		case o.Price < 0:
			v.bad(at+".price", "%v: want no negative price", o.Price)
		case o.Price > maxPrice:
			v.bad(at+".price", "%v: no machine costs that much per hour", o.Price)
		}
		if o.ReservationCount < 0 {
			v.bad(at+".reservationCount", "%d: want 0 for no limit, or a count", o.ReservationCount)
		}
		if o.CommittedPerHour != 0 && !(o.Commitment != "" && o.ReservationCount > 0 && o.CommitmentRate > 0 && o.CommitmentRate <= o.CommittedPerHour && o.CommittedPerHour <= maxPrice) {
			v.bad(at+".committedPerHour", "%v with a rate of %v: want dollars per hour that cover a node at least, a rate, a count and a name of the commitment", o.CommittedPerHour, o.CommitmentRate)
		}
		if o.Requirements.IsImpossible() {
			v.bad(at+".requirements", "contradict each other: nobody can buy this")
			continue
		}
		key := string(o.Requirements.AppendKey(nil)) + o.Commitment
		if j, twice := first[key]; twice {
			what := o.Requirements.String()
			if o.Commitment != "" {
				what += " by " + o.Commitment
			}
			v.bad(at, "the same offering as offerings[%d]: %s", j, what)
			continue
		}
		first[key] = i
	}
}
