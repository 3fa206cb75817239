package manifests

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joinery-sdk/joinery/internal/podcheck"
	"github.com/joinery-sdk/joinery/internal/strictjson"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/requirements/kube"
	"github.com/joinery-sdk/joinery/scheduling/buffer"
	"github.com/joinery-sdk/joinery/scheduling/capacityquota"
	"github.com/joinery-sdk/joinery/scheduling/gang"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/nodeclaim"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/overlay"
)

// visit is one object being read.
type visit struct {
	node     *strictjson.Node
	decoder  *strictjson.Decoder
	checker  *podcheck.Checker
	problems []strictjson.Problem
	decoding int      // how many of the problems come from decoding
	newer    []string // paths of fields that are unknown here and known to a cluster
	stored   bool
}

func (v *visit) decode(into any) {
	served := served(v.node)
	for _, p := range v.decoder.Decode(v.node, into) {
		if served && p.Unknown != "" {
			v.newer = append(v.newer, p.Unknown)
		} else {
			v.problems = append(v.problems, p)
		}
	}
	v.decoding = len(v.problems)
}

// take adds problems of a check, except at fields that could not be decoded.
func (v *visit) take(found []strictjson.Problem) {
	for _, p := range found {
		if !slices.ContainsFunc(v.problems[:v.decoding], func(q strictjson.Problem) bool { return below(p.Path, q.Path) || below(q.Path, p.Path) }) {
			v.problems = append(v.problems, p)
		}
	}
}

// served reports whether an API server has returned the object. It stores no field that it does not
// know, so a field that is unknown here belongs to a newer version, and is not misspelt.
func served(n *strictjson.Node) bool {
	has := func(key string) bool { v := n.Get("metadata").Get(key); return v != nil && v.Text != "" }
	return has("uid") && has("resourceVersion")
}

func below(path, parent string) bool {
	rest, ok := strings.CutPrefix(path, parent)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

func (v *visit) add(path, format string, args ...any) {
	v.take([]strictjson.Problem{{Path: path, Detail: fmt.Sprintf(format, args...)}})
}

func (v *visit) oneOf(path, word string, allowed ...string) {
	if slices.Contains(allowed, word) {
		return
	}
	v.add(path, "%s: want one of %s%s", strictjson.Quote(word), strings.Join(allowed, ", "), meant(word, allowed))
}

// meant returns a hint in parentheses with the nearest candidate, or nothing.
func meant(word string, candidates []string) string {
	if near, ok := requirements.Nearest(word, candidates); ok {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}

// kind says how objects of one kind are read.
type kind struct {
	versions   []string // API versions, the current one first
	old        []string // API versions that clusters had once
	namespaced bool
	read       func(*visit) any
}

func typed[T any](check func(*visit, *T)) func(*visit) any {
	return func(v *visit) any {
		object := new(T)
		v.decode(object)
		if check != nil && !v.stored {
			check(v, object)
		}
		return object
	}
}

// family reads kinds that have their own decoders.
func family[T any](decode func([]byte) (T, error)) func(*visit) any {
	return func(v *visit) any {
		object, err := decode(v.once().Raw())
		v.failed(err)
		return object
	}
}

// once returns the object without repeated keys, and reports each as a problem. JSON readers know
// no lines, and many use the last value.
func (v *visit) once() *strictjson.Node {
	var visit func(n *strictjson.Node, path string) strictjson.Node
	visit = func(n *strictjson.Node, path string) strictjson.Node {
		out := *n
		out.Items, out.Members = nil, nil
		for i := range n.Items {
			out.Items = append(out.Items, visit(&n.Items[i], fmt.Sprintf("%s[%d]", path, i)))
		}
		lines := map[string]int32{}
		for i := range n.Members {
			m := n.Members[i]
			at := strings.TrimPrefix(path+strictjson.MapKey(m.Key), ".")
			if first, twice := lines[m.Key]; twice {
				v.problems = append(v.problems, strictjson.Problem{Path: at, Line: int(m.Line), Detail: fmt.Sprintf("the field is given twice, first on line %d", first)})
				continue
			}
			lines[m.Key] = m.Line
			m.Value = visit(&m.Value, at)
			out.Members = append(out.Members, m)
		}
		return out
	}
	out := visit(v.node, "")
	return &out
}

// failed converts the errors of an external decoder. Some of them name their field.
func (v *visit) failed(err error) {
	if err == nil {
		return
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			v.failed(e)
		}
		return
	}
	if f, ok := errors.AsType[FieldProblem](err); ok {
		path, detail := f.Field()
		v.add(path, "%s", detail)
		return
	}
	v.add("", "%s", err)
}

// core is the API version of the kinds without a group, such as pods.
const core = "v1"

// classKinds are the kinds of node classes that are known without a decoder.
func classKinds() map[string][]string {
	return map[string][]string{
		"AWSNodeTemplate": {"karpenter.k8s.aws/v1alpha1"},
		"EC2NodeClass":    {"karpenter.k8s.aws/v1", "karpenter.k8s.aws/v1beta1"},
		"NodeClass":       {"eks.amazonaws.com/v1"},
	}
}

// kinds returns the kinds that planning uses.
func kinds(o *Options) map[string]kind {
	apps := []string{"apps/v1"}
	oldApps := []string{"apps/v1beta1", "apps/v1beta2", "extensions/v1beta1"}
	storage, oldStorage := []string{"storage.k8s.io/v1"}, []string{"storage.k8s.io/v1beta1", "storage.k8s.io/v1alpha1"}
	core := []string{core}
	all := map[string]kind{
		"Pod":                   {core, nil, true, typed(checkPod)},
		"Node":                  {core, nil, false, typed(checkNode)},
		"Namespace":             {core, nil, false, typed[corev1.Namespace](nil)},
		"LimitRange":            {core, nil, true, typed(checkLimitRange)},
		"ReplicationController": {core, nil, true, typed(checkReplicationController)},
		"PersistentVolume":      {core, nil, false, typed(checkPersistentVolume)},
		"PersistentVolumeClaim": {core, nil, true, typed(checkClaim)},
		"ConfigMap":             {core, nil, true, readSettings},
		"Deployment":            {apps, oldApps, true, typed(checkDeployment)},
		"ReplicaSet":            {apps, oldApps, true, typed(checkReplicaSet)},
		"StatefulSet":           {apps, oldApps, true, typed(checkStatefulSet)},
		"DaemonSet":             {apps, oldApps, true, typed(checkDaemonSet)},
		"Job":                   {[]string{"batch/v1"}, []string{"batch/v1beta1"}, true, typed(checkJob)},
		"CronJob":               {[]string{"batch/v1"}, []string{"batch/v1beta1", "batch/v2alpha1"}, true, typed(checkCronJob)},
		"StorageClass":          {storage, oldStorage, false, typed(checkStorageClass)},
		"CSINode":               {storage, oldStorage, false, typed(checkCSINode)},
		"CSIDriver":             {storage, oldStorage, false, typed[storagev1.CSIDriver](nil)},
		"VolumeAttachment":      {storage, oldStorage, false, typed[storagev1.VolumeAttachment](nil)},
		"CSIStorageCapacity":    {storage, oldStorage, true, typed[storagev1.CSIStorageCapacity](nil)},
		"PodDisruptionBudget":   {[]string{"policy/v1"}, []string{"policy/v1beta1"}, true, typed(checkBudget)},
		"PriorityClass": {
			[]string{"scheduling.k8s.io/v1"},
			[]string{"scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha1"},
			false,
			typed(checkPriorityClass),
		},
		"RuntimeClass": {[]string{"node.k8s.io/v1"}, []string{"node.k8s.io/v1beta1", "node.k8s.io/v1alpha1"}, false, typed(checkRuntimeClass)},
		"Provisioner":  {[]string{nodepool.V1Alpha5}, nil, false, family(nodepool.Decode)},
		"NodePool":     {[]string{nodepool.V1, nodepool.V1Beta1}, nil, false, family(nodepool.Decode)},
		"Machine":      {[]string{nodepool.V1Alpha5}, nil, false, family(nodeclaim.Decode)},
		"NodeClaim":    {[]string{nodepool.V1, nodepool.V1Beta1}, nil, false, family(nodeclaim.Decode)},
		"PodGroup": {
			[]string{gang.Kubernetes + "/v1beta1", gang.Kubernetes + "/v1alpha3", gang.Kubernetes + "/v1alpha2", gang.Coscheduling + "/v1alpha1", gang.Volcano + "/v1beta1"},
			nil, true, family(gang.Decode),
		},
		"NodeOverlay":    {[]string{overlay.APIVersion}, nil, false, family(overlay.Decode)},
		"CapacityBuffer": {buffer.Versions(), nil, true, family(buffer.Decode)},
		"CapacityQuota":  {capacityquota.Versions(), nil, false, family(capacityquota.Decode)},
		"PodTemplate":    {core, nil, true, typed(checkPodTemplate)},
	}
	known := classKinds()
	for _, name := range slices.Sorted(maps.Keys(known)) {
		all[name] = kind{known[name], nil, false, readClass(nil)}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Classes)) {
		k := all[name]
		k.read = readClass(o.Classes[name])
		all[name] = k
	}
	if len(o.Spread) > 0 {
		all["Service"] = kind{core, nil, true, typed[corev1.Service](nil)}
	}
	return all
}

// Kinds returns the kinds of objects that [Read] understands with these options, sorted by kind,
// each with its current version first. Of ConfigMaps, only [Settings] is understood. Lists of these
// kinds are understood too.
func Kinds(o *Options) []schema.GroupVersionKind {
	if o == nil {
		o = &Options{}
	}
	var out []schema.GroupVersionKind
	all := kinds(o)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, version := range all[name].versions {
			out = append(out, schema.FromAPIVersionAndKind(version, name))
		}
	}
	return out
}

// hints are for fields of pods that are often written in the wrong place.
func hints() map[string]string {
	all := map[string]string{}
	for _, spec := range []string{"spec", "spec.template.spec", "spec.jobTemplate.spec.template.spec"} {
		for _, field := range []string{"image", "ports", "env", "command", "args"} {
			all[spec+"."+field] = fmt.Sprintf("did you mean %q?", spec+".containers[]."+field)
		}
		for _, resource := range []string{"cpu", "memory"} {
			for _, at := range []string{".containers.", ".containers.resources."} {
				all[spec+at+resource] = fmt.Sprintf("did you mean %q?", spec+".containers[].resources.requests."+resource)
			}
		}
	}
	return all
}

func readClass(decode ClassDecoder) func(*visit) any {
	return func(v *visit) any {
		class := NodeClass{Raw: v.once().Raw()}
		if version := v.node.Get("apiVersion"); version != nil {
			class.APIVersion = version.Text
		}
		if decode != nil {
			value, err := decode(class.Raw)
			class.Value = value
			v.failed(err)
		}
		return class
	}
}

// Settings is the name of the ConfigMap with the settings of Karpenter before v0.33 (the v1alpha5
// controller), the only ConfigMap that is read.
const Settings = "karpenter-global-settings"

// readSettings reads the one ConfigMap that planning uses. It returns nil for any other.
func readSettings(v *visit) any {
	if name := v.node.Get("metadata").Get("name"); name == nil || name.Text != Settings {
		return nil
	}
	return typed[corev1.ConfigMap](nil)(v)
}

// Pods reads one pod from each JSON text and checks it as [Read] does. A pod may leave out
// apiVersion and kind. A generated name is completed. list is the name of the texts: the paths of
// problems begin with list[i]. The error joins a [*Problem] for each mistake.
func Pods(list string, texts []json.RawMessage) ([]*corev1.Pod, error) {
	return elements[*corev1.Pod]("Pod", list, texts)
}

// PodTemplates is [Pods] for objects of the kind PodTemplate.
func PodTemplates(list string, texts []json.RawMessage) ([]*corev1.PodTemplate, error) {
	return elements[*corev1.PodTemplate]("PodTemplate", list, texts)
}

// elements reads objects of one kind, whose Go type is T.
func elements[T metav1.Object](name, list string, texts []json.RawMessage) ([]T, error) {
	r := reader{kinds: kinds(&Options{}), decoder: &strictjson.Decoder{Live: true, Hints: hints()}}
	w, b := r.worker(), builder{snapshot: &Snapshot{positions: map[identity]Position{}}}
	var out []T
	var errs []error
	for i, text := range texts {
		at := fmt.Sprintf("%s[%d]", list, i)
		fail := func(path, detail string) {
			errs = append(errs, &Problem{Path: strings.TrimSuffix(at+"."+path, "."), Detail: detail})
		}
		var res result
		n, err := strictjson.Parse(text)
		if kind := n.Get("kind"); err != nil {
			fail("", err.Error())
		} else if n.Kind == strictjson.Null || kind != nil && kind.Text != name {
			fail("", "want a "+name)
		} else {
			w.item(&res, Position{File: at}, &n, listKind{core, name})
		}
		for _, p := range res.problems {
			fail(p.Path, p.Detail)
		}
		for _, o := range res.objects {
			b.name(&o)
			if first, twice := b.snapshot.positions[o.id]; twice {
				fail("metadata.name", fmt.Sprintf("%s is given twice, first at %s", o.id, first.File))
			}
			b.snapshot.positions[o.id] = Position{File: at}
			out = append(out, o.value.(T))
		}
		if len(errs) > strictjson.MaxProblems { // one text may have as many
			break
		}
	}
	return out, errors.Join(errs...)
}

func checkPod(v *visit, p *corev1.Pod) { v.take(v.checker.Pod("", &p.ObjectMeta, &p.Spec)) }

func checkPodTemplate(v *visit, t *corev1.PodTemplate) {
	v.take(v.checker.Pod("template", &t.Template.ObjectMeta, &t.Template.Spec))
}

func checkNode(v *visit, n *corev1.Node) {
	v.take(v.checker.Labels("metadata.labels", n.Labels))
	v.take(v.checker.Taints("spec.taints", n.Spec.Taints))
	v.take(v.checker.Quantities("status.capacity", n.Status.Capacity))
	v.take(v.checker.Quantities("status.allocatable", n.Status.Allocatable))
}

func checkLimitRange(v *visit, l *corev1.LimitRange) {
	for i, item := range l.Spec.Limits {
		at := fmt.Sprintf("spec.limits[%d]", i)
		if item.Type == "" {
			v.add(at+".type", "want one of Container, Pod, PersistentVolumeClaim")
		}
		v.take(v.checker.Quantities(at+".max", item.Max))
		v.take(v.checker.Quantities(at+".min", item.Min))
		v.take(v.checker.Quantities(at+".default", item.Default))
		v.take(v.checker.Quantities(at+".defaultRequest", item.DefaultRequest))
		for _, name := range slices.Sorted(maps.Keys(item.DefaultRequest)) {
			request, limit := item.DefaultRequest[name], item.Default[name]
			if _, ok := item.Default[name]; ok && request.Cmp(limit) > 0 {
				v.add(at+".defaultRequest"+strictjson.MapKey(string(name)), "the request %s exceeds the limit %s", request.String(), limit.String())
			}
		}
	}
}

func checkPersistentVolume(v *visit, p *corev1.PersistentVolume) {
	v.take(v.checker.Labels("metadata.labels", p.Labels))
	v.take(v.checker.Quantities("spec.capacity", p.Spec.Capacity))
	if a := p.Spec.NodeAffinity; a != nil && a.Required != nil {
		_, err := kube.FromNodeSelector(a.Required)
		v.selectorFaults("spec.nodeAffinity.required.", err)
	}
}

func (v *visit) selectorFaults(prefix string, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			v.selectorFaults(prefix, e)
		}
		return
	}
	bad := &requirements.InvalidError{}
	if errors.As(err, &bad) {
		v.add(prefix+bad.Path, "%s", bad.Detail)
	}
}

func checkClaim(v *visit, c *corev1.PersistentVolumeClaim) {
	v.take(v.checker.Quantities("spec.resources.requests", c.Spec.Resources.Requests))
}

func checkStorageClass(v *visit, s *storagev1.StorageClass) {
	if s.Provisioner == "" {
		v.add("provisioner", "a StorageClass needs a provisioner")
	}
	if m := s.VolumeBindingMode; m != nil {
		v.oneOf("volumeBindingMode", string(*m), string(storagev1.VolumeBindingImmediate), string(storagev1.VolumeBindingWaitForFirstConsumer))
	}
	for i, t := range s.AllowedTopologies {
		for j, e := range t.MatchLabelExpressions {
			if at := fmt.Sprintf("allowedTopologies[%d].matchLabelExpressions[%d]", i, j); e.Key == "" {
				v.add(at+".key", "must not be empty")
			} else if len(e.Values) == 0 {
				v.add(at+".values", "want at least one value")
			}
		}
	}
}

func checkCSINode(v *visit, n *storagev1.CSINode) {
	for i, d := range n.Spec.Drivers {
		if d.Allocatable != nil && d.Allocatable.Count != nil && *d.Allocatable.Count < 0 {
			v.add(fmt.Sprintf("spec.drivers[%d].allocatable.count", i), "%d: must not be negative", *d.Allocatable.Count)
		}
	}
}

func checkBudget(v *visit, b *policyv1.PodDisruptionBudget) {
	v.take(v.checker.Selector("spec.selector", b.Spec.Selector))
	if b.Spec.MinAvailable != nil && b.Spec.MaxUnavailable != nil {
		v.add("spec.maxUnavailable", "set either minAvailable or maxUnavailable, not both")
	}
	for _, f := range []struct {
		path  string
		value *intstr.IntOrString
	}{{"spec.minAvailable", b.Spec.MinAvailable}, {"spec.maxUnavailable", b.Spec.MaxUnavailable}} {
		if f.value == nil {
			continue
		}
		n, err := intstr.GetScaledValueFromIntOrPercent(f.value, 100, true)
		switch {
		case err != nil:
			v.add(f.path, "%s: want a count such as 1 or a share such as \"50%%\"", strictjson.Quote(f.value.String()))
		case n < 0:
			v.add(f.path, "%s: must not be negative", f.value.String())
		case f.value.Type == intstr.String && n > 100:
			v.add(f.path, "%s: a share is at most 100%%", f.value.String())
		}
	}
	if p := b.Spec.UnhealthyPodEvictionPolicy; p != nil {
		v.oneOf("spec.unhealthyPodEvictionPolicy", string(*p), string(policyv1.IfHealthyBudget), string(policyv1.AlwaysAllow))
	}
}

func checkPriorityClass(v *visit, p *schedulingv1.PriorityClass) {
	if v.node.Get("value") == nil {
		v.add("value", "a PriorityClass needs a value")
	}
	const highest = 1_000_000_000
	if p.Value > highest && !strings.HasPrefix(p.Name, "system-") {
		v.add("value", "%d: want %d at most; higher values are reserved for the system's own classes", p.Value, highest)
	}
	if p.PreemptionPolicy != nil {
		v.oneOf("preemptionPolicy", string(*p.PreemptionPolicy), "PreemptLowerPriority", "Never")
	}
}

func checkRuntimeClass(v *visit, r *nodev1.RuntimeClass) {
	if r.Handler == "" {
		v.add("handler", "a RuntimeClass needs a handler")
	}
	if r.Overhead != nil {
		v.take(v.checker.Quantities("overhead.podFixed", r.Overhead.PodFixed))
	}
	if r.Scheduling != nil {
		v.take(v.checker.Labels("scheduling.nodeSelector", r.Scheduling.NodeSelector))
		v.take(v.checker.Tolerations("scheduling.tolerations", r.Scheduling.Tolerations))
	}
}
