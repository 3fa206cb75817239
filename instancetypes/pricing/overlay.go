package pricing

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
)

// Overlay is a correction by a NodeOverlay (karpenter.sh/v1alpha1): the price of matching
// offerings, and extended resources of matching types.
type Overlay struct {
	Name   string
	Weight int32 // of several that match, the one with the greatest weight applies
	Match  requirements.Set
	// Price replaces the price. If it is nil, Adjustment is added to the price, in US dollars or,
	// if Percent is set, as a percentage of it. Nil and 0 leave the price unchanged.
	Price      *float64
	Adjustment float64
	Percent    bool
	// Capacity is added to types, or replaces their resources of the same name.
	Capacity corev1.ResourceList
}

// Overlays are overlays in the order in which they are tried, see [NewOverlays]. The zero value
// changes nothing.
type Overlays struct{ sorted []Overlay }

// ConflictError says that two overlays of equal weight correct the same offering or type. If the
// error is ignored, the first by name applies.
type ConflictError struct{ First, Second string }

// Error names both overlays.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("pricing: overlays %q and %q have the same weight and match the same nodes: give one more weight", e.First, e.Second)
}

// NewOverlays orders overlays by weight, then by name. The error joins a [*ConflictError] for each
// pair of equal weight that corrects the same thing where their requirements overlap. The overlays
// are valid even then. The cost is quadratic in the number of overlays of one weight.
func NewOverlays(overlays ...Overlay) (Overlays, error) {
	sorted := slices.Clone(overlays)
	slices.SortFunc(sorted, func(a, b Overlay) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), strings.Compare(a.Name, b.Name))
	})
	var errs []error
	for i, a := range sorted {
		for _, b := range sorted[i+1:] {
			if b.Weight != a.Weight {
				break
			}
			if a.collides(b) && a.Match.Overlaps(b.Match) {
				errs = append(errs, &ConflictError{First: a.Name, Second: b.Name})
			}
		}
	}
	return Overlays{sorted}, errors.Join(errs...)
}

// On returns the overlay for types whose nodes all get these labels in addition to those of their
// type, such as the labels of a node pool. It is false if no such node meets the overlay.
func (o Overlay) On(labels map[string]string) (Overlay, bool) {
	own := requirements.FromLabels(labels)
	if !o.Match.Overlaps(own) {
		return Overlay{}, false
	}
	o.Match = o.Match.Without(own.Keys())
	return o, true
}

func (o Overlay) prices() bool { return o.Price != nil || o.Adjustment != 0 }

// collides reports whether both correct the price, or both correct the same resource.
func (o Overlay) collides(other Overlay) bool {
	if o.prices() && other.prices() {
		return true
	}
	for name := range o.Capacity {
		if _, both := other.Capacity[name]; both {
			return true
		}
	}
	return false
}

// Quotes applies the overlay with the greatest weight that corrects the offering's price, see
// [instancetypes.PriceSource].
func (o Overlays) Quotes(q instancetypes.PriceQuery, below []instancetypes.Quote) []instancetypes.Quote {
	for _, overlay := range o.sorted {
		if !overlay.prices() || !q.Matches(overlay.Match) {
			continue
		}
		from := &instancetypes.PriceList{Name: "NodeOverlay " + overlay.Name}
		if overlay.Price != nil {
			return []instancetypes.Quote{{Price: *overlay.Price, List: from}}
		}
		return each(below, func(quote instancetypes.Quote) float64 {
			if overlay.Percent {
				return quote.Price * (1 + overlay.Adjustment/100)
			}
			return quote.Price + overlay.Adjustment
		})
	}
	return below
}

// Extend returns the types with the resources that overlays add. An overlay applies to a type if
// the type's own labels match, because capacity does not depend on how a node is bought. The values
// are new; types that do not change are shared.
func (o Overlays) Extend(types []instancetypes.InstanceType) []instancetypes.InstanceType {
	out := slices.Clone(types)
	for i, t := range out {
		capacity := t.Capacity
		added := map[corev1.ResourceName]bool{}
		for _, overlay := range o.sorted {
			if len(overlay.Capacity) == 0 || !(instancetypes.PriceQuery{Type: t}).Matches(overlay.Match) {
				continue
			}
			for _, name := range resources.Names(overlay.Capacity) {
				if added[name] {
					continue
				}
				if len(added) == 0 {
					capacity = resources.Add(capacity, nil)
				}
				added[name] = true
				capacity[name] = overlay.Capacity[name].DeepCopy()
			}
		}
		out[i].Capacity = capacity
	}
	return out
}
