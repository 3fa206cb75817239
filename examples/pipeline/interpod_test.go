package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// requiredTerms is affinity or anti-affinity by zone to each of the selectors.
func requiredTerms(kind string, selectors ...string) string {
	var terms []string
	for _, s := range selectors {
		terms = append(terms, fmt.Sprintf("{topologyKey: %s, labelSelector: %s}", zoneKey, s))
	}
	return fmt.Sprintf("affinity: {%s: {requiredDuringSchedulingIgnoredDuringExecution: [%s]}}\n", kind, strings.Join(terms, ", "))
}

// kube-scheduler counts a pod for required affinity only if it meets all terms of the owner.
func TestAffinityToTwoThingsMeansOnePod(t *testing.T) {
	market := catalogue(t, twoZones...)
	both := requiredTerms("podAffinity", "{matchLabels: {app: a}}", "{matchLabels: {tier: b}}")
	tiered := func(name string, n int, spec string) string {
		return strings.Replace(deployment(name, n, spec), "labels: {app: "+name+"}}", "labels: {app: "+name+", tier: b}}", 1)
	}
	apart := anyPool + deployment("a", 1, container("1")) + tiered("b", 1, container("1")) + deployment("web", 2, both+container("1"))
	assert.Zero(t, apps(t, market, apart)["web"], "a and b are two pods")
	assert.Equal(t, 2, apps(t, market, anyPool+tiered("a", 1, container("1"))+deployment("web", 2, both+container("1")))["web"])
	assert.Equal(t, 3, apps(t, market, anyPool+tiered("a", 3, both+container("1")))["a"], "the first meets its own terms")
}

// Until it is gone, a terminating pod counts for affinity and anti-affinity.
func TestTerminatingPodsAreThere(t *testing.T) {
	market := catalogue(t, "a.4 4 zone-a on-demand 0.2")
	old := func(deletion string) string {
		return `
---
apiVersion: v1
kind: Pod
metadata: {name: old, labels: {app: old}` + deletion + `}
spec: {nodeName: n1, containers: [{name: c, resources: {requests: {cpu: 1}}}]}
---
`
	}
	node := nodeIn("n1", "zone-a", "4", "")
	for _, deletion := range []string{"", ", deletionTimestamp: 2026-01-01T00:00:00Z, deletionGracePeriodSeconds: 3600"} {
		text := anyPool + node + old(deletion)
		assert.Equal(t, 1, apps(t, market, text+deployment("near", 1, requiredTerms("podAffinity", "{matchLabels: {app: old}}")+container("1")))["near"], deletion)
		assert.Zero(t, apps(t, market, text+deployment("away", 1, requiredTerms("podAntiAffinity", "{matchLabels: {app: old}}")+container("1")))["away"], deletion)
	}
}

// A spread with an empty selector counts nothing, but asks for nodes with its key.
func TestSpreadOfAnEmptySelector(t *testing.T) {
	market := catalogue(t, "a.4 4 zone-a on-demand 0.2")
	for _, selector := range []string{"labelSelector: {}, ", ""} {
		spread := fmt.Sprintf("topologySpreadConstraints: [{maxSkew: 1, topologyKey: %s, whenUnsatisfiable: DoNotSchedule, %sminDomains: 2}]\n", zoneKey, selector)
		assert.Equal(t, 5, apps(t, market, anyPool+deployment("web", 5, spread+container("1")))["web"], selector)
	}
}

// A node filter is evaluated, never turned inside out: of many terms of two labels each that would be millions of alternatives.
func TestManyNodeAffinityTermsAndASpread(t *testing.T) {
	market := catalogue(t, twoZones...)
	var terms []string
	for i := range 20 {
		terms = append(terms, fmt.Sprintf("{matchExpressions: [{key: %s, operator: In, values: [zone-a, zone-b]}, {key: kubernetes.io/arch, operator: NotIn, values: [a%d]}, {key: node.kubernetes.io/instance-type, operator: NotIn, values: [b%d]}]}", zoneKey, i, i))
	}
	picky := "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" + strings.Join(terms, ", ") + "]}}}\n"
	web := deployment("web", 6, picky+spreadBy(zoneKey)+container("1"))
	other := ""
	for i := range 6 {
		other += single("default", fmt.Sprint("other-", i), "app: web", "priority: 0")
	}
	placed := apps(t, market, anyPool+strings.TrimSuffix(web, "---\n")+other)
	require.Equal(t, 12, placed["web"])
}

// A reason says when no node could ever meet a constraint between pods, whatever the other pods do: no node has its label, or nothing is
// what it wants to be near.
func TestReasonsOfConstraintsThatNothingMeets(t *testing.T) {
	market := catalogue(t, "a.4 4 zone-a on-demand 0.2")
	near := func(app, key string) string {
		return fmt.Sprintf("affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: %s, labelSelector: {matchLabels: {app: %s}}}]}}\n", key, app)
	}
	rack := "\n---\napiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {kubernetes.io/hostname: n1, rack: r1}}\n" +
		"status: {capacity: {cpu: 1, memory: 1Gi, pods: 9}, conditions: [{type: Ready, status: \"True\"}]}\n---\n"
	for name, c := range map[string]struct{ around, spec, want string }{
		"a spread by a label that no node has":       {"", spreadBy("rack"), "no node has the label rack, which its spread of app=web over rack with skew 1 needs"},
		"a spread by a label that a full node has":   {rack, spreadBy("rack"), "other pods stand in the way: spread of app=web over rack with skew 1"},
		"affinity by a label that no node has":       {"", near("web", "rack"), "no node has the label rack, which its affinity to app=web by rack needs"},
		"affinity to pods that are not there":        {"", near("cache", zoneKey), "other pods stand in the way: affinity to app=cache by " + zoneKey + ", but there is no such pod"},
		"affinity to pods that are there, by a rack": {deployment("cache", 1, container("1")), near("cache", "rack"), "no node has the label rack, which its affinity to app=cache by rack needs"},
	} {
		t.Run(name, func(t *testing.T) {
			p := pack(t, market, anyPool+c.around+deployment("web", 1, c.spec+container("2")))
			require.NotEmpty(t, p.Unplaced())
			u := p.Unplaced()[len(p.Unplaced())-1]
			assert.Equal(t, c.want, u.Reasons()[0].Detail)
		})
	}
}

// A refusal by a spread names minDomains wherever it names the skew, unless it is 1, which is the
// default and demands nothing.
func TestRefusalsNameMinDomains(t *testing.T) {
	market := catalogue(t, "a.4 4 zone-a on-demand 0.2", "a.4 4 zone-b on-demand 0.2")
	for domains := range 10 {
		field, want := "", ""
		if domains > 0 {
			field = fmt.Sprintf("minDomains: %d, ", domains)
		}
		if domains > 1 {
			want = fmt.Sprintf(" and minDomains %d", domains)
		}
		for key, refusal := range map[string]string{
			zoneKey: "other pods stand in the way: spread of app=web over " + zoneKey + " with skew 1%s",
			"rack":  "no node has the label rack, which its spread of app=web over rack with skew 1%s needs",
		} {
			spread := fmt.Sprintf("topologySpreadConstraints: [{maxSkew: 1, topologyKey: %s, whenUnsatisfiable: DoNotSchedule, %slabelSelector: {matchLabels: {app: web}}}]\n", key, field)
			p := pack(t, market, anyPool+deployment("web", 4, spread+container("2")))
			if key == zoneKey && domains <= 2 {
				assert.Empty(t, p.Unplaced())
				continue
			}
			require.NotEmpty(t, p.Unplaced(), "%s %d", key, domains)
			assert.Equal(t, fmt.Sprintf(refusal, want), p.Unplaced()[0].Reasons()[0].Detail)
		}
	}
}

// A pool that only excludes values of a label puts none on its nodes, unless a pod requires one.
func TestPoolsThatExcludeValuesGiveNoLabel(t *testing.T) {
	market := catalogue(t, "a.4 4 zone-a on-demand 0.2")
	for _, operator := range []string{"NotIn, values: [b]", "DoesNotExist"} {
		pool := strings.Replace(anyPool, "requirements: [", "requirements: [{key: rack, operator: "+operator+"}, ", 1)
		require.NotEqual(t, anyPool, pool)
		p := pack(t, market, pool+deployment("web", 1, spreadBy("rack")+"hostNetwork: true\n"+container("2")))
		require.Len(t, p.Unplaced(), 1)
		assert.Equal(t, "no node has the label rack, which its spread of app=web over rack with skew 1 needs", p.Unplaced()[0].Reasons()[0].Detail, operator)
	}
	pool := strings.Replace(anyPool, "requirements: [", "requirements: [{key: rack, operator: NotIn, values: [b]}, ", 1)
	assert.Empty(t, pack(t, market, pool+deployment("web", 1, "nodeSelector: {rack: a}\n"+spreadBy("rack")+container("2"))).Unplaced())
}

// A pod that would open a domain which the spread of others counts, but where they may not go, is
// refused for that spread, and not for a spread of its own that a single pod can't break.
func TestReasonsNameSpreadsOfOthers(t *testing.T) {
	market := catalogue(t, "a.4 4 zone-a on-demand 0.2", "a.4 4 zone-b on-demand 0.2")
	ignore := strings.Replace(spreadBy(zoneKey), "topologyKey:", "nodeAffinityPolicy: Ignore, topologyKey:", 1)
	require.Contains(t, ignore, "Ignore")
	web := deployment("web", 10, "nodeSelector: {"+zoneKey+": zone-b}\n"+ignore+container("300m"))
	for name, own := range map[string]string{"without a spread": "", "with its own spread": strings.ReplaceAll(spreadBy(zoneKey), "app: web", "app: solo")} {
		p := pack(t, market, anyPool+web+deployment("solo", 1, "nodeSelector: {"+zoneKey+": zone-a}\n"+own+container("300m")))
		require.Len(t, p.Unplaced(), 1, name)
		assert.Equal(t, "solo-0", p.Unplaced()[0].Pods[0].Name)
		assert.Equal(t, "other pods stand in the way: spread of app=web over "+zoneKey+" with skew 1, which counts nodes where its pods may not go", p.Unplaced()[0].Reasons()[0].Detail, name)
	}
}
