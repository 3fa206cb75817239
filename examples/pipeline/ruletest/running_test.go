package ruletest_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/ruletest"
)

// A rule is broken only where a pod of the plan takes part: what running pods do among themselves
// no plan can mend. A breach names a pending pod, if any.
func TestRunningPodsBreakNoRuleAmongThemselves(t *testing.T) {
	by := func(by string) *ruletest.Company { return &ruletest.Company{By: by} }
	with := func(by, with string) *ruletest.Company { return &ruletest.Company{By: by, With: with} }
	skew := func(n int) ruletest.Rule { return ruletest.Rule{Spread: &ruletest.Spread{By: "zone", Skew: n}} }
	dollar := 1.0
	cases := map[string]struct {
		running string // the zones of running pods
		planned string // the zones of planned pods; z has no node
		db      string // the zones of running pods of another kind
		rule    ruletest.Rule
		broken  string // "pod: why", empty if the rule holds
	}{
		"apart, two run on one node":              {"aa", "b", "", ruletest.Rule{Apart: by("node")}, ""},
		"apart, a third goes there":               {"aa", "a", "", ruletest.Rule{Apart: by("node")}, "shop/web-2: 3 of them are on node n-a, want at most 1"},
		"apart, one beside one":                   {"a", "a", "", ruletest.Rule{Apart: by("node")}, "shop/web-1: is on existing node n-a (zone-a), and shares its node with shop/web-0"},
		"apart, the planned ones beside another":  {"aa", "bb", "", ruletest.Rule{Apart: by("node")}, "shop/web-3: is on existing node n-b (zone-b), and shares its node with shop/web-2"},
		"at most two, three run there":            {"aaa", "b", "", ruletest.Rule{Apart: &ruletest.Company{By: "zone", Most: 2}}, ""},
		"at most two, a fourth goes there":        {"aaa", "a", "", ruletest.Rule{Apart: &ruletest.Company{By: "zone", Most: 2}}, "shop/web-3: 4 of them are on zone zone-a, want at most 2"},
		"apart from others, a running one is not": {"a", "b", "a", ruletest.Rule{Apart: with("node", "shop/db-*")}, ""},
		"apart from others, nor the planned one":  {"a", "b", "ab", ruletest.Rule{Apart: with("node", "shop/db-*")}, "shop/web-1: is on existing node n-b (zone-b), and shares its node with shop/db-1"},
		"near others, a running one is not":       {"a", "b", "b", ruletest.Rule{Together: with("zone", "shop/db-*")}, ""},
		"together, running ones are not":          {"aab", "a", "", ruletest.Rule{Together: by("zone")}, ""},
		"together, nor where any runs":            {"aab", "c", "", ruletest.Rule{Together: by("zone")}, "shop/web-3: is on existing node n-c (zone-c), but 2 of them are on zone zone-a"},
		"together, more planned than running":     {"b", "aa", "", ruletest.Rule{Together: by("zone")}, "shop/web-1: is on existing node n-a (zone-a), but 1 of them is on zone zone-b"},
		"together, as many planned as running":    {"b", "a", "", ruletest.Rule{Together: by("zone")}, "shop/web-1: is on existing node n-a (zone-a), but 1 of them is on zone zone-b"},
		"together, running in two and planned":    {"ab", "b", "", ruletest.Rule{Together: by("zone")}, ""},
		"skew, running ones":                      {"aaaab", "b", "", skew(1), ""},
		"skew, no planned pod has a place":        {"aaaab", "z", "", skew(1), ""},
		"skew, planned where most run":            {"aaaab", "a", "", skew(1), ": they differ by 4, want at most 1: 5 on zone zone-a, 1 on zone zone-b"},
		"skew, planned where none runs":           {"aaabbb", "c", "", skew(1), ": they differ by 2, want at most 1: 3 on zone zone-a, 3 on zone zone-b, 1 on zone zone-c"},
		"skew, the planned part of it":            {"aaaaaccb", "ccb", "", skew(1), ": they differ by 2, want at most 1: 5 on zone zone-a, 2 on zone zone-b, 4 on zone zone-c"},
		"never there, a running one is":           {"a", "b", "", ruletest.Rule{NeverOn: []ruletest.Place{{Zone: "zone-a"}}}, ""},
		"there, a running one is not":             {"a", "b", "", ruletest.Rule{LandsOn: []ruletest.Place{{Zone: "zone-b"}}, Placed: true, AllOrNothing: true, AtMostPerHour: &dollar}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := base()
			for _, z := range "abc" {
				s = s.Add(ruletest.ExistingNode("n-"+string(z), "cpu", "32", "memory", "64Gi").Label("topology.kubernetes.io/zone", "zone-"+string(z)))
			}
			for i, z := range c.db {
				s = s.Add(ruletest.Pod(fmt.Sprintf("shop/db-%d", i)).RunningOn("n-" + string(z)))
			}
			for i, z := range c.running + c.planned {
				pod := ruletest.Pod(fmt.Sprintf("shop/web-%d", i)).Requests("cpu", "1")
				if i < len(c.running) {
					pod = pod.RunningOn("n-" + string(z))
				} else {
					pod = pod.On("topology.kubernetes.io/zone=zone-" + string(z))
				}
				s = s.Add(pod)
			}
			p, err := s.Solve()
			require.NoError(t, err)
			c.rule.Pods = "shop/web-*"
			res := p.Check(c.rule)[0]
			require.NoError(t, res.Invalid)
			require.Equal(t, len(c.planned), res.Pods)
			got := ""
			if len(res.Breaches) > 0 {
				got = res.Breaches[0].Pod + ": " + res.Breaches[0].Why
			}
			assert.Equal(t, c.broken, got, "%s", res)
		})
	}
}
