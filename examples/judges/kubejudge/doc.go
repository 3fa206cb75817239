// Package kubejudge replays the bindings of a plan through kube-scheduler's own plugins.
//
// A plan says which pod goes to which node. Whether that is right is not for its author to say:
// [Judge] builds the nodes and pods of a [Scenario] in memory, loads kube-scheduler's framework
// with its in-tree plugins, and binds pod after pod in the order given. Each bind runs PreFilter,
// Filter on the one planned node, and Reserve; a bind that passes becomes part of the state that
// the next one sees, its volumes included. There is no API server, no cluster and no clock.
//
// What an API server, its admission plugins and the volume controllers do to an object before
// kube-scheduler sees it is done here too, by Kubernetes' own code where that can be called:
// defaulting, matchLabelKeys folded into selectors, priority classes, the default storage class,
// claims of generic ephemeral volumes, and the binding of claims to volumes.
//
// The plugins are NodeUnschedulable, NodeName, TaintToleration, NodeAffinity, NodePorts,
// NodeResourcesFit, VolumeRestrictions, NodeVolumeLimits, VolumeBinding, VolumeZone,
// PodTopologySpread, InterPodAffinity, NodeDeclaredFeatures and DynamicResources, in
// kube-scheduler's order and with its default arguments, and SchedulingGates. A scenario has no
// devices, so a pod that asks for some is refused. Preemption and gangs are not judged.
//
// All functions leave their arguments alone and may be called concurrently.
package kubejudge
