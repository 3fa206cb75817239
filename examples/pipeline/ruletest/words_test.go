package ruletest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/ruletest"
)

// A cause names who asks: the rule where no pod does, and the weight of a pool where it would decide
// without the price.
func TestCausesNameWhoAsks(t *testing.T) {
	od, spot := ruletest.Pool("od").Only("karpenter.sh/capacity-type=on-demand"), ruletest.Pool("spot").Only("karpenter.sh/capacity-type=spot")
	web := ruletest.Deployment("shop/web", 2).Requests("cpu", "1500m")
	on := func(place ruletest.Place) ruletest.Rule {
		return ruletest.Rule{Pods: "shop/web-*", LandsOn: []ruletest.Place{place}}
	}
	never := func(place ruletest.Place) ruletest.Rule {
		return ruletest.Rule{Pods: "shop/web-*", NeverOn: []ruletest.Place{place}}
	}
	for name, c := range map[string]struct {
		objects []ruletest.Object
		rule    ruletest.Rule
		want    string
	}{
		"weight and price":       {[]ruletest.Object{od, spot.Weight(50), web}, on(ruletest.Place{Pool: "od"}), `weight 50 of pool "spot", and the price: to keep the rule costs at most $0.06/h more`},
		"price":                  {[]ruletest.Object{ruletest.Pool("any"), web}, on(ruletest.Place{CapacityType: "on-demand"}), "the price: to keep the rule costs at most $0.06/h more"},
		"price within a pool":    {[]ruletest.Object{ruletest.Pool("any").Weight(50), web}, on(ruletest.Place{CapacityType: "on-demand"}), "the price: to keep the rule costs at most $0.06/h more"},
		"a label of the rule":    {[]ruletest.Object{od, web}, never(ruletest.Place{Labels: "!example.com/none"}), `pool "od", which refuses them: the rule requires example.com/none`},
		"a label that pods need": {[]ruletest.Object{od.Label("tier", "back"), web.On("tier=back")}, never(ruletest.Place{Labels: "tier"}), "required node affinity tier in (back) of shop/web-0, which the rule contradicts"},
		"too few pods":           {[]ruletest.Object{od, web}, ruletest.Rule{Pods: "shop/web-*", Spread: &ruletest.Spread{By: "zone", AtLeast: 3}}, "their number: 2 pods cannot be on 3 values of topology.kubernetes.io/zone"},
	} {
		s := ruletest.New(ruletest.Type("m.2", "cpu", "2", "memory", "8Gi").Offer("zone-a", "on-demand", 0.10).Offer("zone-a", "spot", 0.07), ruletest.Type("m.4", "cpu", "4", "memory", "8Gi").Offer("zone-a", "on-demand", 0.20).Offer("zone-a", "spot", 0.14)).Add(c.objects...)
		p, err := s.Solve()
		require.NoError(t, err)
		assert.Contains(t, p.Check(c.rule)[0].String(), c.want, name)
	}
}
