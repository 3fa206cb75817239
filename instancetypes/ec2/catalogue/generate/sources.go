package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"os"
	"slices"
	"strconv"

	"github.com/joinery-sdk/joinery/instancetypes/ec2/describe"
)

const offeringsFolder = "moto/ec2/resources/instance_type_offerings"

// descriptions reads the DescribeInstanceTypes answer of a moto wheel.
func descriptions(w *wheel) (map[string]describe.Description, error) {
	data, err := w.read("moto/ec2/resources/instance_types.json")
	if err != nil {
		return nil, err
	}
	byName := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &byName); err != nil {
		return nil, err
	}
	list, err := json.Marshal(map[string]any{"InstanceTypes": sortedValues(byName)})
	if err != nil {
		return nil, err
	}
	types, err := describe.Read(list)
	if err != nil {
		return nil, err
	}
	out := make(map[string]describe.Description, len(types))
	for _, t := range types {
		out[t.Name] = t
	}
	return out, nil
}

// placement says what a region offers where: zone name -> types, and zone name -> zone id.
type placement struct {
	types map[string][]string
	ids   map[string]string
}

// placements reads which zone offers what. The account behind the data has its own mapping of zone
// names to zone ids. The mapping is derived from which name and which id offer the same types. If
// several fit, the lowest are paired.
func placements(w *wheel, region string) (placement, error) {
	byName, err := offerings(w, "availability-zone", region)
	if err != nil {
		return placement{}, err
	}
	byID, err := offerings(w, "availability-zone-id", region)
	if err != nil {
		return placement{}, err
	}
	p := placement{types: byName, ids: map[string]string{}}
	free := sortedKeys(byID)
	for _, zone := range sortedKeys(byName) {
		i := slices.IndexFunc(free, func(id string) bool { return slices.Equal(byID[id], byName[zone]) })
		if i < 0 {
			return placement{}, fmt.Errorf("%s: no zone id offers what %s does", region, zone)
		}
		p.ids[zone] = free[i]
		free = slices.Delete(free, i, i+1)
	}
	return p, nil
}

func offerings(w *wheel, kind, region string) (map[string][]string, error) {
	data, err := w.read(offeringsFolder + "/" + kind + "/" + region + ".json")
	if err != nil {
		return nil, err
	}
	var rows []struct{ InstanceType, Location string }
	if err := json.Unmarshal(data, &rows); err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for _, r := range rows {
		out[r.Location] = append(out[r.Location], r.InstanceType)
	}
	for zone := range out {
		slices.Sort(out[zone])
		out[zone] = slices.Compact(out[zone])
	}
	return out, nil
}

// listed is what the 2025 list says about one type in one region.
type listed struct {
	price   string
	savings int // percent of spot over on-demand, -1 = unknown
	zoneIDs []string
}

// listings reads prices and spot figures: region -> type -> listing.
func listings(path string) (map[string]map[string]listed, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var rows []struct {
		Name    string              `json:"instance_type"`
		Zones   map[string][]string `json:"availability_zones"`
		Pricing map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(data, &rows); err != nil {
		return nil, err
	}
	out := map[string]map[string]listed{}
	for _, row := range rows {
		for region, systems := range row.Pricing {
			var linux struct {
				OnDemand string      `json:"ondemand"`
				Savings  json.Number `json:"pct_savings_od"`
			}
			linux.Savings = "-1"
			raw, ok := systems["linux"]
			if !ok || json.Unmarshal(raw, &linux) != nil {
				continue
			}
			l := listed{savings: -1, zoneIDs: row.Zones[region]}
			if f, err := strconv.ParseFloat(linux.OnDemand, 64); err == nil && f > 0 {
				l.price = strconv.FormatFloat(f, 'f', -1, 64)
			}
			if n, err := linux.Savings.Int64(); err == nil && n >= 0 && n <= 100 {
				l.savings = int(n)
			}
			if out[region] == nil {
				out[region] = map[string]listed{}
			}
			out[region][row.Name] = l
		}
	}
	return out, nil
}

// branchLimits reads how many branch interfaces each type can carry.
func branchLimits(path string) (map[string]int64, error) {
	lit, err := literal(path, "Limits")
	if err != nil {
		return nil, err
	}
	out := map[string]int64{}
	for name, e := range entries(lit) {
		one, ok := e.(*ast.CompositeLit)
		if !ok {
			continue
		}
		fields := entries(one)
		out[name] = 0
		if id, ok := fields["IsTrunkingCompatible"].(*ast.Ident); ok && id.Name == "true" {
			out[name] = integer(fields["BranchInterface"])
		}
	}
	return out, nil
}

// bandwidths reads the published baseline bandwidth in Mbps of each type that has one.
func bandwidths(path string) (map[string]int64, error) {
	lit, err := literal(path, "InstanceTypeBandwidthMegabits")
	if err != nil {
		return nil, err
	}
	out := map[string]int64{}
	for name, e := range entries(lit) {
		out[name] = integer(e)
	}
	return out, nil
}
