package rules_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/ruletest"
)

// platform is the pools that every test starts from: what a team would read from its repository by Scenario.Files.
func platform() ruletest.Scenario { return ruletest.Scenario{}.Files("testdata/pools.yaml") }

// Two pods with a GPU each get the machines that are cheapest for them, not one with room for four.
func TestGPUPodsDoNotBuyALargeMachine(t *testing.T) {
	plan := platform().Add(ruletest.Deployment("ml/train", 2).Requests("cpu", "3", "memory", "12Gi", "nvidia.com/gpu", "1").Tolerates("nvidia.com/gpu")).Plan(t)
	plan.Pods("ml/train-*").LandOn(ruletest.Place{Pool: "gpu"}).NeverLandOn(ruletest.Place{InstanceType: "*.12xlarge,*.24xlarge"}).CostAtMost(1.10)
}

// Pods that need no GPU stay off the nodes that have one, though they tolerate everything.
func TestNothingElseRunsOnGPUs(t *testing.T) {
	plan := platform().Add(ruletest.Deployment("shop/web", 40).Requests("cpu", "1").Tolerates("")).Plan(t)
	plan.Pods("shop/*").NeverLandOn(ruletest.On("karpenter.k8s.aws/instance-gpu-count>0"))
}

// Batch work runs on arm64 spot, never on burstable types, for at most 20 cents an hour.
func TestBatchRunsOnCheapArm(t *testing.T) {
	plan := platform().Add(ruletest.Deployment("batch/etl", 3).Requests("cpu", "1", "memory", "2Gi").On("kubernetes.io/arch=arm64").Tolerates("dedicated=batch")).Plan(t)
	plan.Pods("batch/*").LandOn(ruletest.Place{Pool: "batch", CapacityType: "spot"}).NeverLandOn(ruletest.On("karpenter.k8s.aws/instance-category=t")).CostAtMost(0.20)
}

// The nodes still hold everything, and the budget, when the log agent asks for a gigabyte more.
func TestTheLogAgentMayGrow(t *testing.T) {
	plan := platform().Add(ruletest.DaemonSet("kube-system/logs").Requests("cpu", "200m", "memory", "1536Mi").Tolerates(""),
		ruletest.Deployment("shop/web", 20).Requests("cpu", "500m", "memory", "1Gi")).Plan(t)
	plan.Pods("shop/web-*").ArePlaced().CostAtMost(0.80)
}

// Three hundred replicas that keep apart get a node each.
func TestReplicasKeepApart(t *testing.T) {
	plan := platform().Add(ruletest.Deployment("shop/quorum", 300).Requests("cpu", "250m").Apart("node")).Plan(t)
	plan.Pods("shop/quorum-*").ArePlaced().AreApart("node")
}

// A zone that only somebody else's tainted pool has does not unbalance a spread.
func TestOtherPeoplesPoolsDoNotPoisonZones(t *testing.T) {
	plan := platform().Add(ruletest.Pool("strange").Only("topology.kubernetes.io/zone=us-east-1f").Taint("not=yours:NoSchedule"),
		ruletest.Deployment("shop/web", 9).Requests("cpu", "1").Spreads("zone", 1)).Plan(t)
	plan.Pods("shop/web-*").ArePlaced().AreSpread("zone", 3)
}

// A limit holds within one plan: what is beyond it is refused for it, and nothing is bought.
func TestLimitsHold(t *testing.T) {
	plan := ruletest.New(ruletest.Pool("small").Limit("nodes", "2"), ruletest.Deployment("web", 3).Requests("cpu", "1").Apart("node")).Plan(t)
	plan.Pods("web-0,web-1").ArePlaced()
	plan.Pods("web-2").AreRefused(ruletest.Refusal{Stage: "limit", Text: "limit of 2 nodes"})
}

// Two in five replicas are on demand, by the label that both pools spread over.
func TestSpotRatio(t *testing.T) {
	plan := platform().Add(ruletest.Deployment("shop/api", 10).Requests("cpu", "1").Spreads("capacity-spread", 1)).Plan(t)
	plan.Pods("shop/api-*").ArePlaced().AreSpread("capacity-spread", 2)
	plan.Pods("shop/api-*").AreSpread("karpenter.sh/capacity-type", 6)
}

// What the heavier pool has no room for goes to the other one, and nothing waits.
func TestTheFallbackIsUsed(t *testing.T) {
	plan := ruletest.New(ruletest.Pool("reserved").Weight(100).Only("node.kubernetes.io/instance-type=m5.xlarge").Limit("cpu", "4"), ruletest.Pool("fallback"),
		ruletest.Deployment("web", 6).Requests("cpu", "1500m")).Plan(t)
	plan.Pods("web-0,web-1").LandOn(ruletest.Place{Pool: "reserved"})
	plan.Pods("web-2,web-3,web-4,web-5").LandOn(ruletest.Place{Pool: "fallback"})
}

// A pod that can't be placed says why in a way that a person can act on.
func TestRefusalsAreReadable(t *testing.T) {
	plan := platform().Add(ruletest.Pod("shop/typo").Requests("cpu", "1").On("topology.kubernetes.io/zone=us-east-1z"),
		ruletest.Pod("shop/giant").Requests("cpu", "500")).Plan(t)
	plan.Pods("shop/typo").AreRefused(ruletest.Refusal{Stage: "requirement", Text: "us-east-1z"})
	plan.Pods("shop/giant").AreRefused(ruletest.Refusal{Stage: "resource", Text: "none is large enough; nearest"})
}

// The rules of a file, checked against a plan for every team at once.
func TestTheRulesOfAFile(t *testing.T) {
	rules, err := ruletest.ReadFile("testdata/rules.yaml")
	require.NoError(t, err)
	platform().Add(
		ruletest.DaemonSet("kube-system/logs").Requests("cpu", "100m", "memory", "128Mi").Tolerates(""),
		ruletest.Deployment("shop/web", 6).Requests("cpu", "1", "memory", "1Gi").Spreads("zone", 1),
		ruletest.Deployment("batch/etl", 3).Requests("cpu", "1").On("kubernetes.io/arch=arm64").Tolerates("dedicated=batch"),
		ruletest.Deployment("ml/train", 1).Requests("cpu", "3", "nvidia.com/gpu", "1").Tolerates("nvidia.com/gpu"),
		ruletest.Pod("ml/forgot").Requests("cpu", "3", "nvidia.com/gpu", "1"),
	).Plan(t).Keep(rules...)
}
