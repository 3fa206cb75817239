package provisioning_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/plan/capacity"
	"github.com/joinery-sdk/joinery/examples/plan/capacity/provisioning"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

func now() time.Time { return time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC) }

// request asks for pods of the template worker.
func request(class provisioning.Class, count int32, parameters map[string]string) *provisioning.Request {
	return &provisioning.Request{
		TypeMeta:   metav1.TypeMeta{APIVersion: "autoscaling.x-k8s.io/v1", Kind: "ProvisioningRequest"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "train"},
		Spec: provisioning.Spec{
			ProvisioningClassName: class, Parameters: parameters,
			PodSets: []provisioning.PodSet{{PodTemplateRef: provisioning.TemplateRef{Name: "worker"}, Count: count}},
		},
	}
}

// templates are workers of two CPUs.
func templates() []*corev1.PodTemplate {
	t := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "worker"}}
	t.Template.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("2")}}}}
	return []*corev1.PodTemplate{t}
}

// state is one node for two workers, and a pool that may buy two more for a dollar each.
func state(ctx context.Context) *capacity.State {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "first", Labels: map[string]string{corev1.LabelHostname: "first"}}}
	node.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("20")}
	s, err := capacity.New(ctx, scheduling.Snapshot{Nodes: []*corev1.Node{node}, Pools: []scheduling.Pool{{
		NodePool: nodepool.NodePool{Name: "pool", Limits: corev1.ResourceList{"cpu": resource.MustParse("8")}},
		Types: []instancetypes.InstanceType{{
			Name: "four", Requirements: requirements.MustParse("node.kubernetes.io/instance-type=four"), Capacity: node.Status.Allocatable,
			Offerings: []instancetypes.Offering{{Price: 1, Available: true, Requirements: requirements.MustParse("topology.kubernetes.io/zone=z, karpenter.sh/capacity-type=on-demand")}},
		}},
	}}}, nil)
	if err != nil {
		panic(err)
	}
	return s
}

func TestConditions(t *testing.T) {
	once := map[string]string{"noRetry": "true"}
	for name, c := range map[string]struct {
		class      provisioning.Class
		count      int32
		parameters map[string]string
		want       string
		check      provisioning.CheckState
		says       string
	}{
		"there":                      {provisioning.CheckCapacity, 2, nil, "Provisioned=True CapacityIsFound", provisioning.Ready, "pods that fit on existing nodes: 2"},
		"not there":                  {provisioning.CheckCapacity, 4, nil, "Provisioned=False CapacityIsNotFound", provisioning.Pending, "nodes to buy: 1, for $1.0000 an hour"},
		"not there, asked once":      {provisioning.CheckCapacity, 4, once, "Failed=True CapacityIsNotFound", provisioning.Retry, "nodes to buy: 1,"},
		"never there":                {provisioning.CheckCapacity, 7, nil, "Provisioned=False CapacityIsNotFound", provisioning.Retry, "would fit if"},
		"atomic, there":              {provisioning.AtomicScaleUp, 1, nil, "Accepted=True Accepted, Provisioned=True CapacityIsFound", provisioning.Ready, "pods that fit on existing nodes: 1"},
		"atomic, to buy":             {provisioning.AtomicScaleUp, 6, nil, "Accepted=True Accepted, Provisioned=False CapacityIsNeeded", provisioning.Pending, "nodes to buy: 2, for $2.0000 an hour; no plan for these pods costs less than $2.0000"},
		"atomic, never":              {provisioning.AtomicScaleUp, 7, nil, "Accepted=True Accepted, Provisioned=False CapacityIsNotFound", provisioning.Retry, "1 of 7 pods have no place"},
		"atomic, never, asked once":  {provisioning.AtomicScaleUp, 7, once, "Accepted=True Accepted, Failed=True CapacityIsNotFound", provisioning.Retry, "limit"},
		"atomic, to buy, asked once": {provisioning.AtomicScaleUp, 5, once, "Accepted=True Accepted, Provisioned=False CapacityIsNeeded", provisioning.Pending, "nodes to buy: 2,"},
	} {
		d, err := provisioning.Decide(t.Context(), state(t.Context()), request(c.class, c.count, c.parameters), templates(), now())
		require.NoError(t, err, name)
		var got []string
		for _, x := range d.Conditions {
			got = append(got, fmt.Sprintf("%s=%s %s", x.Type, x.Status, x.Reason))
			assert.Equal(t, d.Message, x.Message, name)
			assert.Equal(t, now(), x.LastTransitionTime.Time, name)
		}
		assert.Equal(t, c.want, strings.Join(got, ", "), name)
		assert.Equal(t, c.check, d.Check(), name)
		assert.Contains(t, d.Message, c.says, name)
	}
}

// What one request books is not there for the next one.
func TestBooking(t *testing.T) {
	s := state(t.Context())
	first, err := provisioning.Decide(t.Context(), s, request(provisioning.AtomicScaleUp, 4, nil), templates(), now())
	require.NoError(t, err)
	s, err = first.Answer.Commit()
	require.NoError(t, err)
	second := request(provisioning.AtomicScaleUp, 4, nil)
	second.Name = "next"
	d, err := provisioning.Decide(t.Context(), s, second, templates(), now())
	require.NoError(t, err)
	assert.Equal(t, capacity.Impossible, d.Answer.Kind)
	second.Spec.PodSets[0].Count = 2
	d, err = provisioning.Decide(t.Context(), s, second, templates(), now())
	require.NoError(t, err)
	assert.Equal(t, capacity.Buy, d.Answer.Kind)
}

// A request that means nothing is an error that names the field.
func TestMalformed(t *testing.T) {
	for text, want := range map[string]string{
		`{`:                           "unexpected end",
		`{"kind":"Pod"}`:              "want a ProvisioningRequest",
		`{"kind":"Pod","spec":{}}`:    "spec.podSets",
		`{"metadata":{"name":"A_B"}}`: `request default/A_B: metadata.name "A_B"`,
		`{"metadata":{"name":"a","namespace":"X Y"}}`: `metadata.namespace "X Y"`,
		`{"apiVersion":"autoscaling.x-k8s.io/v1","kind":"ProvisioningRequest","metadata":{"name":"r"},"spec":{"provisioningClassName":"other","podSets":[{"count":0}]}}`:                                                           `spec.provisioningClassName "other"`,
		`{"apiVersion":"autoscaling.x-k8s.io/v1","kind":"ProvisioningRequest","metadata":{"name":"r"},"spec":{"podSets":[{"count":-3}]}}`:                                                                                          "spec.podSets[0].count -3",
		`{"apiVersion":"autoscaling.x-k8s.io/v1","kind":"ProvisioningRequest","metadata":{"name":"r"},"spec":{"podSets":[{"count":2000000000}]}}`:                                                                                  "100000 at most",
		`{"apiVersion":"autoscaling.x-k8s.io/v1","kind":"ProvisioningRequest","metadata":{"name":"r"},"spec":{"provisioningClassName":"check-capacity.autoscaling.x-k8s.io","podSets":[{"count":1}],"parameters":{"noRetry":""}}}`: "spec.parameters.noRetry",
	} {
		_, err := provisioning.Decode([]byte(text))
		assert.ErrorContains(t, err, want, text)
	}
	_, err := provisioning.Decide(t.Context(), state(t.Context()), request(provisioning.CheckCapacity, 1, nil), nil, now())
	assert.ErrorContains(t, err, `no PodTemplate "worker"`)
}

func ExampleDecide() {
	r, err := provisioning.Decode([]byte(`{
		"apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest", "metadata": {"namespace": "lab", "name": "train"},
		"spec": {"provisioningClassName": "best-effort-atomic-scale-up.autoscaling.x-k8s.io", "podSets": [{"podTemplateRef": {"name": "worker"}, "count": 5}]}
	}`))
	if err != nil {
		panic(err)
	}
	d, err := provisioning.Decide(context.Background(), state(context.Background()), r, templates(), now())
	if err != nil {
		panic(err)
	}
	for _, c := range d.Conditions {
		fmt.Println(c.Type, c.Status, c.Reason)
	}
	fmt.Println(d.Check(), "-", d.Message)
	// Output:
	// Accepted True Accepted
	// Provisioned False CapacityIsNeeded
	// Pending - pods: 5, nodes to buy: 2, for $2.0000 an hour; no plan for these pods costs less than $2.0000
}

func ExampleRequest_Pods() {
	r := provisioning.Request{
		TypeMeta:   metav1.TypeMeta{APIVersion: "autoscaling.x-k8s.io/v1", Kind: "ProvisioningRequest"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "train"},
		Spec: provisioning.Spec{
			ProvisioningClassName: provisioning.Class("check-capacity.autoscaling.x-k8s.io"),
			PodSets:               []provisioning.PodSet{{PodTemplateRef: provisioning.TemplateRef{Name: "worker"}, Count: 2}},
		},
	}
	pods, err := r.Pods(templates())
	fmt.Println(pods[0].Name, pods[1].Name, err)
	// Output: train-0-0 train-0-1 <nil>
}

func ExampleDecision_Check() {
	d, err := provisioning.Decide(context.Background(), state(context.Background()), request(provisioning.CheckCapacity, 2, nil), templates(), now())
	if err != nil {
		panic(err)
	}
	admission := d.Check()
	fmt.Println(admission == provisioning.CheckState("Ready"))
	// Output: true
}
