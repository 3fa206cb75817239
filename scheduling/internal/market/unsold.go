package market

import (
	"cmp"
	"math"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
)

// Unsold says why none of some offerings can be bought, after the word "is". It is empty if one can.
func Unsold(offers []instancetypes.Offering) string {
	full, priceless, withheld := 0, 0, ""
	for _, o := range offers {
		switch ok := o.Price >= 0 && !math.IsInf(o.Price, 1); {
		case o.Available && ok:
			return ""
		case o.Available:
			priceless++
		case o.Withheld != "":
			withheld = cmp.Or(withheld, o.Withheld)
		case o.Full:
			full++
		}
	}
	switch n := len(offers); {
	case n == 0:
		return "without offerings"
	case withheld != "": // without the setting, it could be bought
		return "excluded by " + withheld
	case full == n:
		return "sold out"
	case priceless == n:
		return "without a price"
	case full > 0:
		return "sold out or not available now"
	}
	return "not available now"
}

// NoneSold says that no offering of the types that meets a pool's requirements can be bought, and
// why. It is empty if one can, or if none meets them.
func NoneSold(types []instancetypes.InstanceType, pool requirements.Set) string {
	met, offers := false, []instancetypes.Offering(nil)
	for i := range types {
		if !types[i].Requirements.Overlaps(pool) {
			continue
		}
		met = met || len(types[i].Offerings) == 0
		for _, o := range types[i].Offerings {
			if o.Requirements.Overlaps(pool) {
				met, offers = true, append(offers, o)
			}
		}
	}
	switch why := Unsold(offers); {
	case !met || why == "":
		return ""
	case len(offers) == 0:
		return "all of its types are " + why
	default:
		return "all of its offerings are " + why
	}
}

// Where names the zone and the capacity type of an offering.
func Where(o *instancetypes.Offering) string {
	return o.Requirements.Restrict(requirements.KeysOf(corev1.LabelTopologyZone, instancetypes.LabelCapacityType)).String()
}
