package volume

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/requirements/kube"
)

// migration is what a CSI driver has taken over from Kubernetes.
type migration struct {
	plugin string // as CSINodes name it
	driver string
	zone   string // the key under which the driver gives a node its zone
}

// migrations are those that translate the zones of volumes. Azure's and Portworx' do not.
func migrations() []migration {
	return []migration{
		{"kubernetes.io/aws-ebs", ebsDriver, "topology.ebs.csi.aws.com/zone"},
		{"kubernetes.io/gce-pd", gceDriver, "topology.gke.io/zone"},
		{"kubernetes.io/cinder", cinderDriver, "topology.cinder.csi.openstack.org/zone"},
	}
}

// migrated are the nodes that leave in-tree volumes to a driver, sorted: those where it runs, and
// those where it does not.
type migrated struct{ running, lacking []string }

// migratedBy returns them by driver.
func migratedBy(nodes []*storagev1.CSINode) map[string]migrated {
	out := map[string]migrated{}
	for _, n := range nodes {
		plugins := strings.Split(n.Annotations[corev1.MigratedPluginsAnnotationKey], ",")
		for _, m := range migrations() {
			if !slices.Contains(plugins, m.plugin) {
				continue
			}
			by := out[m.driver]
			if runs(n, m.driver) {
				by.running = append(by.running, n.Name)
			} else {
				by.lacking = append(by.lacking, n.Name)
			}
			out[m.driver] = by
		}
	}
	for _, by := range out {
		slices.Sort(by.running)
		slices.Sort(by.lacking)
	}
	return out
}

// reachOf returns where a claim's volume can be used, as far as its node affinity decides. On a
// node that leaves an in-tree volume to a CSI driver, kube-scheduler asks for the zone under the
// driver's key instead of Kubernetes'. Where the driver runs, a node with a zone has both keys.
func (x *Index) reachOf(pv *corev1.PersistentVolume) (requirements.Alternatives, error) {
	where, err := reach(pv)
	driver := x.driver(pv, nil)
	at := slices.IndexFunc(migrations(), func(m migration) bool { return m.driver == driver })
	if err != nil || pv.Spec.CSI != nil || at < 0 {
		return where, err
	}
	selector := translated(pv, migrations()[at].zone)
	if selector == nil { // it names no zone
		return where, nil
	}
	nodes := x.migrated[driver]
	if len(nodes.running) > 0 {
		where = where.Intersect(requirements.AnyOf(
			requirements.MustOf(requirements.NotIn(requirements.NodeNameKey, nodes.running...)),
			requirements.MustOf(requirements.Exists(corev1.LabelTopologyZone))))
	}
	if len(nodes.lacking) == 0 {
		return where, nil
	}
	there, err := kube.FromNodeSelector(selector)
	if err != nil {
		return where, err
	}
	elsewhere := requirements.AnyOf(requirements.MustOf(requirements.NotIn(requirements.NodeNameKey, nodes.lacking...)))
	return requirements.AnyOf(slices.Concat(slices.Collect(where.Intersect(elsewhere).All()), slices.Collect(there.All()))...), nil
}

// translated returns the node affinity of an in-tree volume with its zones under the driver's key;
// nil if neither the affinity nor the volume's labels name a zone. The affinity comes before the
// labels, and keys in use before the deprecated ones.
func translated(pv *corev1.PersistentVolume, driverKey string) *corev1.NodeSelector {
	out := &corev1.NodeSelector{NodeSelectorTerms: make([]corev1.NodeSelectorTerm, 1)}
	if a := pv.Spec.NodeAffinity; a != nil && a.Required != nil && len(a.Required.NodeSelectorTerms) > 0 {
		out = a.Required.DeepCopy()
	}
	for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone} {
		if rename(out, key, driverKey) {
			if key == corev1.LabelFailureDomainBetaZone {
				rename(out, corev1.LabelFailureDomainBetaRegion, corev1.LabelTopologyRegion)
			}
			return out
		}
	}
	zones := cmp.Or(pv.Labels[corev1.LabelTopologyZone], pv.Labels[corev1.LabelFailureDomainBetaZone])
	if zones == "" {
		return nil
	}
	for i := range out.NodeSelectorTerms {
		terms := &out.NodeSelectorTerms[i].MatchExpressions
		*terms = append(*terms, corev1.NodeSelectorRequirement{Key: driverKey, Operator: corev1.NodeSelectorOpIn, Values: strings.Split(zones, "__")})
	}
	return out
}

// rename gives expressions another key and reports whether there are any.
func rename(s *corev1.NodeSelector, from, to string) bool {
	found := false
	for i := range s.NodeSelectorTerms {
		for k := range s.NodeSelectorTerms[i].MatchExpressions {
			if e := &s.NodeSelectorTerms[i].MatchExpressions[k]; e.Key == from {
				e.Key, found = to, true
			}
		}
	}
	return found
}
