package manifests

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/internal/strictjson"
)

// PodsOf says where objects of a kind that planning does not know keep their pod templates.
// Examples are "spec.template" for a Rollout of argoproj.io and "spec.workerGroupSpecs[].template"
// for a RayCluster of ray.io. The number of pods of a template is the product of the replicas or
// parallelism of all objects around it, minus the pods that exist and have the object as their
// owner.
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

// custom reads the pods of an object whose kind is in the options.
func (w *worker) custom(res *result, at Position, n *strictjson.Node, id identity, version, path string) {
	id.namespace = metav1.NamespaceDefault
	if v := n.Get("metadata").Get("namespace"); v != nil && v.Text != "" {
		id.namespace = v.Text
	}
	if _, known := w.kinds[id.kind]; known { // for example the Job of another group
		id.kind = qualified(id.kind, version)
	}
	list := templates(n, strings.Split(path, "."), "", 1)
	if len(list) == 0 {
		res.problems = append(res.problems, &Problem{Position: at, Object: id.String(), Path: path, Detail: "the object has no pod template there"})
		return
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

// makesPods reports whether an object contains the containers of pods, at any depth: a list of
// objects with an image.
func makesPods(n *strictjson.Node) bool {
	for i := range n.Items {
		if makesPods(&n.Items[i]) {
			return true
		}
	}
	for i := range n.Members {
		m := &n.Members[i]
		if m.Key == "containers" && len(m.Value.Items) > 0 {
			if image := m.Value.Items[0].Get("image"); image != nil && image.Kind == strictjson.String {
				return true
			}
		}
		if makesPods(&m.Value) {
			return true
		}
	}
	return false
}

// podMakers are kinds that create pods although their objects may have no container.
func podMakers() []string {
	return []string{
		"Kafka.kafka.strimzi.io", "KafkaNodePool.kafka.strimzi.io", "Elasticsearch.elasticsearch.k8s.elastic.co", "Kibana.kibana.k8s.elastic.co",
		"SparkApplication.sparkoperator.k8s.io", "ScheduledSparkApplication.sparkoperator.k8s.io", "Cluster.postgresql.cnpg.io", "postgresql.acid.zalan.do",
		"Prometheus.monitoring.coreos.com", "Alertmanager.monitoring.coreos.com", "FlinkDeployment.flink.apache.org", "RabbitmqCluster.rabbitmq.com",
	}
}

// qualified returns a kind with its group, as kubectl writes it: "Rollout.argoproj.io", or
// "Service" of the core group.
func qualified(kind, version string) string {
	if g := group(version); g != "" {
		return kind + "." + g
	}
	return kind
}
