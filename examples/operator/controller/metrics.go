package controller

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// The metrics. Those with the meaning of one of Karpenter's bear its name, so that dashboards keep
// working.
var (
	registered            = promauto.With(metrics.Registry)
	claimsCreated         = counter("karpenter_nodeclaims_created_total", "NodeClaims launched.", "nodepool")
	claimsTerminated      = counter("karpenter_nodeclaims_terminated_total", "NodeClaims whose machines are gone.", "nodepool")
	disruptions           = counter("karpenter_voluntary_disruption_decisions_total", "Commands that were started.", "reason", "decision")
	interruptions         = counter("karpenter_interruption_received_messages_total", "What the cloud said about machines.", "message_type")
	launchesRefused       = counter("joinery_launches_refused_total", "NodeClaims that the cloud refused.", "nodepool")
	evictions             = registered.NewCounter(prometheus.CounterOpts{Name: "joinery_evictions_total", Help: "Evictions that were granted."})
	podsUnplaced          = gauge("joinery_pods_unplaced", "Pods that the last plan had no place for.")
	clusterCost           = gauge("joinery_cluster_cost_dollars_per_hour", "Price of all nodes whose price is known.")
	planGap               = gauge("joinery_plan_gap_ratio", "How far the last plan is above its proven bound, as a share of the bound.")
	rebootsTotal          = counter("karpenter_nodes_reboots_total", "Reboots that ended.", "result")
	rebootSeconds         = registered.NewHistogramVec(prometheus.HistogramOpts{Name: "karpenter_nodes_reboot_duration_seconds", Help: "Time from the request of a reboot to its end.", Buckets: rebootBuckets}, []string{"result"})
	rebootRecoverySeconds = registered.NewHistogram(prometheus.HistogramOpts{Name: "karpenter_nodes_reboot_recovery_duration_seconds", Help: "Time from a reboot until the node was ready again.", Buckets: rebootBuckets})
	poolUsage             = registered.NewGaugeVec(prometheus.GaugeOpts{Name: "karpenter_nodepools_usage", Help: "Resources of the nodes of a pool."}, []string{"nodepool", "resource_type"})
	poolLimit             = registered.NewGaugeVec(prometheus.GaugeOpts{Name: "karpenter_nodepools_limit", Help: "Limit of the resources of the nodes of a pool."}, []string{"nodepool", "resource_type"})
	planSeconds           = histogram("joinery_plan_duration_seconds", "Time of a plan, reading the cluster left out.", "plan")
	nodeReadySeconds      = histogram("joinery_node_ready_seconds", "Time from a NodeClaim to its node's initialization.", "nodepool")
	podStartSeconds       = histogram("karpenter_pods_startup_duration_seconds", "Time from a pod's creation until it runs.", "nodepool")
)

var rebootBuckets = prometheus.ExponentialBuckets(10, 2, 8)

// measure sets usage and limits of the pools, and drops those of deleted pools.
func measure(pools map[string]knownPool) {
	poolUsage.Reset()
	poolLimit.Reset()
	for name, p := range pools {
		for what, list := range map[*prometheus.GaugeVec]corev1.ResourceList{poolUsage: p.Status.Resources, poolLimit: corev1.ResourceList(p.Spec.Limits)} {
			for resource, q := range list {
				what.WithLabelValues(name, strings.ReplaceAll(string(resource), "-", "_")).Set(q.AsApproximateFloat64())
			}
		}
	}
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return registered.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func gauge(name, help string) prometheus.Gauge {
	return registered.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

func histogram(name, help, label string) *prometheus.HistogramVec {
	return registered.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(0.01, 2, 16)}, []string{label})
}
