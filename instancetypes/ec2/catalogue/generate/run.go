package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue/internal/line"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/describe"
)

// The versions are pinned: a new one is a change of this file and a diff of the data.
const (
	motoVersion    = "5.2.3" // the descriptions, as of the price list's and the published reference's summer
	motoNewer      = "5.2.5" // types launched since
	motoOlder      = "5.0.0" // types that are gone
	motoOldest     = "4.2.0" // types that were gone by then
	limitsModule   = "github.com/aws/amazon-vpc-resource-controller-k8s"
	limitsVersion  = "v1.8.2"
	providerModule = "github.com/aws/karpenter-provider-aws"
	providerVers   = "v1.14.1"
	listModule     = "github.com/cristim/ec2-instances-info"
	listVersion    = "v0.0.0-20250528091325-32acf84f42eb"
	listDate       = "2025-05-28"
)

// source is a row of sources.txt.
type source struct{ letter, name, version, hash, date, gives string }

func run(ctx context.Context, out string) error {
	dir, err := os.MkdirTemp("", "catalogue")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()

	var sources []source
	described := map[string]line.Type{}
	var wheels []*wheel
	for i, version := range []string{motoVersion, motoNewer, motoOlder, motoOldest} {
		w, err := fetchWheel(ctx, dir, "moto", version)
		if err != nil {
			return err
		}
		defer func() { _ = w.files.Close() }()
		types, err := descriptions(w)
		if err != nil {
			return fmt.Errorf("moto %s: %w", version, err)
		}
		letter := string(rune('a' + i))
		for name, d := range types {
			if _, known := described[name]; known || !sellable(d) {
				continue
			}
			t := line.Type{Description: d, Retired: i >= 2}
			if i > 0 {
				t.Source = letter
			}
			described[name] = t
		}
		gives := []string{"descriptions and zones", "descriptions and zones of types launched later", "descriptions of retired types, and their zones where i has none", "the same of types retired earlier"}[i]
		wheels = append(wheels, w)
		sources = append(sources, source{letter, "moto", version, w.hash, w.made.Format("2006-01-02"), gives})
	}

	limits, err := fetchModule(ctx, limitsModule, limitsVersion)
	if err != nil {
		return err
	}
	provider, err := fetchModule(ctx, providerModule, providerVers)
	if err != nil {
		return err
	}
	list, err := fetchModule(ctx, listModule, listVersion)
	if err != nil {
		return err
	}
	branches, err := branchLimits(limits.file("pkg", "aws", "vpc", "limits.go"))
	if err != nil {
		return err
	}
	mbps, err := bandwidths(provider.file("pkg", "providers", "instancetype", "zz_generated.bandwidth.go"))
	if err != nil {
		return err
	}
	prices, dates, err := priceLists(provider.file("pkg", "providers", "pricing", "zz_generated.pricing_aws.go"), "InitialOnDemandPricesAWS")
	if err != nil {
		return err
	}
	gov, govDates, err := priceLists(provider.file("pkg", "providers", "pricing", "zz_generated.pricing_aws_us_gov.go"), "InitialOnDemandPricesUSGov")
	if err != nil {
		return err
	}
	older, err := listings(list.file("data", "instances.json"))
	if err != nil {
		return err
	}
	sources = append(sources,
		source{"l", limitsModule, limitsVersion, limits.Sum, "", "branch"},
		source{"p", providerModule, providerVers, provider.Sum, dates["us-east-1"], "net, on-demand prices of us-east-1"},
		source{"g", providerModule, providerVers, provider.Sum, govDates["us-east-1"], "on-demand prices of us-gov-east-1 and us-gov-west-1"},
		source{"i", listModule, listVersion, list.Sum, listDate, "on-demand prices of the other regions, zones of retired types, spot savings"})

	for name, t := range described {
		t.BranchInterfaces, t.NetworkMbps = branches[name], mbps[name]
		if len(t.Neuron) == 0 {
			t.Neuron = described[sameMachine[name]].Neuron
		}
		described[name] = t
	}
	files := map[string]string{"types.txt": typesFile(described), "sources.txt": sourcesFile(sources)}
	var markets []market
	for _, region := range wheels[0].list(offeringsFolder + "/availability-zone") {
		m := market{region: region, types: described, older: older[region], oldZones: map[string][]string{}}
		for _, w := range slices.Backward(wheels[2:]) {
			zones, err := offerings(w, "availability-zone-id", region)
			if err != nil {
				continue // the region is younger than the source
			}
			gone := map[string][]string{}
			for _, id := range sortedKeys(zones) {
				for _, name := range zones[id] {
					gone[name] = append(gone[name], id)
				}
			}
			maps.Copy(m.oldZones, gone)
		}
		for _, w := range wheels[:2] {
			p, err := placements(w, region)
			if err != nil {
				return err
			}
			m.placements = append(m.placements, p)
		}
		m.prices, m.list, m.date = prices[region], "p", dates[region]
		if m.prices == nil {
			m.prices, m.list, m.date = listedPrices(older[region]), "i", listDate
		}
		files["regions/"+region+".txt"] = m.file()
		markets = append(markets, m)
	}
	for _, d := range documented {
		m := market{region: d.region, types: described, older: older[d.region], prices: gov[d.region], list: "g", date: govDates["us-east-1"]}
		if m.prices == nil {
			m.prices, m.list, m.date = listedPrices(m.older), "i", listDate
		}
		m.placements = []placement{everywhere(d.region, d.ids, m.prices)}
		files["regions/"+d.region+".txt"] = m.file()
		markets = append(markets, m)
	}
	slices.SortFunc(markets, func(a, b market) int { return strings.Compare(a.region, b.region) })
	report := coverage(sources, described, markets, branches)
	if err := os.WriteFile(filepath.Join(filepath.Dir(out), "CATALOGUE.md"), []byte(report), 0o644); err != nil {
		return err
	}
	return write(out, files)
}

// listedPrices returns the prices of a region that the 2025 list has.
func listedPrices(older map[string]listed) map[string]string {
	out := map[string]string{}
	for name, l := range older {
		if l.price != "" {
			out[name] = l.price
		}
	}
	return out
}

// sellable reports whether a Kubernetes node can run on the type: it needs HVM images and one of
// the two architectures.
func sellable(d describe.Description) bool {
	return slices.Contains(d.Virtualizations, "hvm") &&
		(slices.Contains(d.Architectures, "x86_64") || slices.Contains(d.Architectures, "arm64"))
}

func typesFile(types map[string]line.Type) string {
	var b strings.Builder
	b.WriteString(`# Instance types, one a line; written by go generate, see sources.txt. What DescribeInstanceTypes says, but for
#   branch  branch interfaces of trunking-capable types (source l)
#   net     published baseline bandwidth in Mbps (source p)
#   src     source of the line, if not a
# eni is interfaces of the default card x IPv4 addresses of each, cards is network cards : interfaces of all, vol is the
# limit of attached volumes (s = shared with interfaces), disk is local storage in GB, gpu is maker/name/count/MiB of one
# (/share in thousandths/logical count), neuron is name/count/cores of one/MiB of one.
`)
	for _, name := range sortedKeys(types) {
		b.WriteString(line.Encode(types[name]) + "\n")
	}
	return b.String()
}

func sourcesFile(sources []source) string {
	var b strings.Builder
	b.WriteString("# letter, package, version, hash, date of the data, what it gives; separated by tabs\n")
	for _, s := range sources {
		b.WriteString(strings.Join([]string{s.letter, s.name, s.version, s.hash, s.date, s.gives}, "\t") + "\n")
	}
	return b.String()
}

// write replaces the folder's files and adds their hash.
func write(out string, files map[string]string) error {
	if err := os.RemoveAll(filepath.Join(out, "regions")); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(out, "regions"), 0o755); err != nil {
		return err
	}
	sum := sha256.New()
	for _, name := range sortedKeys(files) {
		fmt.Fprintf(sum, "%s\n%s", name, files[name])
		if err := os.WriteFile(filepath.Join(out, filepath.FromSlash(name)), []byte(files[name]), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(out, "HASH"), []byte(hex.EncodeToString(sum.Sum(nil))+"\n"), 0o644)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func sortedValues[V any](m map[string]V) []V {
	out := make([]V, 0, len(m))
	for _, k := range sortedKeys(m) {
		out = append(out, m[k])
	}
	return out
}
