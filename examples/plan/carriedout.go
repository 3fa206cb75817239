package plan

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
)

// CarriedOut returns the snapshot after the plan has been carried out. The nodes that it buys
// exist, and the pods that it places run, with the spec that an API server would have stored and
// with the volumes that drivers create. Refused pods are left out. A new plan of this snapshot
// starts with the free capacity that this plan leaves, on existing and on bought nodes. The
// snapshot is made once and must only be read.
func (p *Plan) CarriedOut() scheduling.Snapshot {
	if p.after != nil {
		return *p.after
	}
	bindings := p.Bindings()
	home := make(map[types.NamespacedName]string, len(bindings))
	for _, b := range bindings {
		home[nameOf(b.Pod)] = b.Node
	}
	template := map[types.NamespacedName]*corev1.Pod{}
	for _, c := range p.Problem.Classes {
		for _, pod := range c.Pods {
			template[nameOf(pod)] = c.Template
		}
	}
	s := p.Problem.Snapshot()
	s.Nodes = slices.Clone(s.Nodes)
	nodes := p.Result.NewNodes()
	for _, n := range nodes {
		s.Nodes = append(s.Nodes, n.Node())
	}
	s.Pools = unsold(s.Pools, nodes)
	refused := map[types.NamespacedName]bool{}
	for _, u := range p.Unplaced() {
		for _, pod := range u.Pods {
			refused[nameOf(pod)] = true
		}
	}
	ignored := map[types.NamespacedName]bool{}
	for _, i := range p.Problem.Ignored {
		ignored[nameOf(i.Pod)] = i.Node == "" // a nominated pod keeps the capacity reserved for it
	}
	pods := make([]*corev1.Pod, 0, len(s.Pods))
	for _, pod := range s.Pods {
		switch at, ok := home[nameOf(pod)]; {
		case ok:
			bound := *pod
			if t := template[nameOf(pod)]; t != nil { // replicas keep sharing what they share
				bound.Spec = t.Spec
				bound.Spec.Volumes = pod.Spec.Volumes
			}
			bound.Spec.NodeName, bound.DeletionTimestamp = at, nil // for a pod that is being deleted, its successor runs
			pods = append(pods, &bound)
		case !refused[nameOf(pod)] && !ignored[nameOf(pod)]:
			pods = append(pods, pod)
		}
	}
	s.Pods = pods
	bindVolumes(&s)
	p.after = &s
	return s
}

// bindVolumes creates the volumes of claims that pods in the snapshot use and that have no volume
// yet, as a driver would. A volume that only one node at a time may use is from then on in the zone
// of its pod, unless its driver shares files over the network. Classes without a driver create
// none, because it is unknown which free volume a claim would get. A claim that a StatefulSet makes
// with its pod is created first, because it outlives the pod.
func bindVolumes(s *scheduling.Snapshot) {
	claimVolumes(s)
	drivers := map[string]string{}
	for _, c := range s.StorageClasses {
		if c.Provisioner != "" && c.Provisioner != "kubernetes.io/no-provisioner" {
			drivers[c.Name] = c.Provisioner
		}
	}
	standard := ""
	for _, c := range s.StorageClasses {
		if c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" && (standard == "" || c.Name < standard) {
			standard = c.Name
		}
	}
	zones, home := map[string]string{}, map[string]string{}
	for _, n := range s.Nodes {
		zones[n.Name] = n.Labels[corev1.LabelTopologyZone]
	}
	for _, p := range s.Pods {
		for _, v := range p.Spec.Volumes {
			if zone := zones[p.Spec.NodeName]; v.PersistentVolumeClaim != nil && zone != "" {
				home[cmp.Or(p.Namespace, corev1.NamespaceDefault)+"/"+v.PersistentVolumeClaim.ClaimName] = zone
			}
		}
	}
	if len(home) == 0 {
		return
	}
	s.PersistentVolumeClaims, s.PersistentVolumes = slices.Clone(s.PersistentVolumeClaims), slices.Clone(s.PersistentVolumes)
	for i, claim := range s.PersistentVolumeClaims {
		class := standard
		if claim.Spec.StorageClassName != nil {
			class = *claim.Spec.StorageClassName
		}
		zone := home[cmp.Or(claim.Namespace, corev1.NamespaceDefault)+"/"+claim.Name]
		if zone == "" || claim.Spec.VolumeName != "" || drivers[class] == "" {
			continue
		}
		pv := volumeOf(claim, class, drivers[class], zone)
		bound := claim.DeepCopy()
		bound.Spec.VolumeName, bound.Spec.StorageClassName, bound.Status.Phase = pv.Name, &class, corev1.ClaimBound
		s.PersistentVolumeClaims[i] = bound
		s.PersistentVolumes = append(s.PersistentVolumes, pv)
	}
}

func volumeOf(claim *corev1.PersistentVolumeClaim, class, driver, zone string) *corev1.PersistentVolume {
	name := "pvc-" + cmp.Or(claim.Namespace, corev1.NamespaceDefault) + "-" + claim.Name
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes, StorageClassName: class, VolumeMode: claim.Spec.VolumeMode,
		ClaimRef:                      &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
		PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}},
	}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound}}
	if networked(driver) {
		return pv
	}
	shared := func(m corev1.PersistentVolumeAccessMode) bool {
		return m == corev1.ReadWriteMany || m == corev1.ReadOnlyMany
	}
	if !slices.ContainsFunc(claim.Spec.AccessModes, shared) {
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
		}}}}
	}
	return pv
}

// networked reports whether the driver's volumes are file systems of the network, which nodes of
// every zone mount, whatever access mode a claim asks for.
func networked(driver string) bool {
	return slices.Contains([]string{"efs.csi.aws.com", "file.csi.azure.com", "nfs.csi.k8s.io", "smb.csi.k8s.io"}, driver)
}

// claimVolumes creates the claims of StatefulSets whose pods have nodes now. Until then such a
// claim is an ephemeral volume whose template has a name, which no ephemeral volume of a pod may
// have: the API server refuses it. The claim is named "<template>-<pod>".
func claimVolumes(s *scheduling.Snapshot) {
	var claims []*corev1.PersistentVolumeClaim
	pods := s.Pods
	for i, p := range s.Pods {
		if p.Spec.NodeName == "" || !slices.ContainsFunc(p.Spec.Volumes, ofSet) {
			continue
		}
		if len(claims) == 0 {
			pods = slices.Clone(pods)
		}
		with := *p
		with.Spec.Volumes = slices.Clone(p.Spec.Volumes)
		for k, v := range p.Spec.Volumes {
			if !ofSet(v) {
				continue
			}
			t := v.Ephemeral.VolumeClaimTemplate
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: *t.ObjectMeta.DeepCopy(), Spec: *t.Spec.DeepCopy()}
			claim.Name, claim.Namespace = v.Name+"-"+p.Name, p.Namespace
			claims = append(claims, claim)
			with.Spec.Volumes[k].VolumeSource = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}}
		}
		pods[i] = &with
	}
	if len(claims) > 0 {
		s.Pods, s.PersistentVolumeClaims = pods, slices.Concat(s.PersistentVolumeClaims, claims)
	}
}

// ofSet reports whether a StatefulSet makes the claim of the volume.
func ofSet(v corev1.Volume) bool {
	return v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil && v.Ephemeral.VolumeClaimTemplate.Name != ""
}

// Unsold returns the pools with what can still be bought beside the node: if its offering is
// counted, there is one less.
func (n *NewNode) Unsold(pools []scheduling.Pool) []scheduling.Pool {
	return unsold(pools, []scheduling.NewNode{n.NewNode})
}

// unsold returns the pools with counted machines, and committed money, reduced by what the nodes
// have taken. Offerings of one reservation or commitment share their count.
func unsold(pools []scheduling.Pool, nodes []scheduling.NewNode) []scheduling.Pool {
	taken, spent := map[string]int{}, map[string]float64{} // spent is in dollars an hour
	for i := range nodes {
		if n := &nodes[i]; n.Offering.ReservationCount > 0 {
			name := stock(n.Pool.Name, n.InstanceType.Name, &n.Offering)
			taken[name], spent[name] = taken[name]+1, spent[name]+n.Offering.CommitmentRate
		}
	}
	if len(taken) == 0 {
		return pools
	}
	pools = slices.Clone(pools)
	for k := range pools {
		kept := slices.Clone(pools[k].Types)
		for i := range kept {
			kept[i].Offerings = slices.Clone(kept[i].Offerings)
			for j := range kept[i].Offerings {
				o := &kept[i].Offerings[j]
				name := stock(pools[k].Name, kept[i].Name, o)
				gone := taken[name]
				switch {
				case o.ReservationCount == 0 || gone == 0:
				case o.CommittedPerHour > 0:
					left := o.CommittedPerHour - spent[name] + 1e-9 // sums may differ in their last digits
					o.Available = o.Available && left >= o.CommitmentRate
					o.CommittedPerHour = max(left, o.CommitmentRate) // it covers a node, or is no amount of money
					o.ReservationCount = max(1, min(o.ReservationCount, int(left/o.CommitmentRate)))
				default:
					o.Available = o.Available && o.ReservationCount > gone // a count of 0 would mean any number
					o.ReservationCount = max(1, o.ReservationCount-gone)
				}
			}
		}
		pools[k].Types = kept
	}
	return pools
}

// stock returns the name of what the count of an offering refers to.
func stock(pool, typ string, o *instancetypes.Offering) string {
	if id, ok := o.Requirements.Get(instancetypes.LabelReservationID).Single(); ok {
		return "reservation " + id
	}
	if o.Commitment != "" {
		return "commitment " + o.Commitment
	}
	return pool + " " + typ + " " + o.Requirements.String()
}
