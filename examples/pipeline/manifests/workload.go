package manifests

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/robfig/cron/v3"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/internal/strictjson"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/buffer"
)

// Workload is a controller and the pods that it still has to create. The pods are the same except
// for the name, so a million of them costs no more than one until each is used. The volumes of a
// StatefulSet are an exception. If the input has the claim of an earlier pod, the new pod refers to
// it. Claims that do not exist yet become ephemeral volumes. For a pod that does not run yet, these
// are equivalent: they have the same class and size, and are made with the pod.
type Workload struct {
	// Kind, Namespace and Name are those of the controller.
	Kind, Namespace, Name string
	// Template is the pod without its name. All pods of the workload share it, and it must not be
	// changed.
	Template *corev1.Pod

	first, count int
	taken        []int // numbers, from first on, that pods already have, sorted
	// claims are the volumes of a StatefulSet's claim templates, by their index in the template's
	// volumes.
	claims []claimVolume
	// present are the claims of the input that its pods would find.
	present map[string]bool
}

// claimVolume is a volume for which a StatefulSet creates a claim for each pod: "<template>-<pod>".
type claimVolume struct {
	volume   int
	template string
}

// Len returns the number of pods.
func (w *Workload) Len() int { return w.count }

// Numbers yields the number of each pod, ascending. They start at 0, or at the first ordinal of a
// StatefulSet, and leave out the numbers of pods in the input.
func (w *Workload) Numbers() iter.Seq[int] {
	return func(yield func(int) bool) {
		taken := w.taken
		for left, n := w.count, w.first; left > 0; n++ {
			if len(taken) > 0 && taken[0] == n {
				taken = taken[1:]
				continue
			}
			left--
			if !yield(n) {
				return
			}
		}
	}
}

// PodName returns the name of the pod with that number: "<controller>-<number>".
func (w *Workload) PodName(number int) string { return w.Name + "-" + strconv.Itoa(number) }

// Pods yields the pods by ascending number. Each is a new struct that shares everything except its
// name with Template.
func (w *Workload) Pods() iter.Seq[*corev1.Pod] {
	return func(yield func(*corev1.Pod) bool) {
		for n := range w.Numbers() {
			pod := *w.Template
			pod.Name = w.PodName(n)
			pod.Spec.Volumes = w.volumes(pod.Name)
			if !yield(&pod) {
				return
			}
		}
	}
}

// volumes returns the volumes of the template, with the existing claims of the pod.
func (w *Workload) volumes(pod string) []corev1.Volume {
	volumes, copied := w.Template.Spec.Volumes, false
	for _, c := range w.claims {
		name := c.template + "-" + pod
		if !w.present[name] {
			continue
		}
		if !copied {
			volumes, copied = slices.Clone(volumes), true
		}
		volumes[c.volume].VolumeSource = corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}
	}
	return volumes
}

// Buffer is a CapacityBuffer and the pods that fill it.
type Buffer struct {
	buffer.Buffer
	// Pods are the pods that fill the buffer, as many as its size. There are none if Why says what
	// is missing.
	Pods []*corev1.Pod
	Why  string
}

// fill creates the pods of the buffers.
func (b *builder) fill(most int) {
	all := b.snapshot.CountPods()
	for i := range b.snapshot.Buffers {
		f := &b.snapshot.Buffers[i]
		if s := cmp.Or(f.Strategy, buffer.ActiveCapacity); s != buffer.ActiveCapacity {
			f.Why = fmt.Sprintf("the strategy %q is not planned", s)
			continue
		}
		template, replicas := b.template(f)
		if template == nil {
			continue
		}
		size := f.Size(template, replicas)
		if all += size; all > most {
			f.Why = fmt.Sprintf("it has %s, and the input has more than %d with them", plural(size, "pod", "pods"), most)
			continue
		}
		f.Pods = f.Buffer.Pods(template, size)
	}
}

// template returns the template of a buffer's pods, and how many replicas the workload wants.
func (b *builder) template(f *Buffer) (*corev1.PodTemplateSpec, int32) {
	if f.Template != "" {
		t := b.templates[identity{"PodTemplate", f.Namespace, f.Template}]
		if t == nil {
			f.Why = fmt.Sprintf("there is no PodTemplate %q", f.Template)
			return nil, 0
		}
		return &t.Template, 0
	}
	apps := cmp.Or(f.Scalable.Group, "apps") == "apps" && slices.Contains([]string{"Deployment", "ReplicaSet", "StatefulSet"}, f.Scalable.Kind)
	for i := range b.controllers {
		if c := &b.controllers[i]; apps && c.id == (identity{f.Scalable.Kind, f.Namespace, f.Scalable.Name}) {
			return c.template, int32(c.want)
		}
	}
	f.Why = fmt.Sprintf("there is no %s in namespace %s%s", f.Scalable, f.Namespace, b.likely(f))
	if !apps {
		f.Why = fmt.Sprintf("%s: want a Deployment, ReplicaSet or StatefulSet", f.Scalable)
	}
	return nil, 0
}

// likely returns a hint about the workload that a buffer probably means: one of the same name
// elsewhere, or one of its namespace with nearly that name.
func (b *builder) likely(f *Buffer) string {
	var names []string
	for i := range b.controllers {
		id := b.controllers[i].id
		switch {
		case !slices.Contains([]string{"Deployment", "ReplicaSet", "StatefulSet"}, id.kind):
			continue
		case id.name == f.Scalable.Name:
			return fmt.Sprintf("; did you mean %s %s in namespace %s?", id.kind, id.name, id.namespace)
		case id.namespace == f.Namespace && id.kind == f.Scalable.Kind:
			names = append(names, id.name)
		}
	}
	slices.Sort(names)
	if near, ok := requirements.Nearest(f.Scalable.Name, names); ok {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// template checks the pods of a controller that keeps them running, and that its selector, if it has
// one, selects them. claims are the claim templates of a StatefulSet.
func (v *visit) template(t *corev1.PodTemplateSpec, s *metav1.LabelSelector, replicas *int32, claims ...string) {
	const path = "spec.template"
	v.take(v.checker.Pod(path, &t.ObjectMeta, &t.Spec, claims...))
	if r := t.Spec.RestartPolicy; r == corev1.RestartPolicyOnFailure || r == corev1.RestartPolicyNever {
		v.add(path+".spec.restartPolicy", "%q: a controller that keeps its pods running allows Always only", r)
	}
	if t.Spec.ActiveDeadlineSeconds != nil {
		v.add(path+".spec.activeDeadlineSeconds", "a controller that keeps its pods running does not allow it")
	}
	if replicas != nil && *replicas < 0 {
		v.add("spec.replicas", "%d: must not be negative", *replicas)
	}
	if s == nil {
		return
	}
	faults := v.checker.Selector("spec.selector", s)
	v.take(faults)
	if len(faults) > 0 {
		return
	}
	if selector, err := metav1.LabelSelectorAsSelector(s); err == nil && !selector.Matches(labelSet(t.Labels)) {
		v.add("spec.selector", "it does not select the pods of %s, whose labels are %s", path, labelText(t.Labels))
	}
}

func checkDeployment(v *visit, d *appsv1.Deployment) {
	v.template(&d.Spec.Template, d.Spec.Selector, d.Spec.Replicas)
}

func checkReplicaSet(v *visit, r *appsv1.ReplicaSet) {
	v.template(&r.Spec.Template, r.Spec.Selector, r.Spec.Replicas)
}

func checkStatefulSet(v *visit, s *appsv1.StatefulSet) {
	var claims []string
	for i := range s.Spec.VolumeClaimTemplates {
		claims = append(claims, s.Spec.VolumeClaimTemplates[i].Name)
	}
	v.template(&s.Spec.Template, s.Spec.Selector, s.Spec.Replicas, claims...)
	if o := s.Spec.Ordinals; o != nil && o.Start < 0 {
		v.add("spec.ordinals.start", "%d: must not be negative", o.Start)
	}
}

func checkDaemonSet(v *visit, d *appsv1.DaemonSet) {
	v.template(&d.Spec.Template, d.Spec.Selector, nil)
}

func checkReplicationController(v *visit, r *corev1.ReplicationController) {
	if r.Spec.Template == nil {
		v.add("spec.template", "a ReplicationController needs a template")
		return
	}
	var s *metav1.LabelSelector
	if r.Spec.Selector != nil {
		s = &metav1.LabelSelector{MatchLabels: r.Spec.Selector}
	}
	v.template(r.Spec.Template, s, r.Spec.Replicas)
}

func checkJob(v *visit, j *batchv1.Job) { v.job("", &j.Spec) }

func checkCronJob(v *visit, c *batchv1.CronJob) {
	v.job("spec.jobTemplate.", &c.Spec.JobTemplate.Spec)
	if served(v.node) { // older API servers stored schedules with a time zone, and newer ones keep them
		return
	}
	if strings.Contains(c.Spec.Schedule, "TZ") {
		v.add("spec.schedule", "%s: the time zone is in spec.timeZone", strictjson.Quote(c.Spec.Schedule))
	} else if _, err := cron.ParseStandard(c.Spec.Schedule); err != nil {
		v.add("spec.schedule", "%s: want five fields such as \"0 3 * * *\", or a word such as @daily", strictjson.Quote(c.Spec.Schedule))
	}
}

func (v *visit) job(prefix string, s *batchv1.JobSpec) {
	path := prefix + "spec.template"
	v.take(v.checker.Pod(path, &s.Template.ObjectMeta, &s.Template.Spec))
	if restart := s.Template.Spec.RestartPolicy; restart == "" || restart == corev1.RestartPolicyAlways {
		v.add(path+".spec.restartPolicy", "%q: a job needs OnFailure or Never", cmp.Or(s.Template.Spec.RestartPolicy, corev1.RestartPolicyAlways))
	}
	for _, f := range []struct {
		name  string
		value *int32
	}{{"parallelism", s.Parallelism}, {"completions", s.Completions}} {
		if f.value != nil && *f.value < 0 {
			v.add(prefix+"spec."+f.name, "%d: must not be negative", *f.value)
		}
	}
	if m := s.CompletionMode; m != nil && *m == batchv1.IndexedCompletion && s.Completions == nil {
		v.add(prefix+"spec.completions", "the completion mode Indexed needs it")
	}
}
