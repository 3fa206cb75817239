package catalogue

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue/internal/line"
)

// home is the region with the newest price list and the most types. Other regions' lists lack types
// that were launched since they were made.
const home = "us-east-1"

// family is what the name of a family says: m, 8, g, dn in m8gdn. maker is the letter of the
// processor's manufacturer: a, g or i; no letter also means i.
type family struct {
	name, category, maker, extras string
	generation                    int
}

// familyOf reads the name of a type up to its dot. Names of another form, such as u-6tb1, are a
// category of their own.
func familyOf(typ string) family {
	name, _, _ := strings.Cut(typ, ".")
	f := family{name: name, maker: "i"}
	at := strings.IndexAny(name, "0123456789")
	if at <= 0 {
		f.category = name
		return f
	}
	if name[0] == 'u' {
		f.category = "u"
		return f
	}
	end := at
	for end < len(name) && name[end] >= '0' && name[end] <= '9' {
		end++
	}
	f.category, f.extras = name[:at], name[end:]
	f.generation, _ = strconv.Atoi(name[at:end])
	if f.extras != "" && strings.Contains("agi", f.extras[:1]) {
		f.maker, f.extras = f.extras[:1], f.extras[1:]
	}
	return f
}

// distance returns how different two families are. Prices differ between regions most by category,
// then by the manufacturer of the processor; network and disks matter less, and generations least.
// The weights only have to keep this order.
func (f family) distance(g family) int {
	d := f.generation - g.generation
	if d < 0 {
		d = -d
	}
	if f.category != g.category {
		d += 100
	}
	if f.maker != g.maker {
		d += 4
	}
	for _, c := range f.extras + g.extras {
		if strings.ContainsRune(f.extras, c) != strings.ContainsRune(g.extras, c) {
			d += 2
		}
	}
	return d
}

// estimator knows the cost of each family in a region as a multiple of its cost at home.
type estimator struct {
	home   map[string]float64 // by type, US dollars per hour
	ratios []ratio            // by family
}

type ratio struct {
	family family
	value  float64 // the median of the family's types
}

// newEstimator compares the prices of a region with those at home.
func newEstimator(home, here map[string]float64) estimator {
	byFamily := map[string][]float64{}
	for name, price := range here {
		if at := home[name]; at > 0 && price > 0 {
			f := familyOf(name).name
			byFamily[f] = append(byFamily[f], price/at)
		}
	}
	e := estimator{home: home}
	for name, values := range byFamily {
		slices.Sort(values)
		e.ratios = append(e.ratios, ratio{familyOf(name), values[len(values)/2]})
	}
	slices.SortFunc(e.ratios, func(a, b ratio) int { return cmp.Compare(a.family.name, b.family.name) })
	return e
}

// price returns an estimate of the cost of a type: the price at home times the ratio of the nearest
// family that both regions have, its own if possible. Of equally near families it is the first by
// name. It returns 0 if home does not have the type either, or if the regions have nothing in
// common.
func (e estimator) price(name string) float64 {
	if e.home[name] == 0 || len(e.ratios) == 0 {
		return 0
	}
	f := familyOf(name)
	nearest := slices.MinFunc(e.ratios, func(a, b ratio) int { return cmp.Compare(f.distance(a.family), f.distance(b.family)) })
	return math.Round(e.home[name]*nearest.value*1e6) / 1e6
}

// prices reads the published prices of a region, by type.
func prices(region string) (map[string]float64, error) {
	out := map[string]float64{}
	for l := range lines("regions/" + region + ".txt") {
		if first, _, _ := strings.Cut(l, " "); !strings.Contains(first, ".") {
			continue // other lines than those of types start with plain words
		}
		o, err := line.DecodeOffer(l)
		if err != nil {
			return nil, fmt.Errorf("catalogue: %s: %w", region, err)
		}
		if o.Price == "" {
			continue
		}
		if out[o.Type], err = strconv.ParseFloat(o.Price, 64); err != nil {
			return nil, fmt.Errorf("catalogue: %s: %w", region, err)
		}
	}
	return out, nil
}
