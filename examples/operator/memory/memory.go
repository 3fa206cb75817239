// Package memory is a cloud without an account: memcloud on the wall clock, whose machines join the
// cluster as nodes. kwok, or another stand-in for kubelets, keeps the nodes ready.
//
// The cloud lives in this process. When the process ends, its machines are gone, and the next
// operator collects their nodes.
package memory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/kwok"
)

// Cloud is a cloud and its machines. Make one by [New].
type Cloud struct {
	*memcloud.Cloud

	kubelets Kubelets
}

// tick is how often the cloud's time is set and machines are looked at.
const tick = 100 * time.Millisecond

// Catalogue returns the types of a file in the format of Karpenter's KWOK provider, or the embedded
// EC2 catalogue of a region if the name is empty.
func Catalogue(file, region string) ([]instancetypes.InstanceType, error) {
	if file == "" {
		return ec2.Catalogue(region)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	return kwok.Read(data)
}

// New returns a cloud that sells the types. It sets the config's Types and Clock.
func New(types []instancetypes.InstanceType, config memcloud.Config) (*Cloud, error) {
	config.Types, config.Clock = types, memcloud.NewClock(time.Now())
	cloud, err := memcloud.New(config)
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	return &Cloud{Cloud: cloud}, nil
}

// Run advances the clock and joins machines until the context ends. It logs errors of the API
// server and tries again.
func (c *Cloud) Run(ctx context.Context, api client.Client) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		c.Clock().Advance(time.Since(c.Clock().Now()))
		machines := c.Truth()
		if err := errors.Join(c.kubelets.Join(ctx, api, machines), c.kubelets.reboot(ctx, api, machines, c.Reboots)); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Info("machines", "error", err.Error())
		}
	}, tick)
	return nil
}

// Kubelets join the machines of any cloud to a cluster. The zero value has joined none. It is not
// safe for concurrent use.
type Kubelets struct {
	nodes map[string]string // name of the node by id of the machine
	boots map[string]int    // how often each was rebooted, by id of the machine
}

// Join creates a node for every machine that has booted, and deletes nodes without a machine, as a
// cloud's node controller does. Machines are all machines of the cloud. Calls run in parallel,
// because machines do not wait for each other.
func (k *Kubelets) Join(ctx context.Context, api client.Client, machines []cloudprovider.Instance) error {
	type change struct {
		machine, node string
		write         func() error
	}
	var changes []change
	there := map[string]bool{}
	for _, machine := range machines {
		there[machine.ID] = true
		if machine.State == cloudprovider.Running && k.nodes[machine.ID] == "" {
			changes = append(changes, change{machine.ID, machine.Claim, func() error { return client.IgnoreAlreadyExists(api.Create(ctx, kubelet(machine))) }})
		}
	}
	for id, name := range k.nodes {
		if !there[id] {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
			changes = append(changes, change{id, "", func() error { return client.IgnoreNotFound(api.Delete(ctx, node)) }})
		}
	}
	errs := make([]error, len(changes))
	workqueue.ParallelizeUntil(ctx, 20, len(changes), func(i int) { errs[i] = changes[i].write() })
	if k.nodes == nil {
		k.nodes = map[string]string{}
	}
	for i, c := range changes {
		if errs[i] == nil && ctx.Err() == nil { // a repeated change does no harm
			k.nodes[c.machine] = c.node
		}
	}
	maps.DeleteFunc(k.nodes, func(_, node string) bool { return node == "" })
	return errors.Join(errs...)
}

// reboot gives the nodes of machines that were rebooted another boot id. All that was wrong with
// them is gone.
func (k *Kubelets) reboot(ctx context.Context, api client.Client, machines []cloudprovider.Instance, reboots func(id string) int) error {
	if k.boots == nil {
		k.boots = map[string]int{}
	}
	var errs []error
	for _, m := range machines {
		n, name := reboots(m.ID), k.nodes[m.ID]
		if n == k.boots[m.ID] || name == "" {
			continue
		}
		var node corev1.Node
		err := api.Get(ctx, client.ObjectKey{Name: name}, &node)
		if err == nil {
			before := node.DeepCopy()
			node.Status.NodeInfo.BootID = fmt.Sprintf("%s-%d", name, n)
			node.Status.Conditions = slices.DeleteFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type != corev1.NodeReady
			})
			err = api.Status().Patch(ctx, &node, client.MergeFrom(before))
		}
		if errs = append(errs, client.IgnoreNotFound(err)); err == nil {
			k.boots[m.ID] = n
		}
	}
	return errors.Join(errs...)
}

// kubelet returns the node that a machine registers: not ready, and tainted until its claim is
// found.
func kubelet(machine cloudprovider.Instance) *corev1.Node {
	labels := maps.Clone(machine.Labels)
	labels[corev1.LabelHostname] = machine.Claim
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: machine.Claim, Labels: labels, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}},
		Spec:       corev1.NodeSpec{ProviderID: machine.ID, Taints: []corev1.Taint{karpv1.UnregisteredNoExecuteTaint}},
		Status:     corev1.NodeStatus{Capacity: machine.Capacity, Allocatable: machine.Allocatable},
	}
}
