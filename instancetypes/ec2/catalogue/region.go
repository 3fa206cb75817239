package catalogue

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue/internal/line"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/describe"
	"github.com/joinery-sdk/joinery/requirements"
)

// Region is what can be bought in one region.
type Region struct {
	Name  string
	Zones []Zone // by name
	// ZonesAssumed says that no source tells which zones offer a type, so that each type is listed
	// in all of them.
	ZonesAssumed bool
	Offers       []Offer // by type name
	// OnDemandDate and SpotDate are the dates of the price lists, YYYY-MM-DD. SpotDate is empty if
	// there are no spot prices.
	OnDemandDate, SpotDate string
}

// Zone is an availability zone. Zone names stand for different ids in each account; these are the
// names of one account.
type Zone struct {
	Name string // us-east-1a
	ID   string // use1-az2
}

// Offer is an instance type in a region.
type Offer struct {
	describe.Description
	// Retired types are described only by an older source: AWS no longer offers them to everybody.
	Retired bool
	Zones   []Zone
	// OnDemand is the price in US dollars per hour; 0 means that no list has it. Estimated says
	// that the region's list lacks it, and that it was derived from the price in us-east-1.
	// ESTIMATES.md says how accurate that is.
	OnDemand  float64
	Estimated bool
	// Spot is an estimate in US dollars per hour: the on-demand price minus the usual savings. 0
	// means that there is no number, or that it is not sold as spot. Guessed says that the savings
	// are assumed. They are the median of similar types, at most 75%. If the type's own savings are
	// known and above 75%, they are assumed to be 75%, because greater savings do not last.
	Spot    float64
	Guessed bool
}

// UnknownRegionError says that the catalogue does not have a region.
type UnknownRegionError struct {
	Name    string
	Nearest string // the name that was probably meant, if any
}

// Error names the region and the one that was probably meant.
func (e *UnknownRegionError) Error() string {
	if e.Nearest != "" {
		return fmt.Sprintf("catalogue: no region %q (did you mean %q?)", e.Name, e.Nearest)
	}
	return fmt.Sprintf("catalogue: no region %q: want one of %s", e.Name, strings.Join(Regions(), ", "))
}

// Regions returns the regions of the catalogue in ascending order.
func Regions() []string {
	var out []string
	for _, name := range names() {
		if region, ok := strings.CutPrefix(name, "regions/"); ok {
			out = append(out, strings.TrimSuffix(region, ".txt"))
		}
	}
	return out
}

// Types returns all instance types of the catalogue by name, offered anywhere or not, including
// retired ones.
func Types() ([]describe.Description, error) {
	var out []describe.Description
	for l := range lines("types.txt") {
		t, err := line.Decode(l)
		if err != nil {
			return nil, fmt.Errorf("catalogue: types: %w", err)
		}
		out = append(out, t.Description)
	}
	return out, nil
}

// RegionsOf returns the regions that offer a type, in ascending order, for messages such as "not in
// this region, but in ...". It scans the whole catalogue, which takes a millisecond.
func RegionsOf(name string) []string {
	if !strings.Contains(name, ".") { // other lines of the files start with plain words
		return nil
	}
	var out []string
	for _, region := range Regions() {
		if strings.Contains(text("regions/"+region+".txt"), "\n"+name+" ") {
			out = append(out, region)
		}
	}
	return out
}

// Load reads one region. The error is an [*UnknownRegionError] for a name that the catalogue does
// not have. It can be another error only if the embedded data is broken. It takes a few
// milliseconds, mostly for the types' descriptions.
func Load(region string) (Region, error) {
	file := "regions/" + region + ".txt"
	if strings.Contains(region, "/") || text(file) == "" {
		near, _ := requirements.Nearest(region, Regions())
		return Region{}, &UnknownRegionError{Name: region, Nearest: near}
	}
	types, err := descriptionLines()
	if err != nil {
		return Region{}, err
	}
	here, err := prices(region)
	if err != nil {
		return Region{}, err
	}
	there, err := prices(home)
	if err != nil {
		return Region{}, err
	}
	estimates := newEstimator(there, here)
	r := Region{Name: region}
	zones := zoneSets{}
	var errs []error
	for l := range lines(file) {
		first, rest, _ := strings.Cut(l, " ")
		switch first {
		case "list":
			_, r.OnDemandDate, _ = strings.Cut(rest, " ")
		case "assumed":
			r.ZonesAssumed = true
		case "zone":
			letter, id, _ := strings.Cut(rest, " ")
			r.Zones = append(r.Zones, Zone{Name: region + letter, ID: id})
		default:
			o, err := r.offer(l, types, zones, estimates)
			if err != nil {
				errs = append(errs, fmt.Errorf("catalogue: %s: %w", region, err))
				continue
			}
			r.Offers = append(r.Offers, o)
			if o.Spot > 0 {
				r.SpotDate = sourceDate("i")
			}
		}
	}
	return r, errors.Join(errs...)
}

// descriptionLines indexes the lines of types.txt by name without decoding them, because a region
// offers only some of them.
func descriptionLines() (map[string]string, error) {
	out := make(map[string]string, 1500)
	for l := range lines("types.txt") {
		name, _, _ := strings.Cut(l, " ")
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("catalogue: types: %q is described twice", name)
		}
		out[name] = l
	}
	return out, nil
}

// zoneSets shares one slice among all offers in the same zones.
type zoneSets map[string][]Zone

func (r Region) offer(l string, types map[string]string, sets zoneSets, estimates estimator) (Offer, error) {
	o, err := line.DecodeOffer(l)
	if err != nil {
		return Offer{}, err
	}
	described, ok := types[o.Type]
	if !ok {
		return Offer{}, fmt.Errorf("%q is offered but not described", o.Type)
	}
	t, err := line.Decode(described)
	if err != nil {
		return Offer{}, err
	}
	out := Offer{Description: t.Description, Retired: t.Retired}
	if out.Zones, ok = sets[o.Zones]; !ok {
		for _, z := range r.Zones {
			if strings.Contains(o.Zones, strings.TrimPrefix(z.Name, r.Name)) {
				out.Zones = append(out.Zones, z)
			}
		}
		sets[o.Zones] = out.Zones
	}
	if o.Price == "" {
		out.OnDemand = estimates.price(o.Type)
		out.Estimated = out.OnDemand > 0
	} else if out.OnDemand, err = strconv.ParseFloat(o.Price, 64); err != nil {
		return Offer{}, err
	}
	if o.Savings >= 0 {
		// Lists have at most six decimals. More would only show the rounding of binary fractions.
		out.Spot, out.Guessed = math.Round(out.OnDemand*float64(100-o.Savings)*1e4)/1e6, o.Guessed
	}
	return out, nil
}
