package podclass

import (
	"encoding/binary"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/scheduling/internal/nodefeature"
)

// RatioAnnotation divides pods over the values of a node label by fixed shares; see
// scheduling.Snapshot.
const RatioAnnotation = "joinery-sdk.dev/ratio"

// fingerprint encodes everything about a pod that affects placement. Pods with equal fingerprints
// are in one class.
type fingerprint struct {
	buf    []byte
	labels labelUse
	exact  bool     // whether quantities are exact, or rounded as one pod's requests are
	keys   []string // reused
}

func (f *fingerprint) of(p *corev1.Pod) []byte {
	f.buf = f.buf[:0]
	f.text(Namespace(p))
	f.selected(p.Labels)
	f.text(p.Annotations[RatioAnnotation])
	switch p.UID {
	case "":
	case MadeAnew:
		f.text("anew")
	default: // an API server has stored it, and admits it no more
		f.text("stored")
	}
	s := &p.Spec
	f.resources(s)
	f.ports(s.Containers)
	f.ports(s.InitContainers)
	f.number(int64(len(s.Tolerations)))
	for i := range s.Tolerations {
		t := &s.Tolerations[i]
		f.text(t.Key)
		f.text(string(t.Operator))
		f.text(t.Value)
		f.text(string(t.Effect))
	}
	others := corev1.PodSpec{
		NodeSelector: s.NodeSelector, Affinity: s.Affinity, TopologySpreadConstraints: s.TopologySpreadConstraints,
		Priority: s.Priority, PriorityClassName: s.PriorityClassName, RuntimeClassName: s.RuntimeClassName, HostNetwork: s.HostNetwork,
	}
	for _, name := range nodefeature.Needed(s) {
		f.text(name)
	}
	for i := range s.Volumes {
		v := &s.Volumes[i]
		if v.Ephemeral != nil {
			f.text(p.Name) // its claim is named after the pod
		}
		if bears(v) {
			others.Volumes = append(others.Volumes, corev1.Volume{VolumeSource: v.VolumeSource})
		}
	}
	f.proto(&others)
	return f.buf
}

// bears reports whether a volume affects placement. Claims do, and disks that the pod names itself.
func bears(v *corev1.Volume) bool {
	return v.Ephemeral != nil || v.PersistentVolumeClaim != nil || v.AWSElasticBlockStore != nil || v.GCEPersistentDisk != nil || v.ISCSI != nil || v.RBD != nil ||
		v.AzureDisk != nil || v.Cinder != nil || v.PortworxVolume != nil
}

func (f *fingerprint) text(s string) {
	f.buf = binary.AppendUvarint(f.buf, uint64(len(s)))
	f.buf = append(f.buf, s...)
}

func (f *fingerprint) number(n int64) { f.buf = binary.AppendVarint(f.buf, n) }

// resources appends what the containers and the pod itself ask for.
func (f *fingerprint) resources(s *corev1.PodSpec) {
	for _, cs := range [][]corev1.Container{s.Containers, s.InitContainers} {
		f.number(int64(len(cs)))
		for i := range cs {
			f.list(cs[i].Resources.Requests)
			f.list(cs[i].Resources.Limits)
			if policy := cs[i].RestartPolicy; policy != nil {
				f.text(string(*policy))
			}
			f.text("|")
		}
	}
	f.list(s.Overhead)
	if s.Resources != nil {
		f.list(s.Resources.Requests)
		f.list(s.Resources.Limits)
	}
}

func (f *fingerprint) list(l corev1.ResourceList) {
	var few [8]corev1.ResourceName
	names := few[:0]
	for name := range l {
		names = append(names, name)
	}
	slices.Sort(names)
	f.number(int64(len(l)))
	for _, name := range names {
		f.text(string(name))
		q := l[name]
		if !f.exact {
			f.number(resources.Request(name, q))
			continue
		}
		var digits [24]byte
		number, suffix := q.CanonicalizeBytes(digits[:0])
		f.text(string(q.Format))
		f.buf = append(append(append(f.buf, number...), suffix...), 0)
	}
}

func (f *fingerprint) ports(cs []corev1.Container) {
	for i := range cs {
		for _, p := range cs[i].Ports {
			if p.HostPort != 0 || p.ContainerPort != 0 {
				f.number(int64(p.HostPort))
				f.number(int64(p.ContainerPort))
				f.text(p.HostIP)
				f.text(string(p.Protocol))
			}
		}
		f.text("|")
	}
}

func (f *fingerprint) selected(m map[string]string) {
	f.keys = f.keys[:0]
	for k := range m {
		if f.labels[k] {
			f.keys = append(f.keys, k)
		}
	}
	slices.Sort(f.keys)
	for _, k := range f.keys {
		f.text(k)
		f.text(m[k])
	}
}

// proto appends the fields that are set, in the order of their numbers, and maps in the order of
// their keys.
func (f *fingerprint) proto(s *corev1.PodSpec) {
	from, size := len(f.buf), s.Size()
	f.buf = slices.Grow(f.buf, size)[:from+size]
	if _, err := s.MarshalToSizedBuffer(f.buf[from:]); err != nil { // specs always marshal
		panic(err)
	}
}
