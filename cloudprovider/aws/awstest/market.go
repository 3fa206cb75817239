package awstest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/describe"
)

func (c *Cloud) offer(typ string) (catalogue.Offer, bool) {
	i := slices.IndexFunc(c.region.Offers, func(o catalogue.Offer) bool { return o.Name == typ })
	if i < 0 {
		return catalogue.Offer{}, false
	}
	return c.region.Offers[i], true
}

// price returns the current cost of an offering.
func (c *Cloud) price(p pool) float64 {
	o, _ := c.offer(p.typ)
	if p.capacityType == "spot" {
		return cmp.Or(c.spot[p], o.Spot)
	}
	return cmp.Or(c.onDemand[p.typ], o.OnDemand)
}

func (c *Cloud) describeInstanceTypes(r request) (any, *apiError) {
	var list []describe.Description
	for _, o := range c.region.Offers {
		if !o.Retired {
			list = append(list, o.Description)
		}
	}
	list = slices.DeleteFunc(list, func(d describe.Description) bool {
		for _, f := range r.params.list("Filter") {
			have := map[string][]string{"supported-virtualization-type": d.Virtualizations, "processor-info.supported-architecture": d.Architectures}[f.str("Name")]
			if !slices.ContainsFunc(f.strs("Value"), func(v string) bool { return slices.Contains(have, v) }) {
				return true
			}
		}
		return false
	})
	// Types newer than this library: a name of another form, and a type about which EC2 says too
	// little.
	for _, odd := range []describe.Description{{Name: "next-large"}, {Name: "m99.large"}} {
		odd.Architectures, odd.Virtualizations, odd.UsageClasses = []string{"x86_64"}, []string{"hvm"}, []string{"on-demand"}
		list = append(list, odd)
	}
	list, next := page(c, r, list, 100)
	return append(next, items("instanceTypeSet", list, func(d describe.Description) []el {
		out := instanceType(d)
		if slices.Contains(c.nested, d.Name) {
			out = append(out, e("processorInfo", e("manufacturer", d.CPUManufacturer), texts("supportedArchitectures", d.Architectures), texts("supportedFeatures", []string{"nested-virtualization"})))
		}
		return out
	})), nil
}

func instanceType(d describe.Description) []el {
	memory := func(mib int64) el { return e("memoryInfo", e("sizeInMiB", mib)) }
	out := []el{
		e("instanceType", d.Name), e("bareMetal", d.BareMetal), e("burstablePerformanceSupported", d.Burstable),
		texts("supportedUsageClasses", d.UsageClasses), texts("supportedVirtualizationTypes", d.Virtualizations),
		e("vCpuInfo", e("defaultVCpus", d.VCPUs)), memory(d.MemoryMiB),
		e("processorInfo", e("manufacturer", d.CPUManufacturer), texts("supportedArchitectures", d.Architectures), e("sustainedClockSpeedInGhz", float64(d.ClockMHz)/1000)),
		e("networkInfo",
			e("maximumNetworkInterfaces", d.MaxInterfaces), e("maximumNetworkCards", d.NetworkCards), e("defaultNetworkCardIndex", 0),
			e("ipv4AddressesPerInterface", d.IPv4PerInterface), e("encryptionInTransitSupported", d.EncryptionInTransit),
			e("efaSupported", d.EFAInterfaces > 0), e("efaInfo", e("maximumEfaInterfaces", d.EFAInterfaces)),
			e("networkCards", e("item", e("networkCardIndex", 0), e("maximumNetworkInterfaces", d.DefaultCardInterfaces)))),
	}
	disks := e("ebsInfo", e("maximumEbsAttachments", d.EBSAttachments))
	if d.EBSMbps > 0 {
		disks.kids = append(disks.kids, e("ebsOptimizedSupport", "default"), e("ebsOptimizedInfo", e("maximumBandwidthInMbps", d.EBSMbps)))
	}
	if !d.SharedAttachments {
		disks.kids = append(disks.kids, e("attachmentLimitType", "dedicated"))
	}
	out = append(out, disks)
	if d.Hypervisor != "" {
		out = append(out, e("hypervisor", d.Hypervisor))
	}
	if d.NitroEnclaves {
		out = append(out, e("nitroEnclavesSupport", "supported"))
	}
	if d.LocalStorageGB > 0 {
		nvme := "unsupported"
		if d.LocalNVMe {
			nvme = "required"
		}
		out = append(out, e("instanceStorageInfo", e("totalSizeInGB", d.LocalStorageGB), e("nvmeSupport", nvme)))
	}
	if len(d.GPUs) > 0 {
		out = append(out, e("gpuInfo", items("gpus", d.GPUs, func(g describe.GPU) []el {
			return []el{e("name", g.Name), e("manufacturer", g.Manufacturer), e("count", g.Count), memory(g.MemoryMiB)}
		})))
	}
	if len(d.Neuron) > 0 {
		out = append(out, e("neuronInfo", items("neuronDevices", d.Neuron, func(n describe.NeuronDevice) []el {
			return []el{e("name", n.Name), e("count", n.Count), e("coreInfo", e("count", n.Cores)), memory(n.MemoryMiB)}
		})))
	}
	return out
}

func (c *Cloud) describeOfferings(r request) (any, *apiError) {
	var list [][2]string
	for _, o := range c.region.Offers {
		for _, z := range o.Zones {
			list = append(list, [2]string{o.Name, z.Name})
		}
	}
	list, next := page(c, r, list, 1000)
	return append(next, items("instanceTypeOfferingSet", list, func(o [2]string) []el {
		return []el{e("instanceType", o[0]), e("location", o[1]), e("locationType", "availability-zone")}
	})), nil
}

func (c *Cloud) describeSpotPrices(r request) (any, *apiError) {
	var list []pool
	for _, o := range c.region.Offers {
		for _, z := range o.Zones {
			if p := (pool{o.Name, z.Name, "spot"}); c.price(p) > 0 {
				list = append(list, p)
			}
		}
	}
	list = append(list, pool{"m5.large", "odd", ""})
	list, next := page(c, r, list, 1000)
	now := c.now()
	return append(next, items("spotPriceHistorySet", list, func(p pool) []el {
		if p.zone == "odd" {
			return []el{e("instanceType", p.typ), e("productDescription", "Linux/UNIX"), e("spotPrice", "NA")}
		}
		return []el{
			e("instanceType", p.typ), e("availabilityZone", p.zone), e("productDescription", "Linux/UNIX"),
			e("spotPrice", strconv.FormatFloat(c.price(p), 'f', 6, 64)), e("timestamp", now),
		}
	})), nil
}

// oddProducts are other entries of the price list: a host without an instance type, an invalid
// price, and something that is not a product.
func oddProducts() []string {
	return []string{
		`{"product":{"attributes":{"servicecode":"AmazonEC2"}},"terms":{}}`,
		`{"product":{"attributes":{"instanceType":"m5.odd"}},"terms":{"OnDemand":{"T":{"priceDimensions":{"D":{"unit":"Hrs","pricePerUnit":{"USD":"NA"}}}}}}}`,
		`{}`,
	}
}

func (c *Cloud) getProducts(r request) (any, *apiError) {
	var in struct {
		NextToken  string
		MaxResults int
		Filters    []struct{ Field, Value string }
	}
	if failure := r.decode(&in); failure != nil {
		return nil, failure
	}
	metal := slices.ContainsFunc(in.Filters, func(f struct{ Field, Value string }) bool {
		return f.Field == "productFamily" && strings.Contains(f.Value, "bare metal")
	})
	var all []string
	for _, o := range c.region.Offers {
		if o.BareMetal != metal {
			continue
		}
		price := c.price(pool{o.Name, "", "on-demand"})
		if price == 0 {
			continue
		}
		product, err := json.Marshal(map[string]any{
			"product":         map[string]any{"attributes": map[string]string{"instanceType": o.Name, "regionCode": c.region.Name}},
			"publicationDate": c.now().UTC().Format(time.RFC3339),
			"terms": map[string]any{"OnDemand": map[string]any{"T": map[string]any{"priceDimensions": map[string]any{
				"D": map[string]any{"unit": "Hrs", "pricePerUnit": map[string]string{"USD": fmt.Sprintf("%.10f", price)}},
			}}}},
		})
		if err != nil {
			return nil, &apiError{"InternalError", err.Error()}
		}
		all = append(all, string(product))
	}
	if len(all) > 0 {
		all = append(all, oddProducts()...)
	}
	token, skipped := strings.CutSuffix(in.NextToken, "e")
	start, _ := strconv.Atoi(token) // no token is the beginning
	list, next := cut(c, slices.Backward(all), len(all), start, cmp.Or(in.MaxResults, 100), skipped)
	out := map[string]any{"PriceList": append([]string{}, list...), "FormatVersion": "aws_v1"}
	if next != "" {
		out["NextToken"] = next
	}
	return out, nil
}
