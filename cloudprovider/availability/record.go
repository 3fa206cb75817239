package availability

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
)

// Scope says how much a record withholds.
type Scope string

// The scopes, from narrow to wide.
const (
	// OfOffering records withhold one offering of one type.
	OfOffering Scope = "Offering"
	// OfFamily records withhold all types of a family, in one zone at one capacity type.
	OfFamily Scope = "Family"
	// OfZone records withhold all types, in one zone at one capacity type.
	OfZone Scope = "Zone"
	// OfQuota records withhold everything that one quota covers.
	OfQuota Scope = "Quota"
)

// Record is something that is withheld now or was withheld recently. Records are plain data with
// JSON tags, so that a ledger can survive a restart.
type Record struct {
	Scope Scope `json:"scope"`
	// Name is the name of the type, family or quota. It is empty for a zone.
	Name string `json:"name,omitempty"`
	// Where says what was refused. For an offering it has the offering's requirements, for a family
	// or a zone the zone and the capacity type. For a quota it matches the nodes that the quota
	// covers.
	Where requirements.Set `json:"where"`
	// Strikes is the number of refusals in a row, at least 1.
	Strikes int `json:"strikes"`
	// Since is when the last refusal came. Until is when it stops counting.
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// Detail is the cloud's message.
	Detail string `json:"detail,omitempty"`
}

// Active reports whether the record still withholds something: it does before Until.
func (r Record) Active(now time.Time) bool { return now.Before(r.Until) }

// Covers reports whether the record is about this offering of this type.
func (r Record) Covers(t instancetypes.InstanceType, o instancetypes.Offering) bool {
	switch r.Scope {
	case OfOffering:
		if t.Name != r.Name {
			return false
		}
	case OfFamily:
		if Family(t.Name) != r.Name {
			return false
		}
	case OfQuota, OfZone:
	}
	return instancetypes.PriceQuery{Type: named(t), Offering: o}.Matches(r.Where)
}

// named returns the type with its name among its labels. A catalogue need not repeat the name
// there.
func named(t instancetypes.InstanceType) instancetypes.InstanceType {
	if t.Requirements.Has(corev1.LabelInstanceTypeStable) {
		return t
	}
	if set, err := t.Requirements.Intersect(requirements.MustOf(requirements.In(corev1.LabelInstanceTypeStable, t.Name))); err == nil {
		t.Requirements = set
	}
	return t
}

// String says what is withheld and until when: `Offering m5.large (...) until 10:03:00 (strike 1)`.
func (r Record) String() string {
	name := r.Name
	if name != "" {
		name += " "
	}
	return fmt.Sprintf("%s %s(%s) until %s (strike %d)", r.Scope, name, r.Where, r.Until.UTC().Format(time.RFC3339), r.Strikes)
}

func (r Record) key() string { return string(r.Scope) + "\x00" + r.Name + "\x00" + r.Where.String() }

// place returns the part of an offering by which families and zones are counted.
func place(offering requirements.Set) requirements.Set {
	return offering.Restrict(requirements.KeysOf(corev1.LabelTopologyZone, instancetypes.LabelCapacityType))
}

func compareRecords(a, b Record) int {
	return cmp.Or(cmp.Compare(a.Scope.rank(), b.Scope.rank()), strings.Compare(a.Name, b.Name), strings.Compare(a.Where.String(), b.Where.String()))
}

func (s Scope) rank() int {
	switch s {
	case OfOffering:
		return 0
	case OfFamily:
		return 1
	case OfZone:
		return 2
	case OfQuota:
		return 3
	default:
		return -1
	}
}

func (r Record) validate(i int) error {
	var errs []error
	fault := func(field, format string, args ...any) {
		errs = append(errs, &cloudprovider.InvalidError{Path: fmt.Sprintf("records[%d].%s", i, field), Detail: fmt.Sprintf(format, args...)})
	}
	if r.Scope.rank() < 0 {
		fault("scope", "%q is not one of Offering, Family, Zone and Quota", r.Scope)
	}
	if r.Name == "" && r.Scope != OfZone {
		fault("name", "required")
	}
	if r.Name != "" && r.Scope == OfZone {
		fault("name", "%q must be empty for a zone", r.Name)
	}
	if r.Where.IsImpossible() {
		fault("where", "no node satisfies it")
	}
	if r.Strikes < 1 {
		fault("strikes", "%d is less than 1", r.Strikes)
	}
	if r.Until.Before(r.Since) {
		fault("until", "is before since")
	}
	return errors.Join(errs...)
}
