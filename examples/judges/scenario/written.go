package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/features"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/requirements"
)

const (
	selectedNode  = "volume.kubernetes.io/selected-node"
	labelDisk     = "disk"
	attributes    = "gold" // a VolumeAttributesClass
	defaultClass  = "storageclass.kubernetes.io/is-default-class"
	migrated      = "storage.alpha.kubernetes.io/migrated-plugins"
	inTreePlugins = "kubernetes.io/aws-ebs,kubernetes.io/azure-disk,kubernetes.io/gce-pd"
)

// migratedPlugins are the CSI drivers of disks that were once in Kubernetes itself.
func migratedPlugins() []string {
	return []string{"ebs.csi.aws.com", "pd.csi.storage.gke.io", "disk.csi.azure.com"}
}

// inTree turns a volume into a disk of the time before its CSI driver.
func inTree(v *corev1.PersistentVolumeSpec, driver string) {
	name := v.CSI.VolumeHandle
	v.CSI = nil
	switch driver {
	case migratedPlugins()[0]:
		v.AWSElasticBlockStore = &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: name}
	case migratedPlugins()[1]:
		v.GCEPersistentDisk = &corev1.GCEPersistentDiskVolumeSource{PDName: name}
	case migratedPlugins()[2]:
		v.AzureDisk = &corev1.AzureDiskVolumeSource{DiskName: name, DataDiskURI: "/subscriptions/s/resourcegroups/g/providers/microsoft.compute/disks/" + name, Kind: new(corev1.AzureManagedDisk)}
	}
}

// storage draws what others write into storage objects after their user: provisioners, attachers,
// restores and migrations.
func (g *generator) storage() {
	if g.chance(30) {
		for range 1 + g.r.IntN(2) { // the youngest is taken, then the first by name
			c := pick(g, g.s.StorageClasses...)
			c.Annotations = map[string]string{defaultClass: "true"}
			c.CreationTimestamp = metav1.NewTime(asked().Add(-time.Duration(g.r.IntN(2)) * time.Hour))
		}
	}
	for _, d := range g.s.CSIDrivers { // 1.36 does not ask for it
		if g.chance(20) && utilfeature.DefaultFeatureGate.Enabled(features.VolumeLimitScaling) {
			d.Spec.PreventPodSchedulingIfMissing = new(true)
		}
	}
	for _, c := range g.s.PVCs {
		g.claimed(c)
	}
	for _, v := range g.s.PVs {
		free := v.Spec.ClaimRef == nil
		if v.Spec.CSI != nil && g.chance(20) {
			inTree(&v.Spec, pick(g, migratedPlugins()...))
		}
		if class := v.Spec.StorageClassName; g.chance(8) {
			v.Annotations, v.Spec.StorageClassName = map[string]string{corev1.BetaStorageClassAnnotation: class}, pick(g, "", "waits")
		}
		if free && g.chance(30) {
			v.Labels = map[string]string{labelDisk: pick(g, "a", "b")}
		}
		if free && g.chance(25) {
			v.Spec.VolumeAttributesClassName = new(attributes)
		}
		old := v.Spec.CSI == nil && v.Spec.Local == nil
		if zoned := v.Spec.NodeAffinity; !free && zoned != nil && g.chance(map[bool]int{false: 10, true: 40}[old]) { // an older volume has labels
			term := &zoned.Required.NodeSelectorTerms[0].MatchExpressions[0]
			v.Labels = map[string]string{pick(g, corev1.LabelTopologyZone, labelBetaZone): term.Values[0]}
			if g.chance(60) {
				v.Spec.NodeAffinity = nil
			} else if old && g.chance(50) {
				term.Key = labelBetaZone
			}
		}
	}
	for _, n := range g.s.Nodes {
		if n.Labels[karpv1.NodePoolLabelKey] == "" && g.chance(15) { // a machine of one's own
			delete(n.Labels, corev1.LabelTopologyZone)
			delete(n.Labels, corev1.LabelTopologyRegion)
		}
	}
	g.attachments()
	g.capacities()
	g.disks()
}

// claimed draws what a claim has beside what Generate gives it.
func (g *generator) claimed(c *corev1.PersistentVolumeClaim) {
	class := *c.Spec.StorageClassName
	byDefault := slices.ContainsFunc(g.s.StorageClasses, func(s *storagev1.StorageClass) bool { return s.Name == class && s.Annotations[defaultClass] != "" })
	switch {
	case g.chance(12): // which is read before the field
		c.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: class}
		c.Spec.StorageClassName = pick(g, nil, new("waits"), new("zone-b"), new(classLocal))
	case byDefault && g.chance(40):
		c.Spec.StorageClassName = nil
	}
	if c.Spec.VolumeName != "" && g.chance(5) { // its volume was gone, and came back
		c.Status.Phase = corev1.ClaimLost
	}
	if g.chance(8) {
		c.Spec.VolumeAttributesClassName = new(attributes)
	}
	if class == classLocal && g.chance(25) {
		c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{labelDisk: pick(g, "a", "b")}}
	}
	if g.chance(15) {
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
		for _, v := range g.s.PVs {
			if ref := v.Spec.ClaimRef; ref != nil && ref.Namespace == c.Namespace && ref.Name == c.Name {
				v.Spec.AccessModes = c.Spec.AccessModes
			}
		}
	}
	if c.Spec.VolumeName == "" && g.chance(6) {
		node := "gone"
		if len(g.s.Nodes) > 0 && g.chance(80) {
			node = pick(g, g.s.Nodes...).Name
		}
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, selectedNode, node)
	}
}

// attachments draws the volumes that nodes have: those of their pods, and some that are still to be
// detached.
func (g *generator) attachments() {
	add := func(node string, v *corev1.PersistentVolume) {
		a := &storagev1.VolumeAttachment{Spec: storagev1.VolumeAttachmentSpec{
			Attacher: storageDriver, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &v.Name},
		}}
		switch {
		case v.Spec.AWSElasticBlockStore != nil:
			a.Spec.Attacher = migratedPlugins()[0]
		case v.Spec.GCEPersistentDisk != nil:
			a.Spec.Attacher = migratedPlugins()[1]
		case v.Spec.AzureDisk != nil:
			a.Spec.Attacher = migratedPlugins()[2]
		}
		a.TypeMeta, a.ObjectMeta = meta("VolumeAttachment", "storage.k8s.io/v1", fmt.Sprintf("attachment-%d", len(g.s.VolumeAttachments)))
		g.s.VolumeAttachments = append(g.s.VolumeAttachments, a)
	}
	for _, n := range g.s.CSINodes {
		for range pick(g, 0, 0, 0, 1, 2) {
			v := &corev1.PersistentVolume{}
			v.TypeMeta, v.ObjectMeta = meta("PersistentVolume", "v1", fmt.Sprintf("detaching-%d", len(g.s.PVs)))
			v.Spec.AccessModes, v.Spec.Capacity = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, corev1.ResourceList{corev1.ResourceStorage: quantity("1Gi")}
			v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: storageDriver, VolumeHandle: v.Name}
			v.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "shop", Name: "gone"}
			v.Status.Phase = corev1.VolumeReleased
			g.s.PVs = append(g.s.PVs, v)
			add(n.Name, v)
		}
		if g.chance(60) {
			n.Annotations = map[string]string{migrated: inTreePlugins}
		}
		for _, driver := range migratedPlugins() {
			runs := slices.ContainsFunc(n.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == driver })
			if limit := int32(1 + g.r.IntN(4)); !runs && g.chance(50) {
				n.Spec.Drivers = append(n.Spec.Drivers, storagev1.CSINodeDriver{Name: driver, NodeID: n.Name, Allocatable: &storagev1.VolumeNodeResources{Count: &limit}})
			}
		}
	}
	done := map[string]bool{}
	for _, p := range g.s.Running {
		for _, v := range g.s.PVs {
			ref := v.Spec.ClaimRef
			if ref == nil || ref.Namespace != p.Namespace || done[p.Spec.NodeName+"/"+v.Name] {
				continue
			}
			for _, volume := range p.Spec.Volumes {
				if c := volume.PersistentVolumeClaim; c != nil && c.ClaimName == ref.Name && g.chance(60) {
					done[p.Spec.NodeName+"/"+v.Name] = true
					add(p.Spec.NodeName, v)
				}
			}
		}
	}
}

// capacities draws where the driver says that it can still make volumes of each class.
func (g *generator) capacities() {
	if !g.chance(30) {
		return
	}
	for _, d := range g.s.CSIDrivers {
		d.Spec.StorageCapacity = new(true)
	}
	for _, class := range g.s.StorageClasses {
		if class.Provisioner != storageDriver {
			continue
		}
		for _, zone := range Zones() {
			if g.chance(15) { // nothing is known of it
				continue
			}
			size := quantity("%s", pick(g, "0", "500Mi", "2Gi", "100Gi", "100Gi", "100Gi"))
			c := &storagev1.CSIStorageCapacity{StorageClassName: class.Name, Capacity: &size}
			c.TypeMeta, c.ObjectMeta = meta("CSIStorageCapacity", "storage.k8s.io/v1", class.Name+"-"+zone)
			c.Namespace = "system"
			c.NodeTopology = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelTopologyZone: zone}}
			if g.chance(30) {
				c.NodeTopology = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: corev1.LabelTopologyZone, Operator: metav1.LabelSelectorOpNotIn, Values: []string{zone}},
				}}
			}
			if g.chance(20) {
				most := quantity("%s", pick(g, "500Mi", "5Gi"))
				c.MaximumVolumeSize = &most
			}
			g.s.CSICapacities = append(g.s.CSICapacities, c)
		}
	}
}

// disks draws apps whose pods name a disk in their own spec.
func (g *generator) disks() {
	sources := map[string]corev1.VolumeSource{}
	for i := range g.apps {
		if !g.chance(6) {
			continue
		}
		disk := pick(g, "disk-1", "disk-2")
		sources[g.apps[i].name] = pick(g,
			corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: disk}},
			corev1.VolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: disk, ReadOnly: g.chance(50)}},
			corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{TargetPortal: "10.0.0.1", IQN: "iqn.2026-01.com.example:" + disk, ReadOnly: g.chance(50)}},
			corev1.VolumeSource{RBD: &corev1.RBDVolumeSource{CephMonitors: g.some("10.0.0.1", "10.0.0.2"), RBDImage: disk, ReadOnly: g.chance(50)}},
		)
	}
	for _, list := range [][]*corev1.Pod{g.s.Running, g.s.Pods} {
		for _, p := range list {
			source, ok := sources[p.Labels["app"]]
			if _, static := p.Annotations[corev1.MirrorPodAnnotationKey]; !ok || static {
				continue
			}
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "own", VolumeSource: *source.DeepCopy()})
		}
	}
}

// The zone as a CSI driver's volumes ask for it, and as old manifests do.
const (
	labelDriverZone = "topology.ebs.csi.aws.com/zone"
	labelBetaZone   = corev1.LabelFailureDomainBetaZone
)

// agents draws labels that kubelets, cloud controllers, CSI drivers and Karpenter set, and what
// asks for them. Nodes that are on their way will have all of them; of the others most have them.
func (g *generator) agents() {
	for _, n := range g.s.Nodes {
		if g.chance(70) {
			g.setBy(n)
			continue
		}
		for _, c := range g.s.CSINodes { // a driver that runs has told the kubelet its labels
			if c.Name == n.Name && !g.isReady(n) {
				c.Spec.Drivers = slices.DeleteFunc(c.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name != storageDriver })
			}
		}
	}
	for _, n := range g.s.Ready {
		g.setBy(n)
	}
	for i := range g.s.PVs {
		if a := g.s.PVs[i].Spec.NodeAffinity; a != nil && g.chance(40) {
			for k := range a.Required.NodeSelectorTerms[0].MatchExpressions {
				if e := &a.Required.NodeSelectorTerms[0].MatchExpressions[k]; e.Key == corev1.LabelTopologyZone {
					e.Key = labelDriverZone
				}
			}
		}
	}
	for _, c := range g.s.StorageClasses {
		for i := range c.AllowedTopologies {
			if g.chance(40) {
				c.AllowedTopologies[i].MatchLabelExpressions[0].Key = labelDriverZone
			}
		}
	}
	for i := range g.apps {
		if g.chance(8) {
			ask := g.asksAgents()
			for _, list := range [][]*corev1.Pod{g.s.Running, g.s.Pods} {
				for _, p := range list {
					if p.Labels["app"] == g.apps[i].name {
						ask(&p.Spec)
					}
				}
			}
		}
	}
	for _, d := range g.s.DaemonSets {
		if g.chance(25) {
			g.asksAgents()(&d.Spec.Template.Spec)
		}
		if g.chance(20) { // pools may leave these open
			key := pick(g, labelTeam, labelLane)
			d.Spec.Template.Spec.NodeSelector = map[string]string{key: map[string]string{labelTeam: pick(g, "shop", "batch"), labelLane: pick(g, "spot-1", "spot-2", "on-demand-1")}[key]}
		}
	}
	for i := range g.apps {
		if len(g.s.DaemonSets) > 0 && g.chance(8) {
			g.besideDaemon(g.apps[i].name)
		}
	}
}

// isReady reports whether the node is on its way and shown already.
func (g *generator) isReady(n *corev1.Node) bool {
	return slices.ContainsFunc(g.s.Ready, func(r *corev1.Node) bool { return r.Name == n.Name })
}

// besideDaemon gives the pods of an app required affinity to those of a DaemonSet, such as the
// cache or the agent of a node.
func (g *generator) besideDaemon(app string) {
	d := pick(g, g.s.DaemonSets...)
	term := corev1.PodAffinityTerm{
		TopologyKey:   pick(g, corev1.LabelHostname, corev1.LabelHostname, corev1.LabelTopologyZone, labelLane),
		LabelSelector: d.Spec.Selector, Namespaces: []string{d.Namespace},
	}
	for _, list := range [][]*corev1.Pod{g.s.Running, g.s.Pods} {
		for _, p := range list {
			if p.Labels["app"] != app {
				continue
			}
			if p.Spec.Affinity == nil {
				p.Spec.Affinity = &corev1.Affinity{}
			}
			if p.Spec.Affinity.PodAffinity == nil {
				p.Spec.Affinity.PodAffinity = &corev1.PodAffinity{}
			}
			required := &p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
			*required = append(*required, term)
		}
	}
}

// setBy gives a node the labels of its agents.
func (g *generator) setBy(n *corev1.Node) {
	maps.Copy(n.Labels, requirements.AgentAliases().Both(requirements.FromLabels(n.Labels)).Labels())
	for _, p := range g.s.NodePools {
		if class := p.Spec.Template.Spec.NodeClassRef; p.Name == n.Labels[karpv1.NodePoolLabelKey] {
			n.Labels[class.Group+"/"+strings.ToLower(class.Kind)] = class.Name
		}
	}
}

// asksAgents draws what a pod asks of labels that agents set.
func (g *generator) asksAgents() func(*corev1.PodSpec) {
	zone := pick(g, Zones()...)
	class := g.s.NodePools[0].Spec.Template.Spec.NodeClassRef
	expression := pick(g,
		in(labelDriverZone, zone), in(labelBetaZone, zone), in("beta.kubernetes.io/arch", "amd64"), in(karpv1.NodeRegisteredLabelKey, "true"),
		in(class.Group+"/"+strings.ToLower(class.Kind), class.Name),
		corev1.NodeSelectorRequirement{Key: karpv1.NodeInitializedLabelKey, Operator: corev1.NodeSelectorOpExists},
		corev1.NodeSelectorRequirement{Key: karpv1.NodeRegisteredLabelKey, Operator: corev1.NodeSelectorOpDoesNotExist},
		corev1.NodeSelectorRequirement{Key: labelDriverZone, Operator: corev1.NodeSelectorOpDoesNotExist},
	)
	spread := g.chance(20)
	return func(s *corev1.PodSpec) {
		if spread {
			for i := range s.TopologySpreadConstraints {
				if t := &s.TopologySpreadConstraints[i]; t.TopologyKey == corev1.LabelTopologyZone {
					t.TopologyKey = labelDriverZone
				}
			}
		}
		if s.Affinity == nil {
			s.Affinity = &corev1.Affinity{}
		}
		if s.Affinity.NodeAffinity == nil {
			s.Affinity.NodeAffinity = &corev1.NodeAffinity{}
		}
		required := &s.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		if *required == nil {
			*required = &corev1.NodeSelector{NodeSelectorTerms: make([]corev1.NodeSelectorTerm, 1)}
		}
		for i := range (*required).NodeSelectorTerms {
			t := &(*required).NodeSelectorTerms[i]
			t.MatchExpressions = append(t.MatchExpressions, expression)
		}
	}
}
