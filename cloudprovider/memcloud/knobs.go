package memcloud

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/interruption"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
)

// SetCapacity sets the number of free machines of an offering, whatever it was before; a negative
// number means no limit. The error says that the catalogue has no such offering.
func (c *Cloud) SetCapacity(typeName string, offering requirements.Set, free int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, _, err := find(c.types, typeName, offering); err != nil {
		return fmt.Errorf("memcloud: capacity: %w", err)
	}
	if free < 0 {
		delete(c.pools, poolKey(typeName, offering))
		return nil
	}
	c.pools[poolKey(typeName, offering)] = free
	return nil
}

// SetQuota adds a quota, or replaces the one with the same name. Running machines count at once,
// and keep running even beyond the limit.
func (c *Cloud) SetQuota(quota Quota) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.happen(c.clock.Now())
	i := slices.IndexFunc(c.quotas, func(q Quota) bool { return q.Name == quota.Name })
	if i < 0 {
		i = len(c.quotas)
		c.quotas, c.used = append(c.quotas, quota), append(c.used, 0)
	}
	c.quotas[i], c.used[i] = quota, 0
	for _, m := range c.machines {
		if !m.gone {
			c.used[i] += quota.weight(m.instance.Labels, m.instance.Capacity)
		}
	}
}

// SetImage changes the image of new machines. Machines that booted another one have drifted.
func (c *Cloud) SetImage(image string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.image = image
}

// Reprice applies layers of prices to the current catalogue. Each offering must stay one offering.
// If layers quote more than one price for an offering, the caller should apply them to the answer
// of InstanceTypes instead.
func (c *Cloud) Reprice(layers ...instancetypes.PriceSource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.types = instancetypes.Clone(instancetypes.Reprice(c.types, layers...))
}

// Interrupt announces that the cloud takes a machine back after the notice, and does so then. A
// negative notice counts as 0. If no caller needs to act on the kind, it only announces. The error
// is cloudprovider.ErrNotFound if the machine does not exist.
func (c *Cloud) Interrupt(id string, kind interruption.Kind, notice time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	c.happen(now)
	m, ok := c.machines[id]
	if !ok || m.gone {
		return &cloudprovider.Error{Code: cloudprovider.ErrNotFound, Op: "interrupt", Subject: id}
	}
	c.announce(m, kind, now, now.Add(max(notice, 0)))
	c.expect(m)
	c.happen(now)
	return nil
}

// Interruptions returns all events that are not confirmed. The cursor is the number of all events
// until now.
func (c *Cloud) Interruptions(ctx context.Context, cursor string) ([]interruption.Event, string, error) {
	if _, err := c.begin(ctx, "interruptions", cursor); err != nil {
		return nil, "", err
	}
	defer c.mu.Unlock()
	if cursor != "" {
		n, err := strconv.Atoi(cursor)
		if err != nil || n < 0 || n > len(c.events) {
			return nil, "", &cloudprovider.Error{Code: cloudprovider.ErrInvalidSpec, Op: "interruptions", Subject: cursor, Err: fmt.Errorf("not a cursor of this cloud")}
		}
		c.confirmed = max(c.confirmed, n)
	}
	return slices.Clone(c.events[c.confirmed:]), strconv.Itoa(len(c.events)), nil
}

// Reboot counts reboots. It counts each operation of a machine only once.
func (c *Cloud) Reboot(ctx context.Context, id, operation string) error {
	if _, err := c.begin(ctx, "reboot", id); err != nil {
		return err
	}
	defer c.mu.Unlock()
	m, ok := c.machines[id]
	if !ok || m.gone || m.leaving {
		return &cloudprovider.Error{Code: cloudprovider.ErrNotFound, Op: "reboot", Subject: id}
	}
	if !slices.Contains(m.reboots, operation) {
		m.reboots = append(m.reboots, operation)
	}
	return nil
}

// Reboots returns how often a machine was rebooted.
func (c *Cloud) Reboots(id string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m, ok := c.machines[id]; ok {
		return len(m.reboots)
	}
	return 0
}

// RepairPolicies replace nodes that have not been ready, or not been heard of, for half an hour.
func (c *Cloud) RepairPolicies() []cloudprovider.RepairPolicy {
	return []cloudprovider.RepairPolicy{
		{Condition: corev1.NodeReady, Status: corev1.ConditionFalse, Toleration: 30 * time.Minute},
		{Condition: corev1.NodeReady, Status: corev1.ConditionUnknown, Toleration: 30 * time.Minute},
	}
}
