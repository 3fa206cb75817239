package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// onOld is a replica that runs on a node which is being removed, and waiting one that is pending.
func onOld(app, name, spec string) string {
	return fmt.Sprintf(`
---
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {app: %s}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: %s, uid: %s, controller: true}]}
spec: {nodeName: old, %s, containers: [{name: main, image: i, resources: {requests: {cpu: 1}}}]}
status: {phase: Running}
`, name, app, app, app, spec)
}

func oldIn(zone string) string {
	return nodeIn("old", zone, "8", "{key: karpenter.sh/disrupted, effect: NoSchedule}")
}

// A node that is being removed is there until it is gone: kube-scheduler counts its pods, and it is a domain of spreads. Where the pods can be
// placed so that nothing waits for it, they are; where not, the plan says what waits.
func TestNodesThatLeaveCountUntilTheyAreGone(t *testing.T) {
	plain := "terminationGracePeriodSeconds: 30"
	zoned := podTerm("podAffinity", always+": ["+byZone("app: q", "")+"]")
	away := podTerm("podAntiAffinity", always+": ["+byZone("app: q", "")+"]")
	even := spreadOf("maxSkew: 1, whenUnsatisfiable: DoNotSchedule, " + "topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {app: q}}")
	q := func(n int, spec string) string {
		out := ""
		for i := range n {
			out += single("default", fmt.Sprintf("q-%d", 9-i), "app: q", spec)
		}
		return out
	}
	old := func(spec string) string { return oldIn("zone-a") + onOld("q", "q-1", spec) + onOld("q", "q-2", spec) }
	for _, c := range []struct {
		name, text string
		offers     []string
		zones      string // of each placed pod
		waits      int
	}{
		{"affinity follows them though the other zone is cheaper", old(zoned) + q(1, zoned), []string{"a.8 8 zone-a on-demand 0.2", "b.8 8 zone-b on-demand 0.1"}, "q-1 zone-a, q-2 zone-a, q-9 zone-a", 0},
		{"affinity where their zone is not sold", old(zoned) + q(1, zoned), []string{"b.8 8 zone-b on-demand 0.1"}, "q-1 zone-b, q-2 zone-b, q-9 zone-b", 3},
		{"anti-affinity keeps others out of their zone", oldIn("zone-a") + onOld("q", "q-1", away) + q(1, away), []string{"a.8 8 zone-a on-demand 0.1", "b.8 8 zone-b on-demand 0.1"}, "q-1 zone-a, q-9 zone-b", 0},
		{"anti-affinity with one zone to go to", oldIn("zone-a") + onOld("x", "x-1", plain) + onOld("q", "q-1", away) + q(1, away), []string{"a.8 8 zone-a on-demand 0.1"}, "q-1 zone-a", 0},
		{"an empty node is a domain", oldIn("zone-c") + q(2, even), []string{"a.8 8 zone-a on-demand 0.1"}, "q-8 zone-a, q-9 zone-a", 1},
		{"an empty node is a domain, with two zones", oldIn("zone-c") + q(2, even), []string{"a.8 8 zone-a on-demand 0.1", "b.8 8 zone-b on-demand 0.1"}, "q-8 zone-a, q-9 zone-b", 0},
		{"nobody counts them", old(plain) + q(1, plain), []string{"a.8 8 zone-a on-demand 0.2", "b.8 8 zone-b on-demand 0.1"}, "q-1 zone-b, q-2 zone-b, q-9 zone-b", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := pack(t, catalogue(t, c.offers...), anyPool+c.text)
			zone := map[string]string{}
			for _, n := range p.NewNodes() {
				zone[n.Name] = n.Zone
			}
			var got []string
			waits := 0
			for _, b := range p.Bindings() {
				got = append(got, b.Pod.Name+" "+zone[b.Node])
				if len(b.After) > 0 {
					waits++
					require.Equal(t, []string{"old"}, b.After)
				}
				require.Equal(t, b.Pod.Name[2] < 8+'0', b.Replaces != nil, "%s", b.Pod.Name)
			}
			for one := range strings.SplitSeq(c.zones, ", ") {
				assert.Contains(t, got, one)
			}
			assert.Equal(t, c.waits, waits, "%v", got)
			told := false
			for _, n := range p.Notes() {
				told = told || strings.Contains(n, "wait until node old is gone")
			}
			assert.Equal(t, waits > 0, told)
		})
	}
}
