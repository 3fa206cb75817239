package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue/internal/line"
)

// coverage writes the report for people: where the numbers come from, and what is missing and why.
func coverage(sources []source, types map[string]line.Type, markets []market, branches map[string]int64) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("# The embedded EC2 catalogue\n")
	say("Written by `go generate` together with the data; do not edit.\n")
	say("## Sources\n")
	say("| | package | version | data of | gives |\n|---|---|---|---|---|")
	for _, s := range sources {
		say("| %s | %s | %s | %s | %s |", s.letter, s.name, s.version, s.date, s.gives)
	}
	say("\nHashes of the packages are in data/sources.txt, that of the data in data/HASH. A line of data/types.txt names its")
	say("source if it is not a; `branch` is of l and `net` of p everywhere. A region's file names the list of its prices.\n")
	say("Spot prices are estimates: the on-demand price less the savings that list i knows for the type in the region, or (`~`)")
	say("less the median savings of its family, else of its category, else of the region. Savings of 0 mean that spot capacity")
	say("was hardly to be had. No estimate assumes more than %d%% (`~`): greater savings are launch offers that do not last. Against", mostSavings)
	say("the savings of two months later in us-east-1 (870 types), the cap lowers the mean error of the price from 13.4%% to 11.3%%,")
	say("and the number of prices below 60%% of the truth from 48 to 4.\n")
	say("## Coverage\n")
	say("| region | zones | types | priced | spot known | spot guessed | retired | prices of |\n|---|--:|--:|--:|--:|--:|--:|---|")
	for _, m := range markets {
		c := m.count()
		say("| %s | %d | %d | %d | %d | %d | %d | %s (%s) |", m.region, len(m.zoneIDs()), c.offered, c.priced, c.known, c.guessed, c.retired, m.date, m.list)
	}
	say("\n## What is missing, and why\n")
	say("| what | types | why |\n|---|---|---|")
	row := func(what string, names []string, why string) {
		say("| %s | %s | %s |", what, strings.Join(names, ", "), why)
	}
	row("priced in us-east-1, but left out", undescribed(types, markets), "no source describes them: they are gone")
	row("retired", matching(types, func(t line.Type) bool { return t.Retired }), "described by older sources only; bought only when named")
	row("without branch interfaces", matching(types, func(t line.Type) bool { _, ok := branches[t.Name]; return !ok && !t.Retired }), "source l does not know them: no vpc.amazonaws.com/pod-eni")
	row("offered in us-east-1 without a price", unpriced(markets, "us-east-1"), "launched after the price list: unavailable")
	say("| prices in all regions but us-east-1 of types launched after %s | | list i is older than they are: their prices are estimated, see ESTIMATES.md |", listDate)
	say("| mac* | | macOS machines: no Kubernetes node runs on them |")
	var assumed []string
	for _, m := range markets {
		if m.zonesAssumed() {
			assumed = append(assumed, m.region)
		}
	}
	say("| which zones offer a type in %s | | no source tells it: every type with a price is listed in all zones, which are those of AWS's documentation |", strings.Join(assumed, ", "))
	say("| accelerators of trn2u.48xlarge | | no source names them: they are those of trn2.48xlarge, which is the same machine |")
	say("| cn-* | | source p has prices of one of two regions only, of 2024 and in yuan |")
	say("| ap-east-2, ap-southeast-6 | | no source has their prices |")
	b.WriteString(checked)
	return b.String()
}

// checked tells what was compared by hand when the sources were last changed.
const checked = `
## Compared with the AWS provider's own code

On 2026-11-21 the instance types that the AWS provider v1.14.1 itself makes of source a (1,364 types, families AL2, AL2023,
Bottlerocket, Custom and Windows2022, with default settings and with maxPods, podsPerCore, kubeReserved, systemReserved,
evictionHard in percent, evictionSoft, a 55Gi disk and RAID0 set) were compared with ours: every label with one value, and
capacity and allocatable of every resource, are equal, but for

| what | types | why |
|---|---|---|
| aws.amazon.com/neuron, neuroncore and the accelerator labels | 1: trn2u.48xlarge | source a names none of its accelerators, see above |
| vpc.amazonaws.com/pod-eni | 56: all c9g, c9gd and hpc7g, i4i.large, and the newer metal sizes of c8, m8 and r8 | the provider's limits table is older than source l and does not have them; a later table of the provider agrees with l |
| vpc.amazonaws.com/PrivateIPv4Address | 27, Windows only | the same table; here it comes from the description |
| arm64 on Windows | 396 | the provider lists them as types that no node can be; here they are left out |

## Compared with another collection

The test TestFactsAgree compares size, architecture, interfaces, GPUs, zones and the us-east-1 price with a collection of
2026-07-20 that others made from other copies of AWS's figures (1,373 types). They differ in

| what | types | why |
|---|---|---|
| price in us-east-1 | g7.2xlarge, g7.4xlarge, g7.8xlarge, g7.12xlarge, g7.24xlarge, g7.48xlarge | launched between our list (2026-07-06) and theirs: no price here, so they are unavailable |
| types that are not here | mac* | macOS machines |
`

// counts are the figures of one region.
type counts struct{ offered, priced, known, guessed, retired int }

func (m market) count() counts {
	var c counts
	zones := m.zones()
	for name, t := range m.types {
		if zones[name] == "" {
			continue
		}
		c.offered++
		if t.Retired {
			c.retired++
		}
		if m.prices[name] == "" {
			continue
		}
		c.priced++
		switch savings, guessed := m.savings(name); {
		case savings < 0:
		case guessed:
			c.guessed++
		default:
			c.known++
		}
	}
	return c
}

func matching(types map[string]line.Type, want func(line.Type) bool) []string {
	var out []string
	for _, name := range sortedKeys(types) {
		if want(types[name]) {
			out = append(out, name)
		}
	}
	return out
}

func undescribed(types map[string]line.Type, markets []market) []string {
	var out []string
	for _, m := range markets {
		if m.region != "us-east-1" {
			continue
		}
		for _, name := range sortedKeys(m.prices) {
			if _, ok := types[name]; !ok && !strings.HasPrefix(name, "mac") {
				out = append(out, name)
			}
		}
	}
	return out
}

func unpriced(markets []market, region string) []string {
	i := slices.IndexFunc(markets, func(m market) bool { return m.region == region })
	if i < 0 {
		return nil
	}
	zones := markets[i].zones()
	return matching(markets[i].types, func(t line.Type) bool { return zones[t.Name] != "" && markets[i].prices[t.Name] == "" })
}
