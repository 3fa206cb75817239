// Package purchase is the form of a purchase that scripts read: the report of a plan, with the
// launched nodes in place of the planned ones, and what the provider refused.
package purchase

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
	"github.com/joinery-sdk/joinery/examples/plan/report"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
)

// Report is a purchase. It has the JSON keys of a plan's report and one more. All of them are an
// interface: they do not change.
type Report struct {
	report.Report
	// Refused is what the provider refused, in the order in which it became known.
	Refused []Refusal `json:"refused,omitempty"`
}

// Refusal is what a provider refused, and until when it is not requested again. Scope, Name, Where
// and Detail are those of [availability.Record]. Until is in the format RFC 3339.
type Refusal struct {
	Scope  string `json:"scope"`
	Name   string `json:"name,omitempty"`
	Where  string `json:"where"`
	Until  string `json:"until"`
	Detail string `json:"detail,omitempty"`
	place  string
}

// Of describes a purchase. Nodes and prices are those that were launched, pods are where the last
// plan has them, and the bound is that of the first plan, which had everything to choose from.
func Of(market *pipeline.Market, bought *pipeline.Purchase) Report {
	r := Report{Report: report.Of(bought.Last)}
	launched, price := map[string]bool{}, 0.0
	r.NewNodes = make([]report.Node, 0, len(bought.Nodes))
	for _, n := range Nodes(bought) {
		launched[n.Name] = true
		price += n.PricePerHour
		r.NewNodes = append(r.NewNodes, report.NodeOf(&n.NewNode))
	}
	r.ExistingNodes = slices.DeleteFunc(r.ExistingNodes, func(n report.ExistingNode) bool { return launched[n.Name] })
	s, first := &r.Summary, &bought.First.Bound
	s.NewNodes, s.PricePerHour, s.Plans = len(r.NewNodes), rounded(price, 1e6), bought.Plans
	s.LowerBoundPerHour, s.BoundKind, s.Proof = first.Price.Dollars(), string(first.Kind), report.Proof(first.Kind)
	s.GapPercent = 0
	if s.LowerBoundPerHour > 0 {
		s.GapPercent = rounded(100*(price-s.LowerBoundPerHour)/s.LowerBoundPerHour, 1e2)
	}
	s.Prices, s.Notes = report.Prices{List: market.List, Date: market.Date}, slices.Concat(s.Notes, market.Notes)
	if n := len(bought.Returned); n > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("bought and given back: %s that no pod could use after what was refused", terminal.Plural(n, "node")))
	}
	for _, x := range bought.Refused {
		r.Refused = append(r.Refused, Refusal{
			Scope: string(x.Scope), Name: x.Name, Where: x.Where.String(), Until: x.Until.UTC().Format(time.RFC3339), Detail: x.Detail, place: place(x.Where),
		})
	}
	return r
}

// Nodes returns the nodes of a purchase in the order of its report: by pool, then by number.
func Nodes(bought *pipeline.Purchase) []pipeline.Bought {
	return slices.SortedStableFunc(slices.Values(bought.Nodes), func(a, b pipeline.Bought) int {
		return cmp.Or(cmp.Compare(a.Pool.Name, b.Pool.Name), cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
	})
}

// rounded rounds v to multiples of 1/scale.
func rounded(v, scale float64) float64 { return float64(int64(v*scale+0.5)) / scale }

// place describes an offering briefly, if it has a zone or a capacity type.
func place(where requirements.Set) string {
	var words []string
	for _, key := range []string{corev1.LabelTopologyZone, instancetypes.LabelCapacityType} {
		if v, ok := where.Get(key).Single(); ok {
			words = append(words, v)
		}
	}
	if len(words) == 0 {
		return where.String()
	}
	return strings.Join(words, " ")
}

// WriteRefused prints what was refused.
func (r *Report) WriteRefused(w io.Writer, style terminal.Style) error {
	if len(r.Refused) == 0 {
		_, err := fmt.Fprintln(w, style.Dim("bought as planned, nothing was refused"))
		return err
	}
	times := "once"
	if r.Summary.Plans != 1 {
		times = fmt.Sprintf("%d times", r.Summary.Plans)
	}
	fmt.Fprintf(w, "\nplanned %s; the cloud refused the following, and is not asked for it again until the given time\n", times)
	t := terminal.NewTable(style, "REFUSED", "NAME", "WHERE", "UNTIL", "WHY")
	for _, x := range r.Refused {
		t.Row(strings.ToLower(x.Scope), x.Name, x.place, x.Until, style.Dim(x.Detail))
	}
	return t.Write(w)
}
