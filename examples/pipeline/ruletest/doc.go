// Package ruletest is unit tests for scheduling rules: what must be true of where pods land, whom they are with and what
// they cost, checked against a plan, without a cluster.
//
// A [Scenario] is pods, pools and nodes, built by [Pod], [Deployment], [DaemonSet], [Pool] and [ExistingNode] or read from
// manifests; it buys from the embedded EC2 catalogue or from types of the test's own ([Type]). [Scenario.Plan] plans it, and
// the demands of [Pods] report to the test:
//
//	plan := ruletest.New(ruletest.Pool("default"), ruletest.Deployment("shop/web", 5).Requests("cpu", "500m")).Plan(t)
//	plan.Pods("shop/web-*").LandOn(ruletest.On("kubernetes.io/arch=arm64")).CostAtMost(0.20)
//
// A demand that is not met says which pods are where instead, and what moved them: a constraint that the pods carry
// themselves and the rule contradicts; each constraint, pool weight, limit or taint without which the rule would hold;
// or, if there is none, what stops the pods when they are forced to keep the rule, or what that costs. All of it comes
// from planning again with that one change; nothing is guessed.
//
// Without a test, [Plan.Check] returns the same as data.
//
// # Rules as YAML
//
// [Parse] reads rules from a file, the same demands in the same words. A file is a list of rules, below "rules" or by
// itself; each names pods and demands one thing or several.
//
//	rules:
//	- rule: the front end runs on arm64, and never on burstable types     # a name, if you like
//	  pods: shop/web-*                     # namespace/name; * is any text, commas separate; none: all pods
//	  labels: app=web,tier!=cache          # a label selector, instead of pods or to narrow them
//	  landsOn: kubernetes.io/arch=arm64    # labels of the node, in the text form of package requirements
//	  neverOn: {instanceType: "t3.*,t3a.*,t4g.*"}
//	  placed: true                         # every pod has a place
//
//	- pods: batch/*
//	  landsOn:                             # one of these places; all that a place says must fit
//	  - {pool: spot, zone: us-east-1a}
//	  - {pool: fallback, capacityType: on-demand}
//	  - {node: ip-10-0-0-*}                # existing nodes by name
//	  atMostPerHour: 0.25                  # dollars, for the new nodes that these pods are on
//
//	- pods: lab/train-*
//	  allOrNothing: true                   # all have a place, or none; spares of a PodGroup may be without
//
//	- pods: shop/cache-*
//	  apart: node                          # no two on one node; or zone, or any label key
//
//	- pods: shop/web-*
//	  apart: {by: zone, most: 3}           # at most three in one zone
//
//	- pods: shop/web-*
//	  spread: {by: zone, atLeast: 3, skew: 1}     # over three zones, none with two more than another
//
//	- pods: shop/web-*
//	  together: {by: zone, with: shop/cache-*}    # each has one of the others in its zone
//
//	- pods: shop/web-*
//	  apart: {by: node, with: batch/*}     # none has one of the others on its node
//
//	- pods: shop/gpu-0
//	  refused: nvidia.com/gpu              # no place, and the explanation says so
//
//	- pods: shop/report-0
//	  refused: {stage: taint, pool: batch} # no place, for the taint of that pool
//
//	- rule: the whole plan is within its budget
//	  atMostPerHour: 12
//
// Reading is strict: unknown fields, wrong types and rules that demand nothing are errors with their line.
//
// A rule that no pending pod matches is broken, and so is one that names other pods, a pool, type, zone, capacity type or label that
// there is none of: a slip would else let a rule about what must not happen hold for ever. Rules speak of pending pods, and of running
// ones as company; not of the pods of daemon sets, which are on every node that takes them.
package ruletest
