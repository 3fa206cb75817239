package manifests

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/internal/strictjson"
)

// controller is an object of any kind that creates pods from a template.
type controller struct {
	id         identity
	apiVersion string
	meta       *metav1.ObjectMeta
	template   *corev1.PodTemplateSpec
	want       int // pods that should exist at the same time
	first      int // number of the first pod
	ordinal    bool
	selector   bool // it says which pods belong to it
	job        *batchv1.Job
	claims     []corev1.PersistentVolumeClaim // claim templates of a StatefulSet
}

// key returns what the names of a controller's pods are built from.
func (i identity) key() [2]string { return [2]string{i.namespace, i.name} }

// rank puts a StatefulSet before controllers of the same name, because the numbers of its pods are
// fixed.
func (c *controller) rank() int {
	if c.ordinal {
		return 0
	}
	return 1
}

func replicas(n *int32) int {
	if n == nil {
		return 1
	}
	return int(*n)
}

func controllerOf(o object) controller {
	c := controller{id: o.id, apiVersion: "apps/v1"}
	switch v := o.value.(type) {
	case *appsv1.Deployment:
		c.selector = v.Spec.Selector != nil
		c.meta, c.template, c.want = &v.ObjectMeta, &v.Spec.Template, replicas(v.Spec.Replicas)
	case *appsv1.ReplicaSet:
		c.selector = v.Spec.Selector != nil
		c.meta, c.template, c.want = &v.ObjectMeta, &v.Spec.Template, replicas(v.Spec.Replicas)
	case *appsv1.StatefulSet:
		c.selector = v.Spec.Selector != nil
		c.meta, c.template, c.want, c.ordinal = &v.ObjectMeta, &v.Spec.Template, replicas(v.Spec.Replicas), true
		c.claims = v.Spec.VolumeClaimTemplates
		if v.Spec.Ordinals != nil {
			c.first = int(v.Spec.Ordinals.Start)
		}
	case *corev1.ReplicationController:
		c.apiVersion, c.meta, c.template, c.want = "v1", &v.ObjectMeta, v.Spec.Template, replicas(v.Spec.Replicas)
	case *custom:
		c.apiVersion, c.meta, c.template, c.want = v.apiVersion, &v.ObjectMeta, &v.template, v.count
	case *batchv1.Job:
		c.apiVersion, c.meta, c.template, c.job = "batch/v1", &v.ObjectMeta, &v.Spec.Template, v
	}
	return c
}

// tally counts a controller's pods.
type tally struct{ live, succeeded int }

// expand turns controllers into the pods that they still have to create.
func (b *builder) expand(most int) {
	owners := b.ownership()
	tallies := map[identity]tally{}
	cronDone := map[identity]bool{} // CronJobs that already have a run
	for _, p := range b.snapshot.Pods {
		owner, ok := owners.of(p)
		if !ok {
			continue
		}
		t := tallies[owner]
		switch {
		case p.Status.Phase == corev1.PodSucceeded:
			t.succeeded++
		case p.Status.Phase != corev1.PodFailed && p.DeletionTimestamp == nil:
			t.live++
		}
		tallies[owner] = t
	}
	for id, t := range tallies {
		if id.kind == "CronJob" && t.live > 0 {
			cronDone[id] = true
		}
	}
	controllers := slices.Clone(b.controllers)
	for _, c := range b.controllers {
		if c.job == nil || finished(c.job) {
			continue
		}
		if owner := metav1.GetControllerOf(c.meta); owner != nil && owner.Kind == "CronJob" {
			cronDone[identity{"CronJob", c.id.namespace, owner.Name}] = true
		}
	}
	for _, c := range b.cronJobs {
		id := identity{"CronJob", c.Namespace, c.Name}
		if cronDone[id] || isTrue(c.Spec.Suspend) {
			continue
		}
		job := &batchv1.Job{Spec: c.Spec.JobTemplate.Spec}
		controllers = append(controllers, controller{id: id, apiVersion: "batch/v1", meta: &c.ObjectMeta, template: &job.Spec.Template, job: job})
	}
	slices.SortFunc(controllers, func(a, b controller) int {
		return cmp.Or(cmp.Compare(a.id.namespace, b.id.namespace), cmp.Compare(a.id.name, b.id.name), cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.id.kind, b.id.kind))
	})
	namesakes := map[[2]string]int{} // controllers with the same name, whose pods must have different numbers
	for _, c := range controllers {
		namesakes[c.id.key()]++
	}
	numbers := b.numbers()
	claims := map[[2]string]bool{}
	for _, c := range b.snapshot.PersistentVolumeClaims {
		claims[[2]string{c.Namespace, c.Name}] = true
	}
	total := len(b.snapshot.Pods)
	for _, c := range controllers {
		if c.template == nil || owners.above(c.id) != c.id {
			continue
		}
		w := c.workload(tallies[c.id], numbers[c.id.key()])
		if w.count <= 0 {
			continue
		}
		if w.count > most || total+w.count > most {
			b.fail(c.id, c.countField(), "it has %s and the input has %d altogether; at most %d are allowed", plural(w.count, "pod", "pods"), total+w.count, most)
			return
		}
		total += w.count
		w.Template = c.pod(owners.hash[c.id])
		c.mount(&w, claims)
		b.snapshot.Workloads = append(b.snapshot.Workloads, w)
		if namesakes[c.id.key()] > 1 {
			all := slices.AppendSeq(slices.Clone(numbers[c.id.key()]), w.Numbers())
			slices.Sort(all)
			numbers[c.id.key()] = all
		}
	}
	if total > most {
		b.problems = append(b.problems, &Problem{Detail: fmt.Sprintf("the input has %d pods; at most %d are allowed", total, most)})
	}
}

// countField returns the field that says how many pods a controller wants.
func (c *controller) countField() string {
	switch c.id.kind {
	case "Job":
		return "spec.parallelism"
	case "CronJob":
		return "spec.jobTemplate.spec.parallelism"
	}
	return "spec.replicas"
}

// workload counts the pods that a controller still has to create.
func (c *controller) workload(t tally, taken []int) Workload {
	w := Workload{Kind: c.id.kind, Namespace: c.id.namespace, Name: c.id.name, first: c.first}
	from, _ := slices.BinarySearch(taken, c.first)
	w.taken = taken[from:]
	switch {
	case c.job != nil:
		w.count = jobPods(c.job, t.succeeded) - t.live
	case c.ordinal: // the pods of a StatefulSet keep their numbers
		end, _ := slices.BinarySearch(w.taken, c.first+c.want)
		w.count = c.want - end
	default:
		w.count = c.want - t.live
	}
	return w
}

// jobPods returns how many pods a job wants to run at the same time.
func jobPods(j *batchv1.Job, succeeded int) int {
	if finished(j) || isTrue(j.Spec.Suspend) {
		return 0
	}
	want := replicas(j.Spec.Parallelism)
	done := max(int(j.Status.Succeeded), succeeded)
	switch {
	case j.Spec.Completions != nil:
		want = min(want, int(*j.Spec.Completions)-done)
	case j.Spec.Parallelism == nil: // neither is set: one pod, once
		want -= done
	case done > 0: // a work queue with one success starts no more
		want = 0
	}
	return max(want, 0)
}

func isTrue(b *bool) bool { return b != nil && *b }

// suspended notes the Jobs and CronJobs that create no pods until they are resumed.
func (b *builder) suspended() {
	var list []string
	for _, c := range b.controllers {
		if c.job != nil && isTrue(c.job.Spec.Suspend) && !finished(c.job) {
			list = append(list, c.id.String())
		}
	}
	for _, c := range b.cronJobs {
		if isTrue(c.Spec.Suspend) {
			list = append(list, identity{"CronJob", c.Namespace, c.Name}.String())
		}
	}
	slices.Sort(list)
	if n := len(list); n > 0 {
		b.snapshot.note("no pods are planned for %s: %s", plural(n, "suspended job", "suspended jobs"), few(list, ", "))
	}
}

// scaler is a HorizontalPodAutoscaler: how many pods its target has at least and at most.
type scaler struct {
	id         identity
	kind, name string // of the target; the kind with its group, too
	qualified  string
	min, max   int
}

// scalerOf reads a HorizontalPodAutoscaler of any version. The problems are those for which an API
// server refuses it.
func scalerOf(n *strictjson.Node, id identity) (scaler, []strictjson.Problem) {
	var o struct {
		Spec struct {
			ScaleTargetRef struct{ APIVersion, Kind, Name string }
		}
	}
	var problems []strictjson.Problem
	add := func(path, format string, args ...any) {
		problems = append(problems, strictjson.Problem{Path: path, Detail: fmt.Sprintf(format, args...)})
	}
	if err := json.Unmarshal(n.Raw(), &o); err != nil {
		add("spec", "%s", err)
	}
	bound := func(name string, least int) (count int, given bool) {
		v := n.Get("spec").Get(name)
		if v == nil || v.Text == "null" {
			return 1, false
		}
		var number int32
		if err := json.Unmarshal(v.Raw(), &number); err != nil {
			add("spec."+name, "%s: want a number", strictjson.Quote(v.Text))
			return 1, false
		}
		if int(number) < least {
			add("spec."+name, "%d: want %d or more", number, least)
		}
		return int(number), true
	}
	t := o.Spec.ScaleTargetRef
	out := scaler{id: id, kind: t.Kind, name: t.Name, qualified: qualified(t.Kind, t.APIVersion)}
	out.min, _ = bound("minReplicas", 0)
	var given bool
	if out.max, given = bound("maxReplicas", 1); !given && len(problems) == 0 {
		add("spec.maxReplicas", "an autoscaler needs it")
	}
	if len(problems) == 0 && out.max < out.min {
		add("spec.maxReplicas", "%d: want minReplicas, %d, or more", out.max, out.min)
	}
	return out, problems
}

// scale gives the targets of HorizontalPodAutoscalers as many pods as these keep at least and at
// most, as a cluster does, and notes that. 0 replicas switch an autoscaler off.
func (b *builder) scale() {
	var list []string
	for _, id := range sortedIDs(b.scalers) {
		s := b.scalers[id]
		at := slices.IndexFunc(b.controllers, func(c controller) bool {
			return c.job == nil && c.id.namespace == id.namespace && c.id.name == s.name && (c.id.kind == s.kind || c.id.kind == s.qualified)
		})
		if at < 0 {
			b.others[id.kind+".autoscaling"]++
			continue
		}
		c := &b.controllers[at]
		was := c.want
		if was == 0 {
			continue
		}
		c.want = min(max(was, s.min), s.max)
		text := fmt.Sprintf("%s is planned with %s", c.id, plural(c.want, "pod", "pods"))
		if c.want != was {
			text += fmt.Sprintf(" and not %d", was)
		}
		list = append(list, fmt.Sprintf("%s (%s keeps %d to %d)", text, id.name, s.min, s.max))
	}
	if len(list) > 0 {
		b.snapshot.note("%s how many pods run: %s", plural(len(list), "HorizontalPodAutoscaler decides", "HorizontalPodAutoscalers decide"), few(list, "; "))
	}
}

func finished(j *batchv1.Job) bool {
	return slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	})
}

// pod returns what all pods of the controller have in common.
func (c *controller) pod(hash string) *corev1.Pod {
	p := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: c.template.ObjectMeta, Spec: c.template.Spec}
	yes := true
	p.Name, p.GenerateName, p.Namespace = "", "", c.id.namespace
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: c.apiVersion, Kind: c.id.kind, Name: c.id.name, UID: c.meta.UID, Controller: &yes}}
	if _, ok := p.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; hash != "" && !ok {
		with := map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: hash}
		maps.Copy(with, p.Labels)
		p.Labels = with
	}
	p.Status = corev1.PodStatus{Phase: corev1.PodPending}
	return p
}

// mount adds the volumes of a StatefulSet's claim templates, as its controller does. A template
// replaces a volume of the same name. Its metadata keeps the name, which an ephemeral volume of a
// pod cannot have: that is how a plan that is carried out knows that the claim outlives the pod.
func (c *controller) mount(w *Workload, present map[[2]string]bool) {
	if len(c.claims) == 0 {
		return
	}
	volumes := slices.DeleteFunc(slices.Clone(w.Template.Spec.Volumes), func(v corev1.Volume) bool {
		return slices.ContainsFunc(c.claims, func(t corev1.PersistentVolumeClaim) bool { return t.Name == v.Name })
	})
	w.present = map[string]bool{}
	for i := range c.claims {
		t := &c.claims[i]
		w.claims = append(w.claims, claimVolume{len(volumes), t.Name})
		volumes = append(volumes, corev1.Volume{Name: t.Name, VolumeSource: corev1.VolumeSource{
			Ephemeral: &corev1.EphemeralVolumeSource{
				VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{ObjectMeta: t.ObjectMeta, Spec: t.Spec},
			},
		}})
		if len(present) == 0 {
			continue
		}
		for n := range w.Numbers() {
			if name := t.Name + "-" + w.PodName(n); present[[2]string{c.id.namespace, name}] {
				w.present[name] = true
			}
		}
	}
	w.Template.Spec.Volumes = volumes
}

// numbers returns the numbers of pods named "<name>-<number>" in the input, by namespace and name.
func (b *builder) numbers() map[[2]string][]int {
	wanted := map[[2]string]bool{}
	for _, c := range b.controllers {
		wanted[c.id.key()] = true
	}
	for _, c := range b.cronJobs {
		wanted[[2]string{c.Namespace, c.Name}] = true
	}
	numbers := map[[2]string][]int{}
	for _, p := range b.snapshot.Pods {
		dash := strings.LastIndexByte(p.Name, '-')
		if dash < 0 {
			continue
		}
		key := [2]string{p.Namespace, p.Name[:dash]}
		n, err := strconv.Atoi(p.Name[dash+1:])
		if err == nil && wanted[key] && strconv.Itoa(n) == p.Name[dash+1:] {
			numbers[key] = append(numbers[key], n)
		}
	}
	for _, list := range numbers {
		slices.Sort(list)
	}
	return numbers
}

// ownership knows which controller each object belongs to.
type ownership struct {
	present map[identity]bool
	parent  map[identity]identity // ReplicaSet to Deployment, if both are present
	hash    map[identity]string   // the pod-template-hash of a Deployment's newest ReplicaSet
}

func (b *builder) ownership() *ownership {
	o := &ownership{present: map[identity]bool{}, parent: map[identity]identity{}, hash: map[identity]string{}}
	for _, c := range b.controllers {
		o.present[c.id] = true
	}
	for _, c := range b.cronJobs {
		o.present[identity{"CronJob", c.Namespace, c.Name}] = true
	}
	newest := map[identity]int{}
	for _, c := range b.controllers {
		ref := metav1.GetControllerOf(c.meta)
		if c.id.kind != "ReplicaSet" || ref == nil {
			continue
		}
		parent := identity{ref.Kind, c.id.namespace, ref.Name}
		if ref.Kind != "Deployment" || !o.present[parent] {
			continue
		}
		o.parent[c.id] = parent
		revision, _ := strconv.Atoi(c.meta.Annotations["deployment.kubernetes.io/revision"])
		if hash := c.meta.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; hash != "" && (o.hash[parent] == "" || revision > newest[parent]) {
			o.hash[parent], newest[parent] = hash, revision
		}
	}
	return o
}

// above returns the controller for which an object's pods are counted: its Deployment if there is
// one.
func (o *ownership) above(id identity) identity {
	if parent, ok := o.parent[id]; ok {
		return parent
	}
	return id
}

// of returns the controller for which a pod is counted, if it is present.
func (o *ownership) of(p *corev1.Pod) (identity, bool) {
	ref := metav1.GetControllerOf(p)
	if ref == nil {
		return identity{}, false
	}
	id := identity{ref.Kind, p.Namespace, ref.Name}
	if o.present[id] {
		return o.above(id), true
	}
	switch ref.Kind {
	case "ReplicaSet": // named "<deployment>-<hash>"; the hash is on the pod
		hash := p.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
		if name, ok := strings.CutSuffix(ref.Name, "-"+hash); ok && hash != "" {
			id = identity{"Deployment", p.Namespace, name}
		}
	case "Job": // named "<cronjob>-<minutes since 1970>"
		if dash := strings.LastIndexByte(ref.Name, '-'); dash > 0 {
			if _, err := strconv.Atoi(ref.Name[dash+1:]); err == nil {
				id = identity{"CronJob", p.Namespace, ref.Name[:dash]}
			}
		}
	}
	return id, o.present[id]
}
