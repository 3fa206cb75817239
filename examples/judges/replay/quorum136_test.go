//go:build !kubernetes1.37

package replay_test

import (
	schedulingapi "k8s.io/api/scheduling/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	fwk "k8s.io/kube-scheduler/framework"
)

// objects are the PodGroups in an informer, as kube-scheduler 1.36 has them.
type objects struct {
	factory informers.SharedInformerFactory
}

func newObjects() objects { return objects{informers.NewSharedInformerFactory(nil, 0)} }

func (o objects) add(name string, minimum int32) error {
	group := &schedulingapi.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
	group.Spec.SchedulingPolicy.Gang = &schedulingapi.GangSchedulingPolicy{MinCount: minimum}
	return o.factory.Scheduling().V1alpha2().PodGroups().Informer().GetIndexer().Add(group)
}

func (q *quorum) SharedInformerFactory() informers.SharedInformerFactory { return q.objects.factory }
func (q *quorum) SnapshotSharedLister() fwk.SharedLister                 { return nil }
func (q *quorum) PodGroupManager() fwk.PodGroupManager                   { return manager{q} }

type manager struct{ q *quorum }

func (m manager) PodGroupStates() fwk.PodGroupStateLister { return states(m) }
