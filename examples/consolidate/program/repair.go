package program

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/lifecycle"
	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
)

// repairPolicies are those of EC2: nodes that have not been ready, or not been heard of, for half
// an hour, and nodes of which a monitoring agent reports a broken part.
func repairPolicies() []cloudprovider.RepairPolicy {
	const half = 30 * time.Minute
	list := []cloudprovider.RepairPolicy{
		{Condition: corev1.NodeReady, Status: corev1.ConditionFalse, Toleration: half},
		{Condition: corev1.NodeReady, Status: corev1.ConditionUnknown, Toleration: half},
		{Condition: "AcceleratedHardwareReady", Status: corev1.ConditionFalse, Toleration: 10 * time.Minute},
	}
	for _, part := range []corev1.NodeConditionType{"StorageReady", "NetworkingReady", "KernelReady", "ContainerRuntimeReady"} {
		list = append(list, cloudprovider.RepairPolicy{Condition: part, Status: corev1.ConditionFalse, Toleration: half})
	}
	return list
}

// repaired returns the cluster with what is wrong with its broken nodes, and notes about those that
// stay broken.
func repaired(c deprovision.Cluster) (deprovision.Cluster, []string) {
	var notes []string
	var nodes []lifecycle.Node
	for i := range c.Nodes {
		if n := &c.Nodes[i]; n.Initialized() && !n.Rebooting() {
			nodes = append(nodes, lifecycle.Node{Claim: n.Name(), Pool: n.PoolName(), Conditions: n.Node.Status.Conditions, Since: n.Node.CreationTimestamp.Time, Annotations: n.Node.Annotations})
		}
	}
	c.Nodes = slices.Clone(c.Nodes)
	for _, d := range lifecycle.Repairs(nodes, repairPolicies(), c.Now) {
		at := slices.IndexFunc(c.Nodes, func(n eligibility.Node) bool { return n.Name() == d.Claim })
		c.Nodes[at].Repair = &eligibility.Repair{Since: c.Now.Add(-d.Urgency), Why: d.Detail, Grace: d.Grace}
	}
	for _, n := range nodes {
		at := slices.IndexFunc(c.Nodes, func(x eligibility.Node) bool { return x.Name() == n.Claim })
		if c.Nodes[at].Repair != nil || !n.Broken(repairPolicies(), c.Now) {
			continue
		}
		why := "more than a fifth of the nodes of its pool are not well, so the fault is elsewhere"
		if n.Annotations[lifecycle.DoNotRepair] == "true" {
			why = "it has the annotation " + lifecycle.DoNotRepair + "=true"
		}
		notes = append(notes, "node "+n.Claim+" is broken and is not replaced: "+why)
	}
	return c, notes
}

// closed returns the nodes, of which broken ones accept no pods: what is bound there would not run.
func closed(nodes []nodeObject, now time.Time) []nodeObject {
	out := slices.Clone(nodes)
	for i, n := range out {
		if (lifecycle.Node{Conditions: n.Status.Conditions, Since: n.CreationTimestamp.Time}).Broken(repairPolicies(), now) {
			with := *n
			with.Spec.Unschedulable, out[i] = true, &with
		}
	}
	return out
}
