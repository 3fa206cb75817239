// Package memory is a cloud that needs no account: memcloud in the time of the wall, whose machines join the cluster as nodes.
// kwok, or anything else that plays kubelet, keeps the nodes alive.
//
// The cloud lives in this process. When the process ends, its machines are gone, and the next operator collects their nodes.
package memory

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/instancetypes"
)

// Cloud is a cloud and its machines. Make one by [New].
type Cloud struct {
	*memcloud.Cloud

	kubelets Kubelets
}

// tick is how often the cloud's time is set and machines are looked at.
const tick = 100 * time.Millisecond

// New is a cloud that sells the types. The config's Types and Clock are set here.
func New(types []instancetypes.InstanceType, config memcloud.Config) (*Cloud, error) {
	config.Types, config.Clock = types, memcloud.NewClock(time.Now())
	cloud, err := memcloud.New(config)
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	return &Cloud{Cloud: cloud}, nil
}

// Run lets time pass and machines boot and go, until the context ends. Errors of the API server are logged, and what they
// prevented is done later.
func (c *Cloud) Run(ctx context.Context, api client.Client) error {
	clock := time.NewTicker(tick)
	defer clock.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-clock.C:
			c.Clock().Advance(time.Since(c.Clock().Now()))
			if err := c.kubelets.Join(ctx, api, c.Truth()); err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Info("machines", "error", err.Error())
			}
		}
	}
}

// Kubelets join machines to a cluster, whatever cloud they are of. The zero value knows of none; it is not safe for concurrent use.
type Kubelets struct {
	nodes map[string]string // by id of the machine: the node that it has joined as
}

// Join makes a node for every machine that has booted, and takes those away whose machine is gone, as the controller of a cloud does:
// many at a time, for machines do not wait for each other. The machines are all that there are now.
func (k *Kubelets) Join(ctx context.Context, api client.Client, machines []cloudprovider.Instance) error {
	var all errgroup.Group
	all.SetLimit(20)
	var mu sync.Mutex
	known, there := maps.Clone(k.nodes), map[string]bool{}
	note := func(err error, change func()) error {
		mu.Lock()
		defer mu.Unlock()
		if k.nodes == nil {
			k.nodes = map[string]string{}
		}
		if err == nil {
			change()
		}
		return err
	}
	for _, machine := range machines {
		there[machine.ID] = true
		if machine.State == cloudprovider.Running && known[machine.ID] == "" {
			all.Go(func() error {
				err := api.Create(ctx, kubelet(machine))
				return note(client.IgnoreAlreadyExists(err), func() { k.nodes[machine.ID] = machine.Claim })
			})
		}
	}
	for id, name := range known {
		if !there[id] {
			all.Go(func() error {
				err := api.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
				return note(client.IgnoreNotFound(err), func() { delete(k.nodes, id) })
			})
		}
	}
	return all.Wait()
}

// kubelet is the node that a machine registers: not ready, and closed to pods until its claim is found.
func kubelet(machine cloudprovider.Instance) *corev1.Node {
	labels := maps.Clone(machine.Labels)
	labels[corev1.LabelHostname] = machine.Claim
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: machine.Claim, Labels: labels, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}},
		Spec:       corev1.NodeSpec{ProviderID: machine.ID, Taints: []corev1.Taint{karpv1.UnregisteredNoExecuteTaint}},
		Status:     corev1.NodeStatus{Capacity: machine.Capacity, Allocatable: machine.Allocatable},
	}
}
