package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue/internal/line"
)

// market is everything known about one region.
type market struct {
	region     string
	types      map[string]line.Type
	placements []placement // newest last; the first that offers a type decides
	prices     map[string]string
	list, date string // letter and date of the price list
	older      map[string]listed
	oldZones   map[string][]string // zone ids of types that are gone, by older descriptions' own account
}

func (m market) file() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s: zone <letter> <zone id>; then type, zones, on-demand USD/h, spot savings in %% (~ assumed)\n", m.region)
	fmt.Fprintf(&b, "list %s %s\n", m.list, m.date)
	if m.zonesAssumed() {
		b.WriteString("assumed zones\n")
	}
	ids := m.zoneIDs()
	for _, zone := range sortedKeys(ids) {
		fmt.Fprintf(&b, "zone %s %s\n", strings.TrimPrefix(zone, m.region), ids[zone])
	}
	zones := m.zones()
	for _, name := range sortedKeys(m.types) {
		if zones[name] == "" {
			continue
		}
		savings, guessed := m.savings(name)
		b.WriteString(line.EncodeOffer(line.Offer{Type: name, Zones: zones[name], Price: m.prices[name], Savings: savings, Guessed: guessed}) + "\n")
	}
	return b.String()
}

// zoneIDs maps zone names to ids, including zones known only from newer data.
func (m market) zoneIDs() map[string]string {
	out := map[string]string{}
	for _, p := range slices.Backward(m.placements) {
		maps.Copy(out, p.ids)
	}
	return out
}

// zones says where each type is offered, by zone letters in ascending order.
func (m market) zones() map[string]string {
	out := map[string]string{}
	for _, p := range m.placements {
		here := map[string]string{}
		for _, zone := range sortedKeys(p.types) {
			for _, name := range p.types[zone] {
				here[name] += strings.TrimPrefix(zone, m.region)
			}
		}
		for name, letters := range here {
			if out[name] == "" {
				out[name] = letters
			}
		}
	}
	letters := map[string]string{}
	for zone, id := range m.zoneIDs() {
		letters[id] = strings.TrimPrefix(zone, m.region)
	}
	for name, t := range m.types {
		if !t.Retired || out[name] != "" {
			continue
		}
		ids := m.older[name].zoneIDs
		if len(ids) == 0 {
			ids = m.oldZones[name]
		}
		var here []string
		for _, id := range ids {
			if letters[id] != "" {
				here = append(here, letters[id])
			}
		}
		slices.Sort(here)
		out[name] = strings.Join(slices.Compact(here), "")
	}
	return out
}

// mostSavings caps the savings of an estimate. Greater savings do not last: they are launch offers
// and types that nobody wants. Compared with the savings of two months later (us-east-1, 870
// types), the cap lowers the mean error of the price from 13.4% to 11.3%, and the number of prices
// below 60% of the truth from 48 to 4.
const mostSavings = 75

// savings returns the spot savings from the list. If it has none, it returns the median of the
// nearest types: of the same family, else of the same category (first letter), else of the region.
func (m market) savings(name string) (percent int, guessed bool) {
	if !slices.Contains(m.types[name].UsageClasses, "spot") {
		return -1, false
	}
	if l, ok := m.older[name]; ok && l.savings >= 0 {
		return min(l.savings, mostSavings), l.savings > mostSavings
	}
	family, _, _ := strings.Cut(name, ".")
	for _, prefix := range []string{family + ".", name[:1], ""} {
		var known []int
		for other, l := range m.older {
			// Savings of 0 mean that there was no spot capacity, so they say nothing about other
			// types.
			if strings.HasPrefix(other, prefix) && l.savings > 0 {
				known = append(known, l.savings)
			}
		}
		if len(known) > 0 {
			slices.Sort(known)
			return min(known[(len(known)-1)/2], mostSavings), true
		}
	}
	return -1, false
}
