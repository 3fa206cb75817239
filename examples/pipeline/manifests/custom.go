package manifests

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/internal/strictjson"
)

// PodsOf says where objects of a kind that planning does not know keep their pod templates.
// Examples are "spec.template" for a Rollout of argoproj.io and "spec.workerGroupSpecs[].template"
// for a RayCluster of ray.io. The number of pods of a template is the product of the fields
// replicas and parallelism on the path to it, minus the existing pods whose owner is the resource.
type PodsOf struct {
	Kind, Group string
	// Path leads to a pod template or a pod spec; "[]" stands for every item of a list.
	Path string
}

// ParsePodsOf reads "KIND.GROUP=PATH", as in "Rollout.argoproj.io=spec.template".
func ParsePodsOf(text string) (PodsOf, error) {
	name, path, ok := strings.Cut(text, "=")
	kind, group, _ := strings.Cut(name, ".")
	if !ok || kind == "" || path == "" || slices.Contains(strings.Split(path, "."), "") {
		return PodsOf{}, fmt.Errorf("%q: want KIND.GROUP=PATH, such as Rollout.argoproj.io=spec.template", text)
	}
	return PodsOf{kind, group, path}, nil
}

// custom is an object of such a kind.
type custom struct {
	metav1.ObjectMeta
	apiVersion string
	template   corev1.PodTemplateSpec
	count      int
}

// found is a template in an object and the number of its pods.
type found struct {
	node  *strictjson.Node
	path  string
	count int
}

// templates follows a path through an object.
func templates(n *strictjson.Node, path []string, at string, count int) []found {
	for _, key := range []string{"replicas", "parallelism"} {
		if v := n.Get(key); v != nil && v.Kind == strictjson.Number {
			if times, err := strconv.Atoi(v.Text); err == nil && times >= 0 && times <= MaxPods {
				count *= times
			}
		}
	}
	if len(path) == 0 {
		return []found{{n, at, count}}
	}
	key, each := strings.CutSuffix(path[0], "[]")
	at = strings.TrimPrefix(at+"."+key, ".")
	next := n.Get(key)
	switch {
	case next == nil:
		return nil
	case !each:
		return templates(next, path[1:], at, count)
	}
	var out []found
	for i := range next.Items {
		out = append(out, templates(&next.Items[i], path[1:], fmt.Sprintf("%s[%d]", at, i), count)...)
	}
	return out
}

// other reads an object of a kind that planning ignores: its pods, if the options locate them.
func (w *worker) other(res *result, at Position, n *strictjson.Node, id identity, version string) {
	var paths []string
	for _, p := range w.podsOf {
		if p.Kind == id.kind && p.Group == group(version) {
			paths = append(paths, p.Path)
		}
	}
	if len(paths) > 0 {
		w.custom(res, at, n, id, version, paths)
		return
	}
	name := qualified(id.kind, version)
	own := id
	own.namespace = namespaceOf(n)
	switch name {
	case "HorizontalPodAutoscaler.autoscaling":
		s, faults := scalerOf(n, own)
		for _, f := range faults {
			at.Line = n.At(f.Path)
			res.problems = append(res.problems, &Problem{Position: at, Object: own.String(), Path: f.Path, Detail: f.Detail})
		}
		if len(faults) == 0 {
			res.scalers = append(res.scalers, s)
		}
		return
	case "ResourceQuota":
		if c, ok := ceilingOf(n, own); ok {
			res.ceilings = append(res.ceilings, c)
			return
		}
	}
	res.others = append(res.others, name)
	if m, ok := makerOf(name, group(version), n); ok && name != "PodTemplate" && !slices.Contains(deployers(), name) {
		res.makers = append(res.makers, m)
	}
}

// namespaceOf returns the namespace of a namespaced object.
func namespaceOf(n *strictjson.Node) string {
	if v := n.Get("metadata").Get("namespace"); v != nil && v.Text != "" {
		return v.Text
	}
	return metav1.NamespaceDefault
}

// custom reads the pods of an object whose kind is in the options, with all paths of that kind.
func (w *worker) custom(res *result, at Position, n *strictjson.Node, id identity, version string, paths []string) {
	id.namespace = namespaceOf(n)
	if _, known := w.kinds[id.kind]; known { // for example the Job of another group
		id.kind = qualified(id.kind, version)
	}
	var list []found
	for _, path := range paths {
		there := templates(n, strings.Split(path, "."), "", 1)
		res.looked = append(res.looked, look{qualified(id.kind, version), path, id.String(), at, len(there) > 0})
		list = append(list, there...)
	}
	for i, f := range list {
		v := visit{node: f.node, decoder: w.decoder, checker: w.checker}
		o := &custom{apiVersion: version, count: f.count}
		if f.node.Get("containers") != nil {
			v.decode(&o.template.Spec)
		} else {
			v.decode(&o.template)
		}
		containers := o.template.Spec.Containers
		for k := range containers { // some kinds name the containers themselves
			if containers[k].Name == "" {
				containers[k].Name = fmt.Sprintf("c%d", k)
			}
		}
		v.take(w.checker.Pod("", &o.template.ObjectMeta, &o.template.Spec))
		for _, p := range v.problems {
			at := at
			at.Line = f.node.At(p.Path)
			res.problems = append(res.problems, &Problem{Position: at, Object: id.String(), Path: f.path + "." + p.Path, Detail: p.Detail})
		}
		o.Name, o.Namespace = id.name, id.namespace
		one := id
		if i > 0 {
			one.name = fmt.Sprintf("%s-%d", id.name, i)
			o.Name = one.name
		}
		res.objects = append(res.objects, object{one, at, o})
	}
}

// look is a search for a pod template in an object, at a path that the options name.
type look struct {
	kind, path, object string
	at                 Position
	found              bool
}

// lacking passes over objects without a template where others of their kind have one, such as a
// Rollout that refers to a Deployment, and notes them. If none has one, the path is wrong.
func (b *builder) lacking() {
	right := map[[2]string]bool{}
	for _, l := range b.looked {
		right[[2]string{l.kind, l.path}] = l.found || right[[2]string{l.kind, l.path}]
	}
	lack := map[string][]string{} // objects by path
	for _, l := range b.looked {
		switch {
		case l.found:
		case right[[2]string{l.kind, l.path}]:
			lack[l.path] = append(lack[l.path], l.object)
		default:
			b.problems = append(b.problems, &Problem{Position: l.at, Object: l.object, Path: l.path, Detail: "the object has no pod template there, nor has any other of its kind"})
		}
	}
	for _, path := range slices.Sorted(maps.Keys(lack)) {
		b.snapshot.note("%s no pod template at %s, so none of their pods come from there: %s", plural(len(lack[path]), "object has", "objects have"), path, few(lack[path], ", "))
	}
}

// maker is a kind that planning ignores although its objects create pods.
type maker struct {
	kind  string
	paths []string // to the pod templates, as [PodsOf] has them
}

// makerOf returns the kind as a maker, or false if its objects create no pods.
func makerOf(kind, group string, n *strictjson.Node) (maker, bool) {
	if group == "kyverno.io" || strings.HasSuffix(group, ".kyverno.io") { // policies have patterns of pods
		return maker{}, false
	}
	m := maker{kind: kind}
	makes := m.look(n, "") || slices.Contains(podMakers(), kind)
	return m, makes
}

// look reports whether an object contains containers of pods at any depth: a list of objects with
// an image, or one such object, as in workflows. It collects the paths to the templates of lists.
func (m *maker) look(n *strictjson.Node, at string) bool {
	makes := false
	for i := range n.Items {
		makes = m.look(&n.Items[i], at+"[]") || makes
	}
	for i := range n.Members {
		key, value := n.Members[i].Key, &n.Members[i].Value
		switch {
		case key == "containers" && len(value.Items) > 0 && hasImage(&value.Items[0]):
			makes = true
			path := strings.TrimSuffix(at, ".spec")
			if !slices.Contains(m.paths, path) && path != "" {
				m.paths = append(m.paths, path)
			}
		case key == "container" && hasImage(value):
			makes = true
		default:
			makes = m.look(value, strings.TrimPrefix(at+"."+key, ".")) || makes
		}
	}
	return makes
}

func hasImage(n *strictjson.Node) bool {
	image := n.Get("image")
	return image != nil && image.Kind == strictjson.String
}

// podMakers are kinds that create pods although their objects may have no container.
func podMakers() []string {
	return []string{
		"Kafka.kafka.strimzi.io", "KafkaNodePool.kafka.strimzi.io", "Elasticsearch.elasticsearch.k8s.elastic.co", "Kibana.kibana.k8s.elastic.co",
		"SparkApplication.sparkoperator.k8s.io", "ScheduledSparkApplication.sparkoperator.k8s.io", "Cluster.postgresql.cnpg.io", "postgresql.acid.zalan.do",
		"Prometheus.monitoring.coreos.com", "Alertmanager.monitoring.coreos.com", "FlinkDeployment.flink.apache.org", "RabbitmqCluster.rabbitmq.com",
		"InferenceService.serving.kserve.io", "VirtualMachine.kubevirt.io", "OpenTelemetryCollector.opentelemetry.io",
	}
}

// deployers are kinds whose objects deploy what other files describe.
func deployers() []string {
	return []string{
		"Application.argoproj.io", "ApplicationSet.argoproj.io", "HelmRelease.helm.toolkit.fluxcd.io", "Kustomization.kustomize.toolkit.fluxcd.io",
		"HelmChart.helm.cattle.io", "GitRepo.fleet.cattle.io", "ResourceGraphDefinition.kro.run",
	}
}

// pods notes kinds whose pods are not planned, and what to do about it.
func (b *builder) pods() {
	var located, unlocated, flags []string
	for _, kind := range slices.Sorted(maps.Keys(b.makers)) {
		paths := b.makers[kind]
		if len(paths) == 0 {
			unlocated = append(unlocated, kind)
			continue
		}
		located = append(located, kind)
		for _, path := range paths {
			if len(located) == 1 {
				flags = append(flags, fmt.Sprintf("--pods '%s=%s'", kind, path))
			}
		}
	}
	if len(located) > 0 {
		b.snapshot.note("the pods of %s are not planned: say where their pod templates are, as in %s", strings.Join(located, ", "), strings.Join(flags, " "))
	}
	if len(unlocated) > 0 {
		b.snapshot.note("the pods of %s are not planned, because only a cluster knows them: add Deployments of their size", strings.Join(unlocated, ", "))
	}
	here := slices.DeleteFunc(deployers(), func(kind string) bool { return b.others[kind] == 0 })
	if len(here) > 0 {
		b.snapshot.note("what objects of %s deploy is planned only if the input has it: %s", strings.Join(here, ", "), render)
	}
}

func group(version string) string {
	g, _, _ := strings.Cut(version, "/")
	if !strings.Contains(version, "/") {
		return ""
	}
	return g
}

// qualified returns a kind with its group, as kubectl writes it: "Rollout.argoproj.io", or
// "Service" of the core group.
func qualified(kind, version string) string {
	if g := group(version); g != "" {
		return kind + "." + g
	}
	return kind
}
