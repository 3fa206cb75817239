package manifests

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// refer looks at what refers to what. What an API server refuses is a problem, for pods that it has not admitted yet;
// what leaves a cluster waiting, or what offline input simply leaves out, is a note.
func (b *builder) refer() {
	s := b.snapshot
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
		s.note("%s for %s", plural(missing[what], "pod asks", "pods ask"), what)
	}
	b.storage()
	b.classes()
	b.defaultPriority()
}

func names[T metav1.Object](list []T) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, o := range list {
		set[o.GetName()] = true
	}
	return set
}

// storage notes claims that wait for a class that is not there.
func (b *builder) storage() {
	classes := names(b.snapshot.StorageClasses)
	waiting := map[string]int{}
	for _, c := range b.snapshot.PersistentVolumeClaims {
		if name := c.Spec.StorageClassName; name != nil && *name != "" && c.Spec.VolumeName == "" && !classes[*name] {
			waiting[*name]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(waiting)) {
		b.snapshot.note("%s for StorageClass %q, which is not in the input%s", plural(waiting[name], "PersistentVolumeClaim asks", "PersistentVolumeClaims ask"),
			name, meant(name, slices.Sorted(maps.Keys(classes))))
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// classes notes pools that name no node class, or one that is missing although the input has others of its kind; input
// without any leaves the cloud's settings at their defaults. It also notes pools of one name, which only the kinds of two
// API versions can have.
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
			b.snapshot.note("%s %s and %s %s have one name, so their nodes cannot be told apart", b.snapshot.NodePools[i-1].Kind, p.Name, p.Kind, p.Name)
		}
		if p.NodeClass.IsZero() && p.Provider == nil {
			b.snapshot.note("%s %s names no node class, which a cluster demands", p.Kind, p.Name)
		}
		kind := classKind(p)
		if known := present[kind]; len(known) > 0 && p.NodeClass.Name != "" && !known[p.NodeClass.Name] {
			b.snapshot.note("%s %s refers to %s %q, which is not in the input%s",
				p.Kind, p.Name, kind, p.NodeClass.Name, meant(p.NodeClass.Name, slices.Sorted(maps.Keys(known))))
		}
	}
}

// defaultPriority refuses a second class for pods that name none.
func (b *builder) defaultPriority() {
	first := ""
	for _, p := range b.snapshot.PriorityClasses {
		switch {
		case !p.GlobalDefault:
		case first == "":
			first = p.Name
		default:
			b.fail(identity{"PriorityClass", "", p.Name}, "globalDefault", "PriorityClass %s is the default already", first)
		}
	}
}
