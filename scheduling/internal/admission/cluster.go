package admission

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
)

// Cluster holds the objects that admission consults. The zero value has none. It is immutable and
// safe for concurrent use.
type Cluster struct {
	priorities     map[string]*schedulingv1.PriorityClass
	globalPriority *schedulingv1.PriorityClass
	runtimes       map[string]*nodev1.RuntimeClass
	limits         map[string][]limitItem // by namespace, items of types Container and Pod
}

// NewCluster indexes the given objects by name; it keeps pointers to them. If several priority
// classes claim to be the global default, the one with the lowest value is used, as in the API
// server.
func NewCluster(priorities []*schedulingv1.PriorityClass, runtimes []*nodev1.RuntimeClass, limits []*corev1.LimitRange) Cluster {
	c := Cluster{
		priorities: make(map[string]*schedulingv1.PriorityClass, len(priorities)),
		runtimes:   make(map[string]*nodev1.RuntimeClass, len(runtimes)),
		limits:     map[string][]limitItem{},
	}
	for _, p := range priorities {
		c.priorities[p.Name] = p
		if p.GlobalDefault && (c.globalPriority == nil || p.Value < c.globalPriority.Value) {
			c.globalPriority = p
		}
	}
	for _, r := range runtimes {
		c.runtimes[r.Name] = r
	}
	sorted := slices.Clone(limits)
	slices.SortStableFunc(sorted, func(a, b *corev1.LimitRange) int { return strings.Compare(a.Name, b.Name) })
	for _, l := range sorted {
		for _, item := range l.Spec.Limits {
			in := cmp.Or(l.Namespace, corev1.NamespaceDefault)
			switch item.Type {
			case corev1.LimitTypeContainer:
				c.limits[in] = append(c.limits[in], limitItem{withItemDefaults(item), in + "/" + l.Name})
			case corev1.LimitTypePod:
				c.limits[in] = append(c.limits[in], limitItem{item, in + "/" + l.Name})
			case corev1.LimitTypePersistentVolumeClaim: // affects claims, not pods
			}
		}
	}
	return c
}

// withItemDefaults fills a LimitRange item as the API server does when it stores it: default limits
// from the maximum, default requests from the default limits, then from the minimum.
func withItemDefaults(item corev1.LimitRangeItem) corev1.LimitRangeItem {
	item.Default = merged(item.Default, item.Max)
	item.DefaultRequest = merged(merged(item.DefaultRequest, item.Default), item.Min)
	return item
}

// merged returns a, extended by what only b has. It is a new list if anything is added.
func merged(a, b corev1.ResourceList) corev1.ResourceList {
	var out corev1.ResourceList
	for name, q := range b {
		if _, ok := a[name]; ok {
			continue
		}
		if out == nil {
			out = make(corev1.ResourceList, len(a)+len(b))
			maps.Copy(out, a)
		}
		out[name] = q
	}
	if out == nil {
		return a
	}
	return out
}

// systemPriorities are the priorities of the two classes that every cluster has.
var systemPriorities = map[string]int32{"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
