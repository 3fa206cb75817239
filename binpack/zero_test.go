package binpack_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/requirements"
)

// An omitted field requires nothing and limits nothing, and Misfit says why an item fits nowhere.
func TestZeroValues(t *testing.T) {
	p := binpack.Problem{
		Resources: []string{"cpu"},
		Items: []binpack.Item{
			{Name: "any", Count: 9, Size: []int64{1}},
			{Name: "large", Count: 1, Size: []int64{7}},
			{Name: "picky", Count: 1, Size: []int64{1}, Requires: requirements.AnyOf(requirements.MustParse("zone=b"))},
		},
		Types: []binpack.Type{{Name: "four", Capacity: []int64{4}, Provides: requirements.MustParse("zone=a"), Offerings: []binpack.Offering{{Price: 1}}}},
	}
	plan, err := binpack.Pack(t.Context(), p, nil)
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, 1}, plan.Unplaced)
	require.Len(t, plan.Bins, 3)
	require.Empty(t, p.Pools, "the problem stays as it is")
	require.Zero(t, p.Items[0].Requires.Len())

	in, err := binpack.Compile(p)
	require.NoError(t, err)
	require.Empty(t, in.Misfit(0))
	require.Equal(t, "nothing that has the labels is large enough: four lacks 3 of cpu", in.Misfit(1))
	require.Equal(t, "nothing has the labels that it requires: zone in (b)", in.Misfit(2))
	p.Nodes = []binpack.Node{{Name: "n", Free: []int64{8}}}
	in, err = binpack.Compile(p)
	require.NoError(t, err)
	require.Empty(t, in.Misfit(1))

	p.Items[0].Requires = requirements.AnyOf(requirements.Impossible()) // no alternative, unlike the zero value
	plan, err = binpack.Pack(t.Context(), p, nil)
	require.NoError(t, err)
	require.Equal(t, []int{9, 0, 1}, plan.Unplaced)
}

// Misfit names what keeps an item out of everything even alone, and is empty only for an item that fits.
func TestMisfit(t *testing.T) {
	for want, change := range map[string]func(p *binpack.Problem){
		"":                    func(*binpack.Problem) {},
		"nothing is for sale": func(p *binpack.Problem) { p.Types[0].Offerings = nil },
		"sold out: four":      func(p *binpack.Problem) { p.Types[0].Offerings = []binpack.Offering{{Counted: true}} },
		"sold out: four ": func(p *binpack.Problem) {
			p.Types[0].Offerings = []binpack.Offering{{Counted: true, Count: 3, Takes: 4}}
		},
		"sold out: four  ": func(p *binpack.Problem) { // the least count of a reservation holds
			p.Types = append(p.Types, p.Types[0])
			p.Types[0].Offerings = []binpack.Offering{{Counted: true, Count: 1, Reservation: "r"}}
			p.Types[1].Name, p.Types[1].Offerings = "fore", []binpack.Offering{{Counted: true, Reservation: "r"}}
		},
		" ": func(p *binpack.Problem) { p.Types[0].Offerings = []binpack.Offering{{Counted: true}, {Price: 1}} },
		`its own limit of tag "a" allows no copy of it`: func(p *binpack.Problem) {
			p.Items[0].Tags, p.Items[0].Limits = []string{"a"}, []binpack.Limit{{Tag: "b"}, {Tag: "a"}}
		},
		`its own limit of tag "a" allows no copy of it `: func(p *binpack.Problem) {
			p.Items[0].Tags, p.Items[0].Limits = []string{"a", "a"}, []binpack.Limit{{Tag: "a", Max: 1}}
		},
		`what is large enough excludes it by its tags: four has a limit of tag "port"`: func(p *binpack.Problem) {
			p.Items[0].Tags, p.Types[0].Limits = []string{"port"}, []binpack.Limit{{Tag: "port"}}
		},
		`what is large enough excludes it by its tags: four has a limit of tag "port" `: func(p *binpack.Problem) {
			p.Items[0].Limits, p.Types[0].Tags = []binpack.Limit{{Tag: "port"}}, []string{"port"}
		},
		`what is large enough excludes it by its tags: node n has a limit of tag "port"`: func(p *binpack.Problem) {
			p.Types = nil
			p.Items[0].Limits = []binpack.Limit{{Tag: "port", Max: 1}}
			p.Nodes = []binpack.Node{{Name: "n", Free: []int64{4}, Tags: []string{"port", "port"}}}
		},
		"nothing that has the labels is large enough: four lacks 1 of cpu": func(p *binpack.Problem) { p.Items[0].Size[0] = 5 },
		"nothing has the labels that it requires: zone in (b)": func(p *binpack.Problem) {
			p.Items[0].Requires = requirements.AnyOf(requirements.MustParse("zone=b"))
		},
	} {
		p := binpack.Problem{
			Resources: []string{"cpu"}, Items: []binpack.Item{{Name: "one", Count: 1, Size: []int64{1}}},
			Types: []binpack.Type{{Name: "four", Capacity: []int64{4}, Offerings: []binpack.Offering{{Price: 1}}}},
		}
		change(&p)
		in, err := binpack.Compile(p)
		require.NoError(t, err)
		want = strings.TrimRight(want, " ")
		require.Equal(t, want, in.Misfit(0))
		plan, err := in.Pack(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, want != "", plan.Unplaced[0] > 0, want)
	}
}
