package program

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
)

// combinedInput is a cluster on which each flag of provision has an effect.
const combinedInput = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec: {template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}, requirements: [
  {key: karpenter.sh/capacity-type, operator: In, values: [on-demand, spot]}, {key: node.kubernetes.io/instance-type, operator: In, values: [m6a.large, m6a.xlarge, m6a.2xlarge]}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1", memory: 1Gi}}}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: apart}
spec:
  replicas: 3
  selector: {matchLabels: {app: apart}}
  template:
    metadata: {labels: {app: apart}}
    spec:
      topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: apart}}}]
      containers: [{name: c, image: i, resources: {requests: {cpu: 500m, memory: 1Gi}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: cheap-wish}
spec:
  affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [us-east-1b]}]}}]}}
  containers: [{name: c, image: i, resources: {requests: {cpu: "3", memory: 1Gi}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: dear-wish}
spec:
  affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]}}]}}
  containers: [{name: c, image: i, resources: {requests: {cpu: "1", memory: 1Gi}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: refused}
spec: {nodeSelector: {disk: fast}, containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}
---
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: roll}
spec: {replicas: 5, template: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}}}
`

// combinedTypes is a catalogue of three types in three zones, on demand and spot.
func combinedTypes() string {
	var types []string
	for i, name := range []string{"m6a.large", "m6a.xlarge", "m6a.2xlarge"} {
		var offerings []string
		for z, zone := range []string{"us-east-1a", "us-east-1b", "us-east-1c"} {
			for capacity, price := range map[string]float64{"on-demand": 0.1, "spot": 0.07} {
				offerings = append(offerings, fmt.Sprintf(`{"Price": %.4f, "Requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": [%q]},
					{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [%q]}]}`, price*float64(int(1)<<i)*(1+0.04*float64(z)), capacity, zone))
			}
		}
		slices.Sort(offerings)
		types = append(types, fmt.Sprintf(`{"name": %q, "architecture": "amd64", "operatingSystems": ["linux"], "resources": {"cpu": "%d", "memory": "%dGi", "pods": "29"},
			"offerings": [%s]}`, name, 2<<i, 8<<i, strings.Join(offerings, ",")))
	}
	return "[" + strings.Join(types, ",") + "]"
}

// fewTypes is a file with these types, for runs that need no region.
func fewTypes(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "types.json")
	require.NoError(t, os.WriteFile(path, []byte(combinedTypes()), 0o600))
	return path
}

// combined runs provision with flags that are written as in a shell. The answer is everything that
// the run prints and writes, and its exit code.
type combined struct {
	t    *testing.T
	base string
	dir  string
	runs map[string]result
}

func (c *combined) run(flags string) result {
	c.t.Helper()
	if got, ok := c.runs[flags]; ok {
		return got
	}
	args := []string{"--no-timing"}
	for a := range strings.FieldsSeq(c.base + " " + flags) {
		args = append(args, strings.ReplaceAll(strings.ReplaceAll(a, "$DIR", c.dir), "~", " "))
	}
	proof := filepath.Join(c.dir, "proof.json")
	_ = os.Remove(proof)
	got := run("", args...)
	if written, err := os.ReadFile(proof); err == nil {
		got.stdout += string(written)
	}
	c.runs[flags] = got
	return got
}

// Each flag of provision changes the answer, alone and beside each other flag, or the two are
// refused. So no flag is ignored in silence.
func TestNoFlagIsIgnored(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"in.yaml": combinedInput, "types.json": combinedTypes(),
		"more.yaml":   "{apiVersion: v1, kind: Pod, metadata: {name: more}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 3}}}]}}",
		"new.yaml":    strings.ReplaceAll(strings.Split(combinedInput, "---")[1], "replicas: 6", "replicas: 20"),
		"rules.yaml":  "- {pods: web-*, apart: node}\n- {rulesCost: {atMostPerMonth: 0.01}}\n",
		"scarce.yaml": "capacity:\n- {match: karpenter.sh/capacity-type=spot, free: 0}\n", "rates.csv": "m6a.large,,0.5\n,,0.2\n",
		"scheduler.yaml": "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles: [{pluginConfig: [{name: PodTopologySpread, args: {defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}]}}]}]}",
		"described.json": `{"InstanceTypes":[{"InstanceType":"m6a.large","VCpuInfo":{"DefaultVCpus":2},"MemoryInfo":{"SizeInMiB":8192},"ProcessorInfo":{"SupportedArchitectures":["x86_64"]},
			"SupportedVirtualizationTypes":["hvm"],"SupportedUsageClasses":["on-demand","spot"],"NetworkInfo":{"MaximumNetworkInterfaces":3,"Ipv4AddressesPerInterface":10}}]}`,
		"spot.json": `{"SpotPriceHistory":[{"AvailabilityZone":"us-east-1a","InstanceType":"m6a.2xlarge","ProductDescription":"Linux/UNIX","SpotPrice":"0.001","Timestamp":"2026-11-26T10:00:00+00:00"}]}`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	// How to write each flag so that it has an effect alone.
	written := map[string]string{
		"assert": "--assert $DIR/rules.yaml", "diff": "--diff $DIR/new.yaml", "explain": "--explain default/refused", "filename": "-f $DIR/more.yaml",
		"fixes": "--fixes none", "headroom": "--headroom deployment/web=4", "now": "--rehearse $DIR/scarce.yaml --now 2026-01-31T12:00:00Z",
		"pods": "--pods Rollout.argoproj.io=spec.template", "proof": "--proof $DIR/proof.json", "rehearse": "--rehearse $DIR/scarce.yaml", "rules-cost": "--rules-cost",
		"sample": "--sample refusals", "sizes": "--sizes", "survives": "--survives zone", "scheduler-config": "--scheduler-config $DIR/scheduler.yaml",
		"output=wide": "-o wide", "output=json": "-o json", "output=yaml": "-o yaml", "output=html": "-o html",
		"aws": "--aws $DIR/spot.json", "describe-instance-types": "--describe-instance-types $DIR/described.json", "region": "--region eu-west-1",
		"instance-types": "--instance-types $DIR/types.json",
	}
	// Flags that say how to plan change the plan, and with it each answer. Two of them may change it
	// in the same way, so they are only tried beside other flags.
	planning := map[string]string{
		"factor": "--factor node.kubernetes.io/instance-type=m6a.large:~1.5", "interruption": "--interruption 0.9", "interruption-cost": "--interruption-rates $DIR/rates.csv --interruption-cost 1",
		"interruption-rates": "--interruption-rates $DIR/rates.csv --interruption-cost 1", "leave-zones": "--leave-zones", "max-node-cpu": "--max-node-cpu 2", "max-nodes": "--max-nodes 1",
		"max-plan-in-spot-pool": "--max-plan-in-spot-pool 0.2", "max-workload-in-spot-pool": "--max-workload-in-spot-pool 0.2", "per-node": "--per-node 0.3",
		"preference-price": "--preference-price inf", "preferences": "--preferences ignore", "savings-plan": "--savings-plan karpenter.sh/capacity-type=on-demand:~9~at~60%",
		"strategy": "--strategy ffd", "effort": "--effort best",
	}
	maps.Copy(written, planning)
	// What these flags change is not always to be seen.
	quiet := map[string]string{
		"strategy": "first fit may find the best plan", "effort": "the default may find the best plan",
		"no-timing": "it leaves out what may not be there", "help": "", "version": "",
	}
	var names []string
	for name := range written {
		names = append(names, name)
	}
	slices.Sort(names)
	for f := range flagsOf() {
		if _, known := written[f]; !known && f != "output" && quiet[f] == "" && f != "help" && f != "version" {
			t.Errorf("flag --%s is not tried", f)
		}
	}
	catalogues := []string{"aws", "describe-instance-types", "region"}
	small := &combined{t, "-f $DIR/in.yaml --instance-types $DIR/types.json", dir, map[string]result{}}
	ec2 := &combined{t, "-f $DIR/in.yaml", dir, map[string]result{}}
	isRefused := func(r result) bool {
		if r.code != inputs.ExitInput {
			return false
		}
		assert.Empty(t, r.stdout)
		assert.Regexp(t, `leave out|want -o|want --|cannot be combined`, r.stderr)
		return true
	}
	refused, pairs := 0, 0
	for i, a := range names {
		for _, b := range names[i+1:] {
			if strings.HasPrefix(a, "output=") && strings.HasPrefix(b, "output=") || planning[a] != "" && planning[b] != "" || written[a] == written[b] {
				continue
			}
			c := small
			if slices.Contains(catalogues, a) || slices.Contains(catalogues, b) || a == "instance-types" || b == "instance-types" {
				c = ec2
			}
			isPlanning := planning[a] != "" || planning[b] != ""
			if testing.Short() && (c == ec2 || isPlanning) || c == ec2 && isPlanning { // another catalogue may leave them nothing to change
				continue
			}
			if pairs++; testing.Short() && pairs%3 > 0 {
				continue
			}
			both := c.run(written[a] + " " + written[b])
			if isRefused(both) {
				refused++
				continue
			}
			for _, alone := range []string{a, b} {
				other := a
				if alone == a {
					other = b
				}
				without := c.run(written[alone])
				switch {
				case alone == "explain" && (planning[other] != "" || other == "filename"):
					continue // the one pod may go where it goes anyway
				case (alone == "survives" || alone == "rules-cost") && planning[other] != "":
					continue // another plan may live through the same, and its rules may cost the same
				}
				if quiet[other] != "" || isRefused(without) || strings.Contains(written[alone], written[other]) {
					continue
				}
				assert.False(t, both == without, "%s has no effect beside %s", other, alone)
			}
		}
	}
	t.Log(refused, "refused")
}

// flagsOf yields the flags of provision that are not hidden.
func flagsOf() map[string]bool {
	out := map[string]bool{}
	Command(nil).Flags().VisitAll(func(f *pflag.Flag) { out[f.Name] = !f.Hidden })
	maps.DeleteFunc(out, func(_ string, shown bool) bool { return !shown })
	return out
}
