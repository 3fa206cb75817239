package scheduling

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/requirements/kube"
	"github.com/joinery-sdk/joinery/scheduling/internal/hostport"
	"github.com/joinery-sdk/joinery/scheduling/internal/taints"
	"github.com/joinery-sdk/joinery/scheduling/podclass"
)

// daemon is a DaemonSet and the pod that it runs.
type daemon struct {
	namespace, name string
	uid             string
	pod             *corev1.Pod
	requests        corev1.ResourceList
	vector          []int64 // the same by Problem.Resources
	required        requirements.Alternatives
	ports           []hostport.Port
}

func (p *Problem) compileDaemons(aliases requirements.Aliases) error {
	for _, ds := range p.snapshot.DaemonSets {
		if ds.DeletionTimestamp != nil {
			continue
		}
		pod := p.snapshot.Admission.DaemonPod(ds)
		asked, err := kube.FromPod(&pod.Spec)
		if err != nil {
			return fmt.Errorf("scheduling: DaemonSet %s/%s: %w", ds.Namespace, ds.Name, err)
		}
		p.daemons = append(p.daemons, &daemon{
			namespace: ds.Namespace, name: ds.Name, uid: string(ds.UID), pod: pod,
			requests: podclass.Requests(pod, false), required: aliases.Alternatives(asked.Required), ports: hostport.Of(pod),
		})
	}
	slices.SortStableFunc(p.daemons, func(a, b *daemon) int { return podclass.Compare(a.pod, b.pod) })
	return nil
}

// tolerates reports whether the daemon runs on nodes with these taints; soft ones keep no daemon away.
func (d *daemon) tolerates(list []corev1.Taint) bool {
	_, found := taints.Untolerated(list, d.pod.Spec.Tolerations, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute)
	return !found
}

// owns reports whether the running pod is one of the daemon's.
func (d *daemon) owns(pod *corev1.Pod) bool {
	if pod.Namespace != d.namespace {
		return false
	}
	for _, o := range pod.OwnerReferences {
		if o.Kind == "DaemonSet" && (d.uid != "" && string(o.UID) == d.uid || o.Name == d.name) {
			return true
		}
	}
	return false
}

// vector is a resource list by Problem.Resources, rounded up.
func (p *Problem) vector(list corev1.ResourceList) []int64 {
	out := make([]int64, len(p.Resources))
	p.count(list, out)
	return out
}

// count is vector into a slice of zeros.
func (p *Problem) count(list corev1.ResourceList, out []int64) {
	for i, name := range p.Resources {
		if q, ok := list[name]; ok {
			out[i] = resources.Request(name, q)
		}
	}
}

// subtract takes b from a, saturating at both ends.
func subtract(a, b []int64) {
	for i := range a {
		d := a[i] - b[i]
		switch {
		case b[i] > 0 && d > a[i]:
			d = -1 << 63
		case b[i] < 0 && d < a[i]:
			d = 1<<63 - 1
		}
		a[i] = d
	}
}
