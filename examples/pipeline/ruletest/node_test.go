package ruletest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/joinery-sdk/joinery/examples/pipeline/ruletest"
)

// A node is itself, whatever its label kubernetes.io/hostname says; a rule by that label is about the label.
func TestNodesAreToldApartByName(t *testing.T) {
	const host = "kubernetes.io/hostname"
	pod := func(name, node string) ruletest.Workload {
		return ruletest.Pod("shop/"+name).Requests("cpu", "1").On("disk=" + node)
	}
	p := base().Add(
		ruletest.ExistingNode("n1", "cpu", "4").Label(host, "h1").Label("disk", "d1"), ruletest.ExistingNode("n2", "cpu", "4").Label(host, "h1").Label("disk", "d2"),
		ruletest.ExistingNode("n3", "cpu", "4").Label("disk", "d3"),
		pod("web-0", "d1"), pod("web-1", "d2"), pod("api-0", "d3"), pod("api-1", "d3"), ruletest.Pod("shop/run-0").Requests("cpu", "1").RunningOn("n2"),
	).Plan(t)
	company := func(by, with string) *ruletest.Company { return &ruletest.Company{By: by, With: with} }
	for _, c := range []struct {
		name string
		rule ruletest.Rule
		want string
	}{
		{"apart", ruletest.Rule{Pods: "shop/web-*", Apart: company("node", "")}, ""},
		{"apart by label", ruletest.Rule{Pods: "shop/web-*", Apart: company(host, "")}, "is on existing node n2, and shares its kubernetes.io/hostname with shop/web-0"},
		{"apart from another", ruletest.Rule{Pods: "shop/web-0", Apart: company("node", "shop/run-0")}, ""},
		{"apart from another by label", ruletest.Rule{Pods: "shop/web-0", Apart: company(host, "shop/run-0")}, "shares its kubernetes.io/hostname with shop/run-0"},
		{"apart, and not", ruletest.Rule{Pods: "shop/api-*", Apart: company("node", "")}, "is on existing node n3, and shares its node with shop/api-0"},
		{"together", ruletest.Rule{Pods: "shop/web-*", Together: company("node", "")}, "but 1 of them is on node n1"},
		{"together by label", ruletest.Rule{Pods: "shop/web-*", Together: company(host, "")}, ""},
		{"together, and so", ruletest.Rule{Pods: "shop/api-*", Together: company("node", "")}, ""},
		{"together with another", ruletest.Rule{Pods: "shop/web-0", Together: company("node", "shop/run-0")}, "no pod of shop/run-0 is there by node: they are on n2"},
		{"together with another by label", ruletest.Rule{Pods: "shop/web-0", Together: company(host, "shop/run-0")}, ""},
		{"spread", ruletest.Rule{Pods: "shop/web-*", Spread: &ruletest.Spread{By: "node", AtLeast: 2}}, ""},
		{"spread by label", ruletest.Rule{Pods: "shop/web-*", Spread: &ruletest.Spread{By: host, AtLeast: 2}}, "they are on 1 value, want at least 2: 2 on kubernetes.io/hostname h1"},
		{"skew", ruletest.Rule{Spread: &ruletest.Spread{By: "node", Skew: 1}}, ""},
	} {
		res := p.Check(c.rule)[0]
		assert.Equal(t, c.want == "", res.Holds(), "%s: %s", c.name, res)
		assert.Contains(t, res.String(), c.want, c.name)
	}
}
