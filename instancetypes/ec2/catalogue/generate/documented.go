package main

import (
	"fmt"
	"slices"
)

// documented are the regions that source a does not know, although a price list has them, with the
// prefix of their zone ids, as "AWS Availability Zones" and the service endpoints of the AWS
// documentation give it. Each has three zones: a, b and c are the ids ending in 1, 2 and 3. New
// regions map names to ids in the same way for every account.
var documented = []struct{ region, ids string }{
	{"ap-southeast-7", "apse7"},
	{"mx-central-1", "mxc1"},
	{"us-gov-east-1", "usge1"},
	{"us-gov-west-1", "usgw1"},
}

// sameMachine are types that the sources describe without their accelerators, with a type that is
// the same machine: in a Trn2 UltraServer four of them are connected ("Amazon EC2 Trn2 instances and
// UltraServers").
var sameMachine = map[string]string{"trn2u.48xlarge": "trn2.48xlarge"}

// everywhere is the placement of such a region: no source says which zones offer a type, so every
// type with a price is taken to be in all of them.
func everywhere(region, ids string, prices map[string]string) placement {
	p := placement{types: map[string][]string{}, ids: map[string]string{}}
	for i, letter := range []string{"a", "b", "c"} {
		p.types[region+letter] = sortedKeys(prices)
		p.ids[region+letter] = fmt.Sprintf("%s-az%d", ids, i+1)
	}
	return p
}

// zonesAssumed reports whether everywhere made the placements of a region.
func (m market) zonesAssumed() bool {
	return slices.ContainsFunc(documented, func(d struct{ region, ids string }) bool { return d.region == m.region })
}
