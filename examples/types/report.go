package main

import (
	"fmt"
	"io"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/label"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

// record is a type as JSON.
type record struct {
	Name         string            `json:"name"`
	Architecture string            `json:"architecture"`
	Retired      bool              `json:"retired,omitempty"`
	Capacity     map[string]string `json:"capacity"`
	Allocatable  map[string]string `json:"allocatable"`
	Overhead     overhead          `json:"overhead"`
	Labels       map[string]string `json:"labels"`
	Offerings    []offering        `json:"offerings"`
}

type overhead struct {
	KubeReserved      map[string]string `json:"kubeReserved"`
	SystemReserved    map[string]string `json:"systemReserved"`
	EvictionThreshold map[string]string `json:"evictionThreshold"`
}

type offering struct {
	Zone         string  `json:"zone"`
	CapacityType string  `json:"capacityType"`
	PricePerHour float64 `json:"pricePerHour"`
	Available    bool    `json:"available"`
	Prices       string  `json:"prices,omitempty"` // the list that the price is from
}

func newRecord(e entry) record {
	r := record{
		Name: e.Name, Retired: e.Retired, Capacity: texts(e.Capacity), Allocatable: texts(e.Allocatable()), Labels: e.Requirements.Labels(),
		Overhead:  overhead{texts(e.Overhead.KubeReserved), texts(e.Overhead.SystemReserved), texts(e.Overhead.EvictionThreshold)},
		Offerings: make([]offering, 0, len(e.Offerings)),
	}
	r.Architecture, _ = e.Requirements.Get(corev1.LabelArchStable).Single()
	for _, o := range e.Offerings {
		w := offering{Zone: (instancetypes.PriceQuery{Offering: o}).Zone(), CapacityType: o.CapacityType(), PricePerHour: o.Price, Available: o.Available}
		if o.List != nil {
			w.Prices = o.List.String()
		}
		r.Offerings = append(r.Offerings, w)
	}
	return r
}

func texts(list corev1.ResourceList) map[string]string {
	out := make(map[string]string, len(list))
	for _, name := range resources.Names(list) {
		out[string(name)] = resources.Humane(name, resources.Capacity(name, list[name]))
	}
	return out
}

func encode(out io.Writer, format string, entries []entry) error {
	records := make([]record, 0, len(entries))
	for _, e := range entries {
		records = append(records, newRecord(e))
	}
	return inputs.Encode(out, format, records)
}

// draw writes a table for people: what pods can use, and the cheapest price of each kind.
func draw(out io.Writer, style terminal.Style, entries []entry, wide bool, market *pipeline.Market) error {
	if len(entries) == 0 {
		_, err := fmt.Fprintln(out, "no types")
		return err
	}
	header := []string{"TYPE", "ARCH", ">CPU", ">MEMORY", ">PODS", "DEVICES", "ZONES", ">ON-DEMAND", ">SPOT"}
	if wide {
		header = append(header, ">VCPU", ">MIB", ">DISK", ">NETWORK", ">EBS", ">LOCAL", "OVERHEAD CPU", "OVERHEAD MEMORY")
	}
	table := terminal.NewTable(style, header...)
	buyable := 0
	for _, e := range entries {
		if !math.IsInf(e.price, 1) {
			buyable++
		}
		table.Row(row(e, wide)...)
	}
	if err := table.Write(out); err != nil {
		return err
	}
	kept := make([]instancetypes.InstanceType, 0, len(entries))
	for _, e := range entries {
		kept = append(kept, e.InstanceType)
	}
	lists := make([]string, 0, 3)
	for _, l := range instancetypes.PriceLists(kept) {
		lists = append(lists, l.String())
	}
	if len(lists) == 0 {
		lists = append(lists, market.List)
	}
	_, err := fmt.Fprintf(out, "\n%s, %s available   %s\n", terminal.Plural(len(entries), "type"), terminal.Count(buyable), strings.Join(lists, "; "))
	return err
}

func row(e entry, wide bool) []string {
	left := e.Allocatable()
	text := func(name corev1.ResourceName) string {
		return resources.Humane(name, resources.Capacity(name, left[name]))
	}
	arch, _ := e.Requirements.Get(corev1.LabelArchStable).Single()
	cells := []string{
		e.Name, arch, text(corev1.ResourceCPU), text(corev1.ResourceMemory), text(corev1.ResourcePods), devices(e), zones(e),
		price(e, instancetypes.CapacityTypeOnDemand), price(e, instancetypes.CapacityTypeSpot),
	}
	if !wide {
		return cells
	}
	own := e.Requirements.Labels()
	taken := e.Overhead.Total()
	spent := func(name corev1.ResourceName) string {
		return resources.Humane(name, resources.Request(name, taken[name]))
	}
	return append(cells, own[label.CPU], own[label.Memory], text(corev1.ResourceEphemeralStorage), mbps(own[label.NetworkBandwidth]), mbps(own[label.EBSBandwidth]),
		own[label.LocalNVMe], spent(corev1.ResourceCPU), spent(corev1.ResourceMemory))
}

func mbps(v string) string {
	if v == "" {
		return ""
	}
	return v + "M"
}

// devices names accelerators with their count: "8 h100".
func devices(e entry) string {
	own := e.Requirements.Labels()
	var out []string
	for _, d := range []struct {
		resources []corev1.ResourceName
		name      string
	}{
		{[]corev1.ResourceName{ec2.ResourceNVIDIA, ec2.ResourceAMD, ec2.ResourceGaudi}, own[label.GPUName]},
		{[]corev1.ResourceName{ec2.ResourceNeuron}, own[label.AcceleratorName]},
	} {
		for _, name := range d.resources {
			if q, ok := e.Capacity[name]; ok {
				what := d.name
				if what == "" {
					what = string(name)
				}
				out = append(out, q.String()+" "+what)
			}
		}
	}
	return strings.Join(out, ", ")
}

// zones lists the last letters of the zones, if the region is the same: "abcdf".
func zones(e entry) string {
	var names []string
	var letters strings.Builder
	for _, o := range e.Offerings {
		zone := (instancetypes.PriceQuery{Offering: o}).Zone()
		if zone == "" || len(names) > 0 && names[len(names)-1] == zone {
			continue
		}
		names = append(names, zone)
		letters.WriteString(zone[len(zone)-1:])
	}
	if region, ok := e.Requirements.Get(corev1.LabelTopologyRegion).Single(); ok && region != "" {
		return letters.String()
	}
	return strings.Join(names, ",")
}

// price is the least price of one kind; "~" marks an estimate, and "-" what cannot be had.
func price(e entry, capacityType string) string {
	least, mark, found := math.Inf(1), "", false
	for _, o := range e.Offerings {
		if o.Available && o.CapacityType() == capacityType && o.Price < least {
			least, mark, found = o.Price, "", true
			if o.List != nil && o.List.Estimated {
				mark = "~"
			}
		}
	}
	switch {
	case found:
		return mark + terminal.Dollars(least)
	case e.Retired:
		return "retired"
	}
	return "-"
}
