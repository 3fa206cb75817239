package manifests

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// refer checks references between objects. What an API server refuses is a problem, for pods that
// it has not admitted yet. What only leaves a cluster waiting, or is missing from offline input, is
// a note.
func (b *builder) refer(assume bool) {
	s := b.snapshot
	if assume {
		b.assumeStorage()
	}
	priorities := names(s.PriorityClasses)
	priorities["system-cluster-critical"], priorities["system-node-critical"] = true, true
	runtimes := names(s.RuntimeClasses)
	claims := map[[2]string]bool{}
	for _, c := range s.PersistentVolumeClaims {
		claims[[2]string{c.Namespace, c.Name}] = true
	}
	missing := map[string]int{}
	look := func(id identity, below string, meta *metav1.ObjectMeta, spec *corev1.PodSpec, pods int) {
		admitted := meta.UID != "" || spec.NodeName != ""
		class := func(field, kind, name string, known map[string]bool) {
			switch {
			case name == "" || known[name]:
			case admitted:
				missing[fmt.Sprintf("%s %q, which is not in the input", kind, name)] += pods
			case assume && meant(name, slices.Sorted(maps.Keys(known))) == "":
				missing[fmt.Sprintf("%s %q, which is not in the input%s", kind, name, b.assumeClass(kind, name))] += pods
			default:
				b.fail(id, below+"spec."+field, "%q: the input has no such %s, and without it a cluster refuses the pod%s",
					name, kind, meant(name, slices.Sorted(maps.Keys(known))))
			}
		}
		if spec.Priority == nil {
			class("priorityClassName", "PriorityClass", spec.PriorityClassName, priorities)
		}
		if spec.RuntimeClassName != nil {
			class("runtimeClassName", "RuntimeClass", *spec.RuntimeClassName, runtimes)
		}
		for i := range spec.Volumes {
			if c := spec.Volumes[i].PersistentVolumeClaim; c != nil && !claims[[2]string{id.namespace, c.ClaimName}] {
				missing[fmt.Sprintf("PersistentVolumeClaim %s/%s, which is not in the input", id.namespace, c.ClaimName)] += pods
			}
		}
	}
	for _, p := range s.Pods {
		if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			look(identity{"Pod", p.Namespace, p.Name}, "", &p.ObjectMeta, &p.Spec, 1)
		}
	}
	templates := map[identity]*metav1.ObjectMeta{}
	for _, c := range b.controllers {
		templates[c.id] = c.meta
	}
	for _, c := range b.cronJobs {
		templates[identity{"CronJob", c.Namespace, c.Name}] = &c.ObjectMeta
	}
	for i := range s.Workloads {
		w := &s.Workloads[i]
		id := identity{w.Kind, w.Namespace, w.Name}
		below := "spec.template."
		if w.Kind == "CronJob" {
			below = "spec.jobTemplate.spec.template."
		}
		look(id, below, templates[id], &w.Template.Spec, w.Len())
	}
	for _, what := range slices.Sorted(maps.Keys(missing)) {
		s.note("%s %s", plural(missing[what], "pod uses", "pods use"), what)
	}
	b.storage()
	b.classes()
	b.defaultPriority()
	b.daemons()
	b.namespaces()
	b.tinyMemory()
}

// namespaces notes pods that select namespaces by labels although the input lacks the namespace of
// some pod: it is then taken to have no labels.
func (b *builder) namespaces() {
	present := names(b.snapshot.Namespaces)
	missing, count := false, 0
	look := func(namespace string, spec *corev1.PodSpec, pods int) {
		missing = missing || pods > 0 && !present[cmp.Or(namespace, corev1.NamespaceDefault)]
		if selectsNamespaces(spec.Affinity) {
			count += pods
		}
	}
	for _, p := range b.snapshot.Pods {
		look(p.Namespace, &p.Spec, 1)
	}
	for i := range b.snapshot.Workloads {
		w := &b.snapshot.Workloads[i]
		look(w.Namespace, &w.Template.Spec, w.Len())
	}
	if missing && count > 0 {
		b.snapshot.note("%s namespaces by their labels, but not all namespaces are in the input (namespaces in kubectl get): the others are assumed to have none",
			plural(count, "pod selects", "pods select"))
	}
}

// selectsNamespaces reports whether a term between pods asks for labels of namespaces, other than
// the one that is their name.
func selectsNamespaces(a *corev1.Affinity) bool {
	if a == nil {
		return false
	}
	var terms []corev1.PodAffinityTerm
	if p := a.PodAffinity; p != nil {
		terms = append(terms, p.RequiredDuringSchedulingIgnoredDuringExecution...)
		for i := range p.PreferredDuringSchedulingIgnoredDuringExecution {
			terms = append(terms, p.PreferredDuringSchedulingIgnoredDuringExecution[i].PodAffinityTerm)
		}
	}
	if p := a.PodAntiAffinity; p != nil {
		terms = append(terms, p.RequiredDuringSchedulingIgnoredDuringExecution...)
		for i := range p.PreferredDuringSchedulingIgnoredDuringExecution {
			terms = append(terms, p.PreferredDuringSchedulingIgnoredDuringExecution[i].PodAffinityTerm)
		}
	}
	return slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool {
		if t.NamespaceSelector == nil {
			return false
		}
		for key := range t.NamespaceSelector.MatchLabels {
			if key != corev1.LabelMetadataName {
				return true
			}
		}
		return slices.ContainsFunc(t.NamespaceSelector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return r.Key != corev1.LabelMetadataName })
	})
}

// daemons notes DaemonSets that are missing although the input has their pods: such pods will run
// on new nodes too, but they are not counted.
func (b *builder) daemons() {
	present, missing := map[string]bool{}, map[string]bool{}
	for _, d := range b.snapshot.DaemonSets {
		present[d.Namespace+"/"+d.Name] = true
	}
	for _, p := range b.snapshot.Pods {
		if ref := metav1.GetControllerOf(p); ref != nil && ref.Kind == "DaemonSet" && !present[p.Namespace+"/"+ref.Name] {
			missing[p.Namespace+"/"+ref.Name] = true
		}
	}
	if len(missing) > 0 {
		b.snapshot.note("the pods of %s are in the input, but the DaemonSets are not (daemonsets in kubectl get): new nodes are planned without them",
			strings.Join(slices.Sorted(maps.Keys(missing)), ", "))
	}
}

// tinyMemory notes requests of memory and storage in thousandths of a byte, which are meant as
// mebibytes.
func (b *builder) tinyMemory() {
	count, example := 0, ""
	look := func(spec *corev1.PodSpec, pods int) {
		for i := range spec.Containers {
			for _, name := range []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
				if q, ok := spec.Containers[i].Resources.Requests[name]; ok && q.MilliValue()%1000 != 0 && q.Value() <= 1<<20 {
					count, example = count+pods, fmt.Sprintf("%s %s", q.String(), name)
				}
			}
		}
	}
	for _, p := range b.snapshot.Pods {
		look(&p.Spec, 1)
	}
	for i := range b.snapshot.Workloads {
		look(&b.snapshot.Workloads[i].Template.Spec, b.snapshot.Workloads[i].Len())
	}
	if count > 0 {
		b.snapshot.note("%s thousandths of a byte, such as %s: m does not mean Mi", plural(count, "container requests", "containers request"), example)
	}
}

func names[T metav1.Object](list []T) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, o := range list {
		set[o.GetName()] = true
	}
	return set
}

// wantedStorage counts the claims that wait for a volume, by the class that they name; "" is the
// default class. Claims of templates count once for each pod.
func (b *builder) wantedStorage() map[string]int {
	out := map[string]int{}
	want := func(meta *metav1.ObjectMeta, spec *corev1.PersistentVolumeClaimSpec, n int) {
		name, named := meta.Annotations[corev1.BetaStorageClassAnnotation]
		if spec.StorageClassName != nil && !named {
			name, named = *spec.StorageClassName, true
		}
		if spec.VolumeName == "" && (name != "" || !named) { // an empty name asks for an existing volume
			out[name] += n
		}
	}
	for _, c := range b.snapshot.PersistentVolumeClaims {
		want(&c.ObjectMeta, &c.Spec, 1)
	}
	volumes := func(spec *corev1.PodSpec, n int) {
		for i := range spec.Volumes {
			if e := spec.Volumes[i].Ephemeral; e != nil && e.VolumeClaimTemplate != nil {
				want(&e.VolumeClaimTemplate.ObjectMeta, &e.VolumeClaimTemplate.Spec, n)
			}
		}
	}
	for _, p := range b.snapshot.Pods {
		volumes(&p.Spec, 1)
	}
	for i := range b.snapshot.Workloads {
		volumes(&b.snapshot.Workloads[i].Template.Spec, b.snapshot.Workloads[i].Len())
	}
	return out
}

// storage notes claims that wait for a missing class.
func (b *builder) storage() {
	classes := names(b.snapshot.StorageClasses)
	wanted := b.wantedStorage()
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if name != "" && !classes[name] {
			b.snapshot.note("%s StorageClass %q, which is not in the input%s", plural(wanted[name], "PersistentVolumeClaim uses", "PersistentVolumeClaims use"),
				name, meant(name, slices.Sorted(maps.Keys(classes))))
		}
	}
}

// usualClasses are the storage classes that clouds and installers create, with their drivers.
// Manifests rarely contain them.
func usualClasses() map[string]string {
	const ebs, azure, google = "ebs.csi.aws.com", "disk.csi.azure.com", "pd.csi.storage.gke.io"
	return map[string]string{
		"gp2": ebs, "gp3": ebs, "io1": ebs, "io2": ebs, "st1": ebs, "sc1": ebs, "ebs-sc": ebs, "auto-ebs-sc": "ebs.csi.eks.amazonaws.com", "efs-sc": "efs.csi.aws.com",
		"default": azure, "managed": azure, "managed-csi": azure, "managed-premium": azure, "managed-csi-premium": azure, "azurefile": "file.csi.azure.com", "azurefile-csi": "file.csi.azure.com",
		"standard": google, "standard-rwo": google, "premium-rwo": google,
		"local-path": "rancher.io/local-path", "longhorn": "driver.longhorn.io",
	}
}

// assumeStorage adds the usual classes that claims name, and a default class if claims name none.
// It does nothing if the classes come from an export, which has all of them.
func (b *builder) assumeStorage() {
	s := b.snapshot
	classes := names(s.StorageClasses)
	exported := slices.ContainsFunc(s.StorageClasses, func(c *storagev1.StorageClass) bool { return c.UID != "" })
	isDefault := func(c *storagev1.StorageClass) bool {
		return c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true"
	}
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	usual, wanted := usualClasses(), b.wantedStorage()
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		class := &storagev1.StorageClass{Provisioner: usual[name], VolumeBindingMode: &wait}
		called := fmt.Sprintf("StorageClass %q", name)
		if class.Name = name; name == "" {
			class.Name, class.Provisioner, called = "assumed-default", usual["gp3"], "the default StorageClass"
			class.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
		}
		if exported || classes[name] || class.Provisioner == "" || name == "" && slices.ContainsFunc(s.StorageClasses, isDefault) {
			continue
		}
		s.StorageClasses = append(s.StorageClasses, class)
		s.note("%s %s, which is not in the input: it is assumed to be of %s and to wait for its pod",
			plural(wanted[name], "PersistentVolumeClaim uses", "PersistentVolumeClaims use"), called, class.Provisioner)
	}
	sortObjects(s.StorageClasses)
}

// assumeClass adds an unknown class of pods and says what it is assumed to be.
func (b *builder) assumeClass(kind, name string) string {
	s := b.snapshot
	meta := metav1.ObjectMeta{Name: name}
	if kind == "PriorityClass" {
		if !names(s.PriorityClasses)[name] {
			s.PriorityClasses = append(s.PriorityClasses, &schedulingv1.PriorityClass{ObjectMeta: meta})
			sortObjects(s.PriorityClasses)
		}
		return " and is assumed to be 0"
	}
	if !names(s.RuntimeClasses)[name] {
		s.RuntimeClasses = append(s.RuntimeClasses, &nodev1.RuntimeClass{ObjectMeta: meta, Handler: name})
		sortObjects(s.RuntimeClasses)
	}
	return " and is assumed to have no overhead and no node selector"
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// classes notes pools that name no node class, or a missing one although the input has others of
// its kind. Without any node class in the input, the cloud's settings keep their defaults. It also
// notes pools with the same name, which is possible only for the kinds of two API versions.
func (b *builder) classes() {
	present := map[string]map[string]bool{}
	for _, c := range b.snapshot.NodeClasses {
		if present[c.Kind] == nil {
			present[c.Kind] = map[string]bool{}
		}
		present[c.Kind][c.Name] = true
	}
	for i, p := range b.snapshot.NodePools {
		if i > 0 && b.snapshot.NodePools[i-1].Name == p.Name {
			b.snapshot.note("%s %s and %s %s have the same name, so their nodes cannot be told apart", b.snapshot.NodePools[i-1].Kind, p.Name, p.Kind, p.Name)
		}
		if p.NodeClass.IsZero() && p.Provider == nil {
			b.snapshot.note("%s %s names no node class, which a cluster requires", p.Kind, p.Name)
		}
		kind := classKind(p)
		if known := present[kind]; len(known) > 0 && p.NodeClass.Name != "" && !known[p.NodeClass.Name] {
			b.snapshot.note("%s %s refers to %s %q, which is not in the input%s",
				p.Kind, p.Name, kind, p.NodeClass.Name, meant(p.NodeClass.Name, slices.Sorted(maps.Keys(known))))
		}
	}
}

// defaultPriority rejects a second default priority class.
func (b *builder) defaultPriority() {
	first := ""
	for _, p := range b.snapshot.PriorityClasses {
		switch {
		case !p.GlobalDefault:
		case first == "":
			first = p.Name
		default:
			b.fail(identity{"PriorityClass", "", p.Name}, "globalDefault", "PriorityClass %s is already the default", first)
		}
	}
}
