//go:build kubernetes1.37

package replay_test

import (
	"fmt"

	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// objects are the PodGroups of the scheduler's cache, as kube-scheduler 1.37 has them.
type objects map[string]*schedulingapi.PodGroup

func newObjects() objects { return objects{} }

func (o objects) add(name string, minimum int32) error {
	group := &schedulingapi.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
	group.Spec.SchedulingPolicy.Gang = &schedulingapi.GangSchedulingPolicy{MinCount: minimum}
	o[name] = group
	return nil
}

// Get returns a group.
func (o objects) Get(_, name string) (*schedulingapi.PodGroup, error) {
	if group, ok := o[name]; ok {
		return group, nil
	}
	return nil, fmt.Errorf("no pod group %s", name)
}

func (q *quorum) SnapshotSharedLister() fwk.SharedLister { return lister{q: q} }
func (q *quorum) PodGroupManager() fwk.PodGroupManager   { return manager{q: q} }

type lister struct {
	fwk.SharedLister
	q *quorum
}

func (l lister) PodGroups() fwk.PodGroupLister { return l.q.objects }

type manager struct {
	fwk.PodGroupManager
	q *quorum
}

func (m manager) PodGroupStates() fwk.PodGroupStateLister { return states{m.q} }
func (m manager) PodGroups() fwk.PodGroupLister           { return m.q.objects }
