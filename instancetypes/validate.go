package instancetypes

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
)

// Upper limits for a catalogue: far above any machine, but low enough that sums over a cluster fit
// into an int64.
const (
	maxCPU   = 1_000_000 * 1000 // a million cores
	maxOther = 1 << 55          // 32 PiB, or as many devices
	maxPrice = 1_000_000
)

// InvalidError is a fault in a catalogue. Path leads from the list of types to the fault:
// "[3].offerings[0].price".
type InvalidError struct {
	Path   string
	Type   string // the instance type's name, if it has one
	Detail string
}

// Error returns "instancetypes: path (type): detail".
func (e *InvalidError) Error() string {
	if e.Type == "" {
		return fmt.Sprintf("instancetypes: %s: %s", e.Path, e.Detail)
	}
	return fmt.Sprintf("instancetypes: %s (%s): %s", e.Path, e.Type, e.Detail)
}

// Validate rejects a catalogue that cannot be planned with: types without a name, duplicate types,
// impossible requirements, keys and values that no label can have, resources and capacity types
// that look misspelt, offerings without exactly one zone or capacity type if they name any,
// offerings that contradict their type, negative, infinite or absurd prices and sizes, duplicate
// offerings, different counts of one commitment. The error joins one [*InvalidError] for each
// fault. The cost is linear in the catalogue.
func Validate(types []InstanceType) error {
	var errs []error
	first := make(map[string]int, len(types))
	keys, values, counts := map[string]string{}, map[string]string{}, map[string]counted{}
	for i, t := range types {
		v := validator{at: fmt.Sprintf("[%d]", i), name: t.Name, keys: keys, values: values}
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
		v.labels("requirements", t.Requirements)
		v.list("capacity", t.Capacity)
		v.list("overhead.kubeReserved", t.Overhead.KubeReserved)
		v.list("overhead.systemReserved", t.Overhead.SystemReserved)
		v.list("overhead.evictionThreshold", t.Overhead.EvictionThreshold)
		v.offerings(&t)
		v.counts(t.Offerings, counts)
		errs = append(errs, v.errs...)
	}
	return errors.Join(errs...)
}

// counted is the first offering of a commitment, and its count.
type counted struct {
	at    string
	count int
}

// counts checks that the offerings of a commitment have one count. An amount of money has a count
// for each offering.
func (v *validator) counts(offerings []Offering, first map[string]counted) {
	for i, o := range offerings {
		if o.Commitment == "" || o.ReservationCount <= 0 || o.CommittedPerHour != 0 {
			continue
		}
		at := fmt.Sprintf("offerings[%d]", i)
		one, ok := first[o.Commitment]
		switch {
		case !ok:
			first[o.Commitment] = counted{v.at + "." + at, o.ReservationCount}
		case one.count != o.ReservationCount:
			v.bad(at+".reservationCount", "%d, but %s has %d of the same stock or commitment %q: want one number, which they share", o.ReservationCount, one.at, one.count, o.Commitment)
		}
	}
}

type validator struct {
	at, name string
	errs     []error
	// keys and values have the fault of each label key and value seen so far, and empty texts for
	// valid ones. A catalogue repeats few of them in thousands of offerings.
	keys, values map[string]string
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
		known := []string{"cpu", "memory", "ephemeral-storage", "pods"}
		if near := resources.Meant(name, known...); near != "" {
			v.bad(path+"["+string(name)+"]", "unknown resource (did you mean %q?)", near)
		}
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

// place checks the labels of which an offering has one value each.
func (v *validator) place(path string, set requirements.Set) {
	for _, key := range []string{corev1.LabelTopologyZone, LabelCapacityType} {
		if !set.Has(key) {
			continue
		}
		value, ok := set.Get(key).Single()
		if !ok || value == "" {
			v.bad(path, "%s: want one value that is not empty, or no such label", set.Get(key))
			continue
		}
		known := []string{CapacityTypeOnDemand, CapacityTypeSpot, CapacityTypeReserved}
		if near, ok := requirements.Nearest(value, known); ok && key == LabelCapacityType && !slices.Contains(known, value) {
			v.bad(path, "unknown capacity type %q (did you mean %q?)", value, near)
		}
	}
}

// labels rejects keys and values that Kubernetes accepts in no label. Integers are always valid.
func (v *validator) labels(path string, set requirements.Set) {
	for r := range set.All() {
		if fault := known(v.keys, r.Key(), validation.IsQualifiedName); fault != "" {
			v.bad(path, "%q is not a label key: %s", r.Key(), fault)
		}
		value := func(text string) {
			if fault := known(v.values, text, validation.IsValidLabelValue); fault != "" {
				v.bad(path, "%q is not a value of the label %s: %s", text, r.Key(), fault)
			}
		}
		if text, ok := r.Single(); ok { // as nearly all are
			value(text)
			continue
		}
		words := requirements.Gte(r.Key(), 0).Complement()
		for _, part := range []requirements.Requirement{r, r.Complement()} { // one of the two lists its words
			listed, _ := part.Intersect(words).Values()
			for _, text := range listed {
				value(text)
			}
		}
	}
}

// known returns the fault that check finds in text, and remembers it.
func known(faults map[string]string, text string, check func(string) []string) string {
	fault, ok := faults[text]
	if !ok {
		fault = strings.Join(check(text), "; ")
		faults[text] = fault
	}
	return fault
}

func (v *validator) offerings(t *InstanceType) {
	first := make(map[string]int, len(t.Offerings))
	var key []byte
	for i, o := range t.Offerings {
		at := func(field string) string { return fmt.Sprintf("offerings[%d]%s", i, field) }
		switch {
		case math.IsNaN(o.Price) || math.IsInf(o.Price, 0):
			v.bad(at(".price"), "%v: want a finite price in US dollars per hour", o.Price)
		case o.Price < 0:
			v.bad(at(".price"), "%v: want no negative price", o.Price)
		case o.Price > maxPrice:
			v.bad(at(".price"), "%v: no machine costs that much per hour", o.Price)
		}
		if o.ReservationCount < 0 {
			v.bad(at(".reservationCount"), "%d: want 0 for no limit, or a count", o.ReservationCount)
		}
		if o.Full && (o.Available || o.ReservationCount > 0) {
			v.bad(at(".full"), "true, with a count of %d: want it only if nothing is left to buy", o.ReservationCount)
		}
		if o.CommittedPerHour != 0 && !(o.Commitment != "" && o.ReservationCount > 0 && o.CommitmentRate > 0 && o.CommitmentRate <= o.CommittedPerHour && o.CommittedPerHour <= maxPrice) {
			v.bad(at(".committedPerHour"), "%v with a rate of %v: want dollars per hour that cover a node at least, a rate, a count and a name of the commitment", o.CommittedPerHour, o.CommitmentRate)
		}
		if o.Requirements.IsImpossible() {
			v.bad(at(".requirements"), "contradict each other, so this cannot be bought")
			continue
		}
		v.labels(at(".requirements"), o.Requirements)
		v.place(at(".requirements"), o.Requirements)
		if !t.Requirements.IsImpossible() && !t.Requirements.Overlaps(o.Requirements) {
			_, err := t.Requirements.Intersect(o.Requirements)
			v.bad(at(".requirements"), "contradict those of the type, so this cannot be bought: %v", err)
		}
		key = append(o.Requirements.AppendKey(key[:0]), o.Commitment...)
		if j, twice := first[string(key)]; twice {
			what := o.Requirements.String()
			if o.Commitment != "" {
				what += " by " + o.Commitment
			}
			v.bad(at(""), "the same offering as offerings[%d]: %s", j, what)
			continue
		}
		first[string(key)] = i
	}
}
