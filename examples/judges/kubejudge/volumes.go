package kubejudge

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/storage/ephemeral"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	csitranslation "k8s.io/csi-translation-lib"
	storagedefaults "k8s.io/kubernetes/pkg/apis/storage/v1"
)

// defaultClassAnnotation marks the class that claims without one get.
const defaultClassAnnotation = "storageclass.kubernetes.io/is-default-class"

// volumes plays the parts of a cluster that act on claims: the admission plugin that sets the
// default class, the ephemeral volume controller, the persistent volume controller and the external
// provisioner. Its state is the indexers that the plugins' listers read; the informers above them
// are never started.
type volumes struct {
	factory  informers.SharedInformerFactory
	pvs      cache.Indexer
	pvcs     cache.Indexer
	classes  map[string]*storagev1.StorageClass
	fallback *storagev1.StorageClass // the default class
	nodes    map[string]*corev1.Node
	version  int64
}

func newVolumes(factory informers.SharedInformerFactory, s *Scenario) (*volumes, error) {
	v := &volumes{
		factory: factory,
		pvs:     factory.Core().V1().PersistentVolumes().Informer().GetIndexer(),
		pvcs:    factory.Core().V1().PersistentVolumeClaims().Informer().GetIndexer(),
		classes: make(map[string]*storagev1.StorageClass, len(s.StorageClasses)),
		nodes:   make(map[string]*corev1.Node, len(s.Nodes)),
	}
	for _, n := range s.Nodes {
		v.nodes[n.Name] = n
	}
	classes := factory.Storage().V1().StorageClasses().Informer().GetIndexer()
	for _, in := range s.StorageClasses {
		class := in.DeepCopy()
		storagedefaults.SetObjectDefaults_StorageClass(class)
		v.classes[class.Name] = class
		if class.Annotations[defaultClassAnnotation] == "true" && newerDefault(class, v.fallback) {
			v.fallback = class
		}
		if err := classes.Add(class); err != nil {
			return nil, err
		}
	}
	for _, in := range s.PVs {
		pv := in.DeepCopy()
		if pv.Status.Phase == "" {
			pv.Status.Phase = corev1.VolumeAvailable // as its controller does within moments
		}
		if err := v.pvs.Add(v.stamp(pv)); err != nil {
			return nil, err
		}
	}
	for _, in := range s.PVCs {
		if err := v.addClaim(in.DeepCopy()); err != nil {
			return nil, err
		}
	}
	return v, v.bindNamed()
}

// newerDefault is the rule by which the API server picks one of several default classes: the
// newest, then by name.
func newerDefault(a, b *storagev1.StorageClass) bool {
	if b == nil {
		return true
	}
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return b.CreationTimestamp.Before(&a.CreationTimestamp)
	}
	return a.Name < b.Name
}

// stamp gives an object the next resource version. The volume binder tells an assumed object from a
// newer one by it.
func (v *volumes) stamp(pv *corev1.PersistentVolume) *corev1.PersistentVolume {
	v.version++
	pv.ResourceVersion = strconv.FormatInt(v.version, 10)
	return pv
}

func (v *volumes) stampClaim(pvc *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	v.version++
	pvc.ResourceVersion = strconv.FormatInt(v.version, 10)
	return pvc
}

func (v *volumes) addClaim(pvc *corev1.PersistentVolumeClaim) error {
	key := nameOf(pvc)
	pvc.Namespace = key.Namespace
	if pvc.UID == "" {
		pvc.UID = types.UID("claim " + key.String())
	}
	if pvc.Spec.StorageClassName == nil && v.fallback != nil && pvc.Spec.VolumeName == "" &&
		pvc.Annotations[corev1.BetaStorageClassAnnotation] == "" {
		pvc.Spec.StorageClassName = &v.fallback.Name
	}
	return v.pvcs.Add(v.stampClaim(pvc))
}

// addEphemeral creates the claims of a pod's generic ephemeral volumes, which its user never
// writes.
func (v *volumes) addEphemeral(pod *corev1.Pod) error {
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		if volume.Ephemeral == nil || volume.Ephemeral.VolumeClaimTemplate == nil {
			continue
		}
		name := ephemeral.VolumeClaimName(pod, volume)
		if _, exists, err := v.pvcs.GetByKey(pod.Namespace + "/" + name); err != nil || exists {
			if err != nil {
				return err
			}
			continue
		}
		template := volume.Ephemeral.VolumeClaimTemplate.DeepCopy()
		isController := true
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		claim.Name, claim.Namespace = name, pod.Namespace
		claim.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: &isController,
		}}
		if err := v.addClaim(claim); err != nil {
			return err
		}
	}
	return nil
}

// bindNamed completes what the volume controller completes before any pod is scheduled: claims that
// name a volume, and volumes that name a claim.
func (v *volumes) bindNamed() error {
	for _, key := range sortedKeys(v.pvcs) {
		pvc, err := v.claim(key)
		if err != nil {
			return err
		}
		name := pvc.Spec.VolumeName
		if name == "" || pvc.Status.Phase == corev1.ClaimLost {
			continue
		}
		obj, ok, err := v.pvs.GetByKey(name)
		if err != nil {
			return err
		}
		if !ok {
			// The claim stays as it is: the plugin says that the volume is missing.
			if err := v.pvcs.Update(v.stampClaim(boundClaim(pvc, name))); err != nil {
				return err
			}
			continue
		}
		pv := obj.(*corev1.PersistentVolume)
		if ref := pv.Spec.ClaimRef; ref != nil && (ref.Namespace != pvc.Namespace || ref.Name != pvc.Name) {
			continue // somebody else's; the claim waits for ever
		}
		if err := v.bind(pv, pvc); err != nil {
			return err
		}
	}
	for _, key := range sortedKeys(v.pvs) {
		obj, _, err := v.pvs.GetByKey(key)
		if err != nil {
			return err
		}
		pv := obj.(*corev1.PersistentVolume)
		if pv.Spec.ClaimRef == nil {
			continue
		}
		pvc, err := v.claim(pv.Spec.ClaimRef.Namespace + "/" + pv.Spec.ClaimRef.Name)
		if err != nil || pvc.Spec.VolumeName != "" {
			continue // the claim does not exist yet, or is bound
		}
		if err := v.bind(pv, pvc); err != nil {
			return err
		}
	}
	return nil
}

func sortedKeys(i cache.Indexer) []string {
	keys := i.ListKeys()
	slices.Sort(keys)
	return keys
}

func (v *volumes) claim(key string) (*corev1.PersistentVolumeClaim, error) {
	obj, ok, err := v.pvcs.GetByKey(key)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("kubejudge: no claim %q", key)
	}
	return obj.(*corev1.PersistentVolumeClaim), nil
}

func boundClaim(pvc *corev1.PersistentVolumeClaim, volume string) *corev1.PersistentVolumeClaim {
	pvc = pvc.DeepCopy()
	pvc.Spec.VolumeName = volume
	pvc.Status.Phase = corev1.ClaimBound
	metav1.SetMetaDataAnnotation(&pvc.ObjectMeta, storagehelpers.AnnBindCompleted, "yes")
	return pvc
}

// bind makes claim and volume name each other.
func (v *volumes) bind(pv *corev1.PersistentVolume, pvc *corev1.PersistentVolumeClaim) error {
	pv = pv.DeepCopy()
	pv.Spec.ClaimRef = &corev1.ObjectReference{
		Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: pvc.Namespace, Name: pvc.Name, UID: pvc.UID,
	}
	pv.Status.Phase = corev1.VolumeBound
	if err := v.pvs.Update(v.stamp(pv)); err != nil {
		return err
	}
	return v.pvcs.Update(v.stampClaim(boundClaim(pvc, pv.Name)))
}

// provision creates the volume that the class's driver would create for a pod on the node, and
// binds it.
//
// Where it can be reached from is the driver's to say; here it is the node's value of every key of
// allowedTopologies, or the node's zone where the class names none. That is what zonal block
// storage does.
func (v *volumes) provision(pvc *corev1.PersistentVolumeClaim, node string) error {
	name := storagehelpers.GetPersistentVolumeClaimClass(pvc)
	class, ok := v.classes[name]
	if !ok {
		return fmt.Errorf("kubejudge: claim %s/%s: no StorageClass %q", pvc.Namespace, pvc.Name, name)
	}
	driver := class.Provisioner
	if csi, err := csitranslation.New().GetCSINameFromInTreeName(driver); err == nil {
		driver = csi
	}
	id := "pvc-" + pvc.Namespace + "-" + pvc.Name
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        id,
			Annotations: map[string]string{storagehelpers.AnnDynamicallyProvisioned: driver},
		},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: class.Name,
			AccessModes:      slices.Clone(pvc.Spec.AccessModes),
			Capacity:         pvc.Spec.Resources.Requests.DeepCopy(),
			VolumeMode:       pvc.Spec.VolumeMode,
			NodeAffinity:     reach(class, v.nodes[node]),
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: id},
			},
		},
	}
	return v.bind(pv, pvc)
}

func reach(class *storagev1.StorageClass, node *corev1.Node) *corev1.VolumeNodeAffinity {
	keys := map[string]bool{}
	for _, term := range class.AllowedTopologies {
		for _, e := range term.MatchLabelExpressions {
			keys[e.Key] = true
		}
	}
	if len(keys) == 0 {
		keys[corev1.LabelTopologyZone] = true
	}
	var term corev1.NodeSelectorTerm
	for key := range keys {
		if value, ok := node.Labels[key]; ok {
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{
				Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value},
			})
		}
	}
	if len(term.MatchExpressions) == 0 {
		return nil
	}
	slices.SortFunc(term.MatchExpressions, func(a, b corev1.NodeSelectorRequirement) int { return strings.Compare(a.Key, b.Key) })
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}}
}

// client is what the volume binder calls when it binds: the two updates that the volume controller
// and the provisioner wait for, answered at once by what they would do. Every other call of the
// interface is a programming error, and panics on the nil that is embedded.
type client struct {
	kubernetes.Interface
	volumes *volumes
}

// CoreV1 returns the only group that the volume binder calls.
func (c *client) CoreV1() corev1client.CoreV1Interface { return coreClient{volumes: c.volumes} }

type coreClient struct {
	corev1client.CoreV1Interface
	volumes *volumes
}

// PersistentVolumes returns the client that binds volumes.
func (c coreClient) PersistentVolumes() corev1client.PersistentVolumeInterface {
	return pvClient{volumes: c.volumes}
}

// PersistentVolumeClaims returns the client that provisions.
func (c coreClient) PersistentVolumeClaims(string) corev1client.PersistentVolumeClaimInterface {
	return pvcClient{volumes: c.volumes}
}

type pvClient struct {
	corev1client.PersistentVolumeInterface
	volumes *volumes
}

// Update is called with a volume whose claimRef has been set.
func (c pvClient) Update(_ context.Context, pv *corev1.PersistentVolume, _ metav1.UpdateOptions) (*corev1.PersistentVolume, error) {
	pvc, err := c.volumes.claim(pv.Spec.ClaimRef.Namespace + "/" + pv.Spec.ClaimRef.Name)
	if err != nil {
		return nil, err
	}
	return pv, c.volumes.bind(pv, pvc)
}

type pvcClient struct {
	corev1client.PersistentVolumeClaimInterface
	volumes *volumes
}

// Update is called with a claim whose node has been selected.
func (c pvcClient) Update(_ context.Context, pvc *corev1.PersistentVolumeClaim, _ metav1.UpdateOptions) (*corev1.PersistentVolumeClaim, error) {
	return pvc, c.volumes.provision(pvc, pvc.Annotations[storagehelpers.AnnSelectedNode])
}
