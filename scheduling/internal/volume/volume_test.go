package volume_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/volume"
)

func pod(name string, claims ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	for _, c := range claims {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: c, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c},
		}})
	}
	return p
}

func claim(name string, edits ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}
	for _, e := range edits {
		e(c)
	}
	return c
}

func of(class string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &class }
}

func boundTo(volume string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = volume }
}

func persistent(name, class, size string, edits ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pv.Spec.StorageClassName = class
	pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	for _, e := range edits {
		e(pv)
	}
	return pv
}

func csi(driver string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) { pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver} }
}

func in(key string, op corev1.NodeSelectorOperator, values ...string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) {
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: op, Values: values}}},
		}}}
	}
}

func zones(list string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) { pv.Labels = map[string]string{corev1.LabelTopologyZone: list} }
}

func storage(name, provisioner string, edits ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: &mode}
	for _, e := range edits {
		e(c)
	}
	return c
}

func objects() volume.Objects {
	now := metav1.Now()
	rwop := func(c *corev1.PersistentVolumeClaim) {
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	}
	block := corev1.PersistentVolumeBlock
	return volume.Objects{
		Classes: []*storagev1.StorageClass{
			storage("local", "kubernetes.io/no-provisioner"), storage("fast", "ebs.csi.aws.com"), storage("old", "kubernetes.io/aws-ebs"),
			storage("at-once", "ebs.csi.aws.com", func(c *storagev1.StorageClass) { c.VolumeBindingMode = nil }),
			storage("zonal", "ebs.csi.aws.com", func(c *storagev1.StorageClass) {
				c.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
					{Key: corev1.LabelTopologyZone, Values: []string{"a", "b"}},
				}}}
			}),
		},
		Persistent: []*corev1.PersistentVolume{
			persistent("pv-a", "fast", "10Gi", csi("ebs.csi.aws.com"), in(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, "a")),
			persistent("pv-bc", "", "10Gi", zones("b__c")), persistent("pv-bad", "", "10Gi", in("zone", "within", "a")),
			persistent("pv-both", "", "10Gi", zones("b__c"), in(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, "a", "b")),
			persistent("pv-ebs", "", "10Gi", func(pv *corev1.PersistentVolume) {
				pv.Spec.AWSElasticBlockStore = &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "v"}
			}),
			persistent("disk-50", "local", "50Gi", in(corev1.LabelHostname, corev1.NodeSelectorOpIn, "n50")),
			persistent("disk-20", "local", "20Gi", in(corev1.LabelHostname, corev1.NodeSelectorOpIn, "n20")),
			persistent("disk-5", "local", "5Gi", in(corev1.LabelHostname, corev1.NodeSelectorOpIn, "n5")),
			persistent("disk-taken", "local", "12Gi", func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = &corev1.ObjectReference{} }),
			persistent("disk-released", "local", "12Gi", func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeReleased }),
			persistent("disk-block", "local", "12Gi", func(pv *corev1.PersistentVolume) { pv.Spec.VolumeMode = &block }),
		},
		Claims: []*corev1.PersistentVolumeClaim{
			claim("going", func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &now }),
			claim("lost", func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }),
			claim("alone", of("fast"), rwop), claim("in-use", of("fast"), rwop), claim("no-pv", boundTo("gone")),
			claim("bad-pv", boundTo("pv-bad")), claim("no-class", of("slow")), claim("classless", of("")), claim("default"), claim("at-once", of("at-once")),
			claim("huge", of("local"), func(c *corev1.PersistentVolumeClaim) {
				c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("99Gi")
			}),
			claim("many", of("local"), func(c *corev1.PersistentVolumeClaim) {
				c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
			}),
			claim("picky", of("local"), func(c *corev1.PersistentVolumeClaim) {
				c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"disk": "a"}}
			}),
			claim("in-a", boundTo("pv-a")), claim("in-bc", boundTo("pv-bc")), claim("in-b", boundTo("pv-both")), claim("ebs", boundTo("pv-ebs")),
			claim("local-1", of("local")), claim("local-2", of("local")), claim("local-3", of("local")),
			claim("fast-1", of("fast")), claim("fast-2", of("fast")), claim("old", of("old")), claim("zonal", of("zonal")),
		},
	}
}

func need(consumers ...volume.Consumer) []volume.Need {
	return volume.NewIndex(objects()).Assign([]*corev1.Pod{pod("running", "in-use")}, consumers)
}

func TestRefusals(t *testing.T) {
	for claim, want := range map[string]string{
		"missing":   `persistent volume claim "missing" does not exist`,
		"going":     `persistent volume claim "going" is being deleted`,
		"lost":      `persistent volume claim "lost" has lost its volume`,
		"in-use":    `persistent volume claim "in-use" is ReadWriteOncePod and another pod uses it`,
		"no-pv":     `persistent volume "gone" of claim "no-pv" does not exist`,
		"bad-pv":    `persistent volume "pv-bad": spec.nodeAffinity`,
		"no-class":  `storage class "slow" of claim "no-class" does not exist`,
		"classless": `claim "classless" is not bound to a volume, and none is made for it: its storage class is "", which opts out of the default class`,
		"default":   `claim "default" is not bound to a volume, and there is no default storage class`,
		"at-once":   `claim "at-once" waits for its volume to be created (storage class "at-once" binds immediately)`,
		"huge":      `no volume of storage class "local" is left for claim "huge" on nodes that could hold its pods`,
		"many":      `no volume of storage class "local" is left for claim "many" on nodes that could hold its pods`,
		"picky":     `no volume of storage class "local" is left for claim "picky" on nodes that could hold its pods`,
	} {
		t.Run(claim, func(t *testing.T) {
			got := need(volume.Consumer{Pod: pod("p", "in-a", claim), Count: 1})[0]
			if claim == "bad-pv" {
				assert.Contains(t, got.Refusal, `persistent volume "pv-bad": `)
				assert.Contains(t, got.Refusal, `"within"`)
			} else {
				assert.Equal(t, want, got.Refusal)
			}
			assert.Nil(t, got.Attached)
			assert.Empty(t, got.Unbound)
		})
	}
}

func TestAClaimForOnePodIsTheFirstOnes(t *testing.T) {
	got := need(volume.Consumer{Pod: pod("first", "alone", "alone"), Count: 1}, volume.Consumer{Pod: pod("second", "alone"), Count: 1})
	assert.Empty(t, got[0].Refusal, "naming it twice is using it once")
	assert.NotEmpty(t, got[1].Refusal)
	assert.NotEmpty(t, need(volume.Consumer{Pod: pod("p", "alone"), Count: 2})[0].Refusal)
}

func TestNarrowing(t *testing.T) {
	for name, c := range map[string]struct {
		claims  []string
		where   string // what must be met
		driver  string
		number  int64
		unbound []string
	}{
		"no volumes":                        {nil, "", "", 0, nil},
		"node affinity":                     {[]string{"in-a"}, "topology.kubernetes.io/zone in (a)", "ebs.csi.aws.com", 1, nil},
		"zone labels":                       {[]string{"in-bc"}, "topology.kubernetes.io/zone in (b,c) or !failure-domain.beta.kubernetes.io/region, !failure-domain.beta.kubernetes.io/zone, !topology.kubernetes.io/region, !topology.kubernetes.io/zone", "", 0, nil},
		"both":                              {[]string{"in-b"}, "topology.kubernetes.io/zone in (b)", "", 0, nil},
		"the old volume source":             {[]string{"ebs"}, "", "ebs.csi.aws.com", 1, nil},
		"the smallest that is large enough": {[]string{"local-1"}, "kubernetes.io/hostname in (n20)", "", 0, nil},
		"yet to be made":                    {[]string{"fast-1", "fast-2", "fast-1"}, "", "ebs.csi.aws.com", 2, []string{"shop/fast-1", "shop/fast-2"}},
		"by a migrated provisioner":         {[]string{"old"}, "", "ebs.csi.aws.com", 1, []string{"shop/old"}},
		"in allowed zones":                  {[]string{"zonal"}, "topology.kubernetes.io/zone in (a,b)", "ebs.csi.aws.com", 1, []string{"shop/zonal"}},
		"several":                           {[]string{"in-b", "zonal"}, "topology.kubernetes.io/zone in (b)", "ebs.csi.aws.com", 1, []string{"shop/zonal"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := need(volume.Consumer{Pod: pod("p", c.claims...), Count: 1})[0]
			assert.Empty(t, got.Refusal)
			assert.Equal(t, c.unbound, got.Unbound)
			if c.where == "" {
				assert.True(t, got.Where.At(0).IsAnything())
			} else {
				assert.Equal(t, c.where, got.Where.String())
			}
			if c.driver == "" {
				assert.Nil(t, got.Attached)
				return
			}
			q := got.Attached[volume.AttachLimit(c.driver)]
			assert.Equal(t, c.number, q.Value())
			assert.Len(t, got.Attached, 1)
		})
	}
	assert.True(t, need(volume.Consumer{Pod: pod("p", "in-a", "in-bc")})[0].Where.IsImpossible())
}

func TestStaticVolumesAreGivenOnce(t *testing.T) {
	got := need(volume.Consumer{Pod: pod("a", "local-1")}, volume.Consumer{Pod: pod("b", "local-2")}, volume.Consumer{Pod: pod("c", "local-3")},
		volume.Consumer{Pod: pod("d", "local-1")})
	assert.Equal(t, "kubernetes.io/hostname in (n20)", got[0].Where.String())
	assert.Equal(t, "kubernetes.io/hostname in (n50)", got[1].Where.String())
	assert.Equal(t, `no volume of storage class "local" is left for claim "local-3" on nodes that could hold its pods`, got[2].Refusal)
	assert.Equal(t, got[0].Where.String(), got[3].Where.String(), "the same claim has the same volume")
}

// A volume that names a claim is its volume, as after a restore; one that names another claim is not to be had.
func TestVolumesThatNameTheirClaim(t *testing.T) {
	reserved := func(owner, uid string, edits ...func(*corev1.PersistentVolume)) func(*corev1.PersistentVolume) {
		return func(pv *corev1.PersistentVolume) {
			pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: owner, UID: types.UID(uid)}
			for _, e := range edits {
				e(pv)
			}
		}
	}
	released := func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeReleased }
	inZone := func(zone string) func(*corev1.PersistentVolume) { return in(corev1.LabelTopologyZone, "In", zone) }
	withUID := func(c *corev1.PersistentVolumeClaim) { c.UID = "now" }
	for name, c := range map[string]struct {
		claim   *corev1.PersistentVolumeClaim
		volumes []*corev1.PersistentVolume
		where   string
		refused bool
	}{
		"by its name":                   {claim("data", of("fast")), []*corev1.PersistentVolume{persistent("pv", "fast", "1Gi", reserved("data", ""), inZone("a"))}, "topology.kubernetes.io/zone in (a)", false},
		"of a class that binds at once": {claim("data", of("now")), []*corev1.PersistentVolume{persistent("pv", "now", "1Gi", reserved("data", ""), inZone("a"))}, "topology.kubernetes.io/zone in (a)", false},
		"by two":                        {claim("data", of("fast")), []*corev1.PersistentVolume{persistent("pv2", "fast", "1Gi", reserved("data", ""), inZone("b")), persistent("pv1", "fast", "1Gi", reserved("data", ""), inZone("a"))}, "topology.kubernetes.io/zone in (a)", false},
		"an earlier claim's":            {claim("data", of("fast"), withUID), []*corev1.PersistentVolume{persistent("pv", "fast", "1Gi", reserved("data", "then"), inZone("a"))}, "", false},
		"released":                      {claim("data", of("fast")), []*corev1.PersistentVolume{persistent("pv", "fast", "1Gi", reserved("data", "", released), inZone("a"))}, "", false},
		"another claim's":               {claim("data", boundTo("pv")), []*corev1.PersistentVolume{persistent("pv", "fast", "1Gi", reserved("other", ""), inZone("a"))}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			o := volume.Objects{Claims: []*corev1.PersistentVolumeClaim{c.claim}, Persistent: c.volumes, Classes: []*storagev1.StorageClass{
				storage("fast", "ebs.csi.aws.com", func(s *storagev1.StorageClass) {
					s.VolumeBindingMode = ptr(storagev1.VolumeBindingWaitForFirstConsumer)
				}), storage("now", "ebs.csi.aws.com"),
			}}
			before := c.claim.DeepCopy()
			got := volume.NewIndex(o).Assign(nil, []volume.Consumer{{Pod: pod("p", "data")}})[0]
			assert.Equal(t, before, c.claim)
			assert.Equal(t, c.refused, got.Refusal != "", got.Refusal)
			if c.where != "" {
				assert.Equal(t, c.where, got.Where.String())
				assert.Empty(t, got.Unbound)
			} else if !c.refused {
				assert.True(t, got.Where.At(0).IsAnything())
			}
		})
	}
}

// A free volume that is there already ties its claim to its place only if the storage class cannot make another one.
func TestClassesThatMakeVolumesAreNotTiedToThoseThatAreThere(t *testing.T) {
	late := func(s *storagev1.StorageClass) {
		s.VolumeBindingMode = ptr(storagev1.VolumeBindingWaitForFirstConsumer)
	}
	for provisioner, where := range map[string]string{"ebs.csi.aws.com": "", "kubernetes.io/no-provisioner": "topology.kubernetes.io/zone in (a)"} {
		got := volume.NewIndex(volume.Objects{
			Claims: []*corev1.PersistentVolumeClaim{claim("data", of("class"))}, Classes: []*storagev1.StorageClass{storage("class", provisioner, late)},
			Persistent: []*corev1.PersistentVolume{persistent("pv", "class", "10Gi", in(corev1.LabelTopologyZone, "In", "a"))},
		}).Assign(nil, []volume.Consumer{{Pod: pod("p", "data")}})[0]
		assert.Empty(t, got.Refusal)
		assert.Equal(t, where == "", got.Where.At(0).IsAnything(), provisioner)
		if where != "" {
			assert.Equal(t, where, got.Where.String())
		}
	}
}

// Free volumes go to the pods of highest priority first, to none that no node of the pods reaches, and back where the pods are refused.
func TestFreeVolumesGoWhereTheyAreOfUse(t *testing.T) {
	late := func(s *storagev1.StorageClass) {
		s.VolumeBindingMode = ptr(storagev1.VolumeBindingWaitForFirstConsumer)
	}
	zone := func(name string) requirements.Alternatives {
		return requirements.AnyOf(requirements.MustOf(requirements.In(corev1.LabelTopologyZone, name)))
	}
	o := volume.Objects{
		Claims:     []*corev1.PersistentVolumeClaim{claim("x", of("local")), claim("y", of("local")), claim("z", of("local"))},
		Classes:    []*storagev1.StorageClass{storage("local", "kubernetes.io/no-provisioner", late)},
		Persistent: []*corev1.PersistentVolume{persistent("a", "local", "10Gi", in(corev1.LabelTopologyZone, "In", "a")), persistent("b", "local", "20Gi", in(corev1.LabelTopologyZone, "In", "b"))},
	}
	for name, c := range map[string]struct {
		consumers []volume.Consumer
		where     []string // empty for refused
	}{
		"in order":              {[]volume.Consumer{{Pod: pod("p", "x")}, {Pod: pod("q", "y")}, {Pod: pod("r", "z")}}, []string{"a", "b", ""}},
		"by priority":           {[]volume.Consumer{{Pod: pod("p", "x")}, {Pod: pod("q", "y")}, {Pod: pod("r", "z"), Priority: 1}}, []string{"b", "", "a"}},
		"within reach":          {[]volume.Consumer{{Pod: pod("p", "x"), Required: zone("b")}, {Pod: pod("q", "y")}}, []string{"b", "a"}},
		"out of reach":          {[]volume.Consumer{{Pod: pod("p", "x"), Required: zone("c")}, {Pod: pod("q", "y")}}, []string{"", "a"}},
		"a pod with two":        {[]volume.Consumer{{Pod: pod("p", "x", "y")}, {Pod: pod("q", "z")}}, []string{"", "a"}},
		"back from one refused": {[]volume.Consumer{{Pod: pod("p", "x", "missing")}, {Pod: pod("q", "y")}, {Pod: pod("r", "z")}}, []string{"", "a", "b"}},
	} {
		var got []string
		for _, need := range volume.NewIndex(o).Assign(nil, c.consumers) {
			at := ""
			if need.Refusal == "" {
				at = strings.TrimSuffix(strings.TrimPrefix(need.Where.String(), "topology.kubernetes.io/zone in ("), ")")
			}
			got = append(got, at)
		}
		assert.Equal(t, c.where, got, name)
	}
}

func ptr[T any](x T) *T { return &x }

// Of classes of one age the first by name is the default, otherwise the newest.
func TestTheDefaultClass(t *testing.T) {
	o := objects()
	for _, c := range o.Classes {
		if c.Name == "zonal" || c.Name == "fast" {
			c.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
		}
	}
	got := volume.NewIndex(o).Assign(nil, []volume.Consumer{{Pod: pod("p", "default")}, {Pod: pod("q", "classless")}})
	assert.True(t, got[0].Where.At(0).IsAnything(), "fast, not zonal")
	assert.Equal(t, []string{"shop/default"}, got[0].Unbound)
	assert.NotEmpty(t, got[1].Refusal, "the empty class asks for no class, not for the default")
	for _, c := range o.Classes {
		if c.Name == "zonal" {
			c.CreationTimestamp = metav1.Unix(1_700_000_000, 0)
		}
	}
	got = volume.NewIndex(o).Assign(nil, []volume.Consumer{{Pod: pod("p", "default")}})
	assert.False(t, got[0].Where.At(0).IsAnything(), "zonal, which is newer")
}

func ephemeral(name string) *corev1.Pod {
	p := pod(name)
	class := "fast"
	p.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
		VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class}},
	}}}}
	return p
}

func TestShared(t *testing.T) {
	consumers := []volume.Consumer{
		{Pod: pod("web", "fast-1", "in-a"), Count: 1},
		{Pod: pod("batch", "fast-2", "fast-1"), Count: 1},
		{Pod: pod("many", "old"), Count: 3},
		{Pod: pod("one", "zonal"), Count: 1},
		{Pod: ephemeral("each"), Count: 5},
	}
	needs := need(consumers...)
	assert.Equal(t, []string{"shop/each-scratch"}, needs[4].Unbound)
	assert.Equal(t, []volume.SharedClaim{
		{Claim: "shop/fast-1", Consumers: []int{0, 1}}, {Claim: "shop/fast-2", Consumers: []int{1}}, {Claim: "shop/old", Consumers: []int{2}}, {Claim: "shop/zonal", Consumers: []int{3}},
	}, volume.Shared(consumers, needs))
}

func TestAttachRoom(t *testing.T) {
	o := objects()
	five := int32(5)
	o.CSINodes = []*storagev1.CSINode{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
		{Name: "ebs.csi.aws.com", Allocatable: &storagev1.VolumeNodeResources{Count: &five}}, {Name: "endless"},
	}}}}
	x := volume.NewIndex(o)
	// Two volumes, one of them used twice, one that is not attached, one that nobody knows.
	running := []*corev1.Pod{pod("a", "in-a", "ebs"), pod("b", "in-a", "in-bc", "missing")}
	assert.Equal(t, int64(3), x.AttachRoom("n1", "ebs.csi.aws.com", running))
	assert.Equal(t, volume.Unlimited, x.AttachRoom("n1", "endless", running))
	assert.Equal(t, int64(4), x.AttachRoom("n1", "ebs.csi.aws.com", []*corev1.Pod{ephemeral("each")}), "its claim is not listed")
	assert.Equal(t, volume.Unlimited, x.AttachRoom("n1", "unknown", running))
	assert.Equal(t, volume.Unlimited, x.AttachRoom("n2", "ebs.csi.aws.com", running))
}

func TestAttachLimitNamesItsDriver(t *testing.T) {
	driver, ok := volume.Driver(volume.AttachLimit("ebs.csi.aws.com"))
	assert.True(t, ok)
	assert.Equal(t, "ebs.csi.aws.com", driver)
	_, ok = volume.Driver(corev1.ResourceCPU)
	assert.False(t, ok)
}

// Volumes of the days before CSI count against the limit of the driver that serves them now.
func TestMigratedVolumesAreCounted(t *testing.T) {
	for driver, source := range map[string]corev1.PersistentVolumeSource{
		"ebs.csi.aws.com":          {AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{}},
		"pd.csi.storage.gke.io":    {GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{}},
		"disk.csi.azure.com":       {AzureDisk: &corev1.AzureDiskVolumeSource{}},
		"cinder.csi.openstack.org": {Cinder: &corev1.CinderPersistentVolumeSource{}},
		"pxd.portworx.com":         {PortworxVolume: &corev1.PortworxVolumeSource{}},
		"":                         {NFS: &corev1.NFSVolumeSource{}},
	} {
		x := volume.NewIndex(volume.Objects{
			Persistent: []*corev1.PersistentVolume{persistent("pv", "", "10Gi", func(pv *corev1.PersistentVolume) { pv.Spec.PersistentVolumeSource = source })},
			Claims:     []*corev1.PersistentVolumeClaim{claim("data", boundTo("pv"))},
		})
		attached := x.Assign(nil, []volume.Consumer{{Pod: pod("a", "data")}})[0].Attached
		if driver == "" {
			assert.Empty(t, attached)
			continue
		}
		assert.Contains(t, attached, volume.AttachLimit(driver))
	}
}

// A volume with a deprecated zone label suits a node with either label: its own counts, then the one in use.
func TestOldZoneLabelsOfVolumes(t *testing.T) {
	const zone, beta = corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone
	for name, c := range map[string]struct {
		volume, node map[string]string
		want         bool
	}{
		"the same":                      {map[string]string{beta: "a"}, map[string]string{beta: "a"}, true},
		"the one in use":                {map[string]string{beta: "a"}, map[string]string{zone: "a"}, true},
		"the one in use, elsewhere":     {map[string]string{beta: "a"}, map[string]string{zone: "b"}, false},
		"its own comes first":           {map[string]string{beta: "a"}, map[string]string{beta: "b", zone: "a"}, false},
		"none":                          {map[string]string{beta: "a"}, map[string]string{}, true},
		"no zone, but a region":         {map[string]string{beta: "a"}, map[string]string{corev1.LabelTopologyRegion: "r"}, false},
		"not the other way round":       {map[string]string{zone: "a"}, map[string]string{beta: "a"}, false},
		"both of the volume":            {map[string]string{zone: "a", beta: "a"}, map[string]string{zone: "a"}, true},
		"both of the volume, different": {map[string]string{zone: "b", beta: "a"}, map[string]string{zone: "a"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			x := volume.NewIndex(volume.Objects{
				Persistent: []*corev1.PersistentVolume{persistent("pv", "", "10Gi", func(pv *corev1.PersistentVolume) { pv.Labels = c.volume })},
				Claims:     []*corev1.PersistentVolumeClaim{claim("data", boundTo("pv"))},
			})
			got := x.Assign(nil, []volume.Consumer{{Pod: pod("a", "data")}})[0]
			assert.Equal(t, c.want, got.Where.Matches(c.node))
		})
	}
}

// On a node whose kubelet has the plugin of an in-tree volume migrated, kube-scheduler asks for the zone that the CSI driver gives the node;
// on others, and on those to come, for Kubernetes' own.
func TestMigratedVolumesAskForTheZoneOfTheirDriver(t *testing.T) {
	const driverZone = "topology.ebs.csi.aws.com/zone"
	ebs := func(pv *corev1.PersistentVolume) {
		pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{}}
	}
	csiNode := func(name, plugins string) *storagev1.CSINode {
		n := &storagev1.CSINode{}
		n.Name, n.Annotations = name, map[string]string{corev1.MigratedPluginsAnnotationKey: plugins}
		return n
	}
	runs := csiNode("runs", "kubernetes.io/aws-ebs")
	runs.Spec.Drivers = []storagev1.CSINodeDriver{{Name: "ebs.csi.aws.com"}}
	nodes := []*storagev1.CSINode{csiNode("migrated", "kubernetes.io/gce-pd,kubernetes.io/aws-ebs"), csiNode("other", "kubernetes.io/gce-pd"), runs}
	labels := func(node string, keys ...string) map[string]string {
		out := map[string]string{}
		if node != "" {
			out[requirements.NodeNameKey] = node
		}
		for _, key := range keys {
			out[key] = "a"
		}
		return out
	}
	const zone, beta = corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone
	azure := func(pv *corev1.PersistentVolume) {
		pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{AzureDisk: &corev1.AzureDiskVolumeSource{}}
	}
	for name, c := range map[string]struct {
		volume []func(*corev1.PersistentVolume)
		node   map[string]string
		want   bool
	}{
		"the driver was there":                     {[]func(*corev1.PersistentVolume){ebs, in(zone, "In", "a")}, labels("migrated", zone, driverZone), true},
		"the driver is there":                      {[]func(*corev1.PersistentVolume){ebs, in(zone, "In", "a")}, labels("runs", zone, driverZone), true},
		"the driver is not":                        {[]func(*corev1.PersistentVolume){ebs, in(zone, "In", "a")}, labels("migrated", zone), false},
		"in another zone":                          {[]func(*corev1.PersistentVolume){ebs, in(zone, "In", "b")}, labels("migrated", zone, driverZone), false},
		"the plugin is not migrated there":         {[]func(*corev1.PersistentVolume){ebs, in(zone, "In", "a")}, labels("other", zone), true},
		"nothing is known of the node":             {[]func(*corev1.PersistentVolume){ebs, in(zone, "In", "a")}, labels("plain", zone), true},
		"the node is to come":                      {[]func(*corev1.PersistentVolume){ebs, in(zone, "In", "a")}, labels("", zone), true},
		"by labels alone":                          {[]func(*corev1.PersistentVolume){ebs, zones("a")}, labels("migrated", zone), false},
		"by labels alone, with the driver":         {[]func(*corev1.PersistentVolume){ebs, zones("b__a")}, labels("migrated", zone, driverZone), true},
		"by labels alone, no zone":                 {[]func(*corev1.PersistentVolume){ebs, zones("a")}, labels("runs"), false},
		"by labels alone, no zone, not migrated":   {[]func(*corev1.PersistentVolume){ebs, zones("a")}, labels("other"), true},
		"by labels alone, no zone, no CSINode":     {[]func(*corev1.PersistentVolume){ebs, zones("a")}, labels("plain"), true},
		"by the old key":                           {[]func(*corev1.PersistentVolume){ebs, in(beta, "In", "a")}, labels("migrated", driverZone), true},
		"by the old key, where it is not migrated": {[]func(*corev1.PersistentVolume){ebs, in(beta, "In", "a")}, labels("other", zone), false},
		"without zones":                            {[]func(*corev1.PersistentVolume){ebs}, labels("migrated"), true},
		"Azure's keep their keys":                  {[]func(*corev1.PersistentVolume){azure, in(zone, "In", "a")}, labels("migrated", zone), true},
	} {
		t.Run(name, func(t *testing.T) {
			x := volume.NewIndex(volume.Objects{
				Persistent: []*corev1.PersistentVolume{persistent("pv", "", "10Gi", c.volume...)}, CSINodes: nodes,
				Claims: []*corev1.PersistentVolumeClaim{claim("data", boundTo("pv"))},
			})
			got := x.Assign(nil, []volume.Consumer{{Pod: pod("a", "data")}})[0]
			assert.Empty(t, got.Refusal)
			assert.Equal(t, c.want, got.Where.Matches(c.node))
		})
	}
}

// A term of allowed topologies without expressions allows nothing, as for kube-scheduler; no terms allow everything.
func TestAllowedTopologies(t *testing.T) {
	in := func(zones ...string) corev1.TopologySelectorTerm {
		return corev1.TopologySelectorTerm{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: corev1.LabelTopologyZone, Values: zones}}}
	}
	for name, c := range map[string]struct {
		terms []corev1.TopologySelectorTerm
		a, b  bool
	}{
		"no terms":             {nil, true, true},
		"an empty term":        {[]corev1.TopologySelectorTerm{{}}, false, false},
		"and one of a zone":    {[]corev1.TopologySelectorTerm{{}, in("a")}, true, false},
		"two zones":            {[]corev1.TopologySelectorTerm{in("a"), in("b")}, true, true},
		"two zones in a term":  {[]corev1.TopologySelectorTerm{in("b", "a")}, true, true},
		"another zone's alone": {[]corev1.TopologySelectorTerm{in("c")}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			x := volume.NewIndex(volume.Objects{
				Classes: []*storagev1.StorageClass{storage("fast", "ebs.csi.aws.com", func(s *storagev1.StorageClass) { s.AllowedTopologies = c.terms })},
				Claims:  []*corev1.PersistentVolumeClaim{claim("data", of("fast"))},
			})
			need := x.Assign(nil, []volume.Consumer{{Pod: pod("a", "data")}})[0]
			assert.Equal(t, c.a, need.Refusal == "" && need.Where.Matches(map[string]string{corev1.LabelTopologyZone: "a"}))
			assert.Equal(t, c.b, need.Refusal == "" && need.Where.Matches(map[string]string{corev1.LabelTopologyZone: "b"}))
		})
	}
}
